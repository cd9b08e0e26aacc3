package launch

import (
	"fmt"
	"regexp"
)

// What the dynamic linker says, as dlopen(3) and a program that can't start pass it on.
var (
	noFile    = regexp.MustCompile(`([\w.+-]+\.so[\w.]*): cannot open shared object file`)
	noVersion = regexp.MustCompile("version `((?:GLIBC|GLIBCXX|CXXABI)_[0-9.]+)' not found")
	noSymbol  = regexp.MustCompile(`(?:undefined symbol|symbol lookup error): (\S+)`)
)

// runtimes are the libraries that the worker itself needs, with their packages.
var runtimes = map[string]string{"libstdc++.so.6": "libstdc++6", "libgcc_s.so.1": "libgcc-s1"}

// toBuild says how to get a module that is not there.
func (l library) toBuild() string {
	if l.devel == "" {
		return "run make build" + andNeeds(l.needs)
	}
	return fmt.Sprintf("install %s and run make build", l.devel)
}

// toInstall says how to get a package. The names in known are the same in all releases
// of both: openmpi-bin brings libopenmpi3 of Debian 12 and libopenmpi3t64 of Ubuntu 24.04.
func toInstall(pkg string) string {
	return "on Debian and Ubuntu: apt-get install " + pkg
}

// explain turns what a failed probe said into what is missing and how to get it.
// What it does not know it passes on.
func (l library) explain(said string) string {
	if m := noVersion.FindStringSubmatch(said); m != nil {
		return fmt.Sprintf("this system is older than the one its module was built on, %s is not there: build mixdown here (make build)", m[1])
	}
	if m := noFile.FindStringSubmatch(said); m != nil {
		if pkg := runtimes[m[1]]; pkg != "" {
			return fmt.Sprintf("%s is not installed, the worker needs it: %s", m[1], toInstall(pkg))
		}
		if l.runtime != "" {
			return fmt.Sprintf("%s is not installed: %s", m[1], toInstall(l.runtime))
		}
		return said + andNeeds(l.needs)
	}
	if m := noSymbol.FindStringSubmatch(said); m != nil {
		return fmt.Sprintf("its library is another version than its module was built for, it has no %s: build mixdown here (make build)", m[1])
	}
	return said
}

func andNeeds(needs string) string {
	if needs == "" {
		return ""
	}
	return "; it needs " + needs + " when it runs"
}
