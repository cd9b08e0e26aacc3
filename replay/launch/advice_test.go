package launch

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What glibc 2.36 writes, in the words of the worker that passes it on.
func TestExplain(t *testing.T) {
	for _, c := range []struct{ backend, said, want string }{
		{"gloo", "backend gloo: libgloo.so.0: cannot open shared object file: No such file or directory",
			"libgloo.so.0 is not installed: on Debian and Ubuntu: apt-get install libgloo0"},
		// A library that Gloo needs: the package manager sees to it.
		{"gloo", "backend gloo: libhiredis.so.0.14: cannot open shared object file: No such file or directory",
			"libhiredis.so.0.14 is not installed: on Debian and Ubuntu: apt-get install libgloo0"},
		{"openmpi", "backend openmpi: libmpi.so.40: cannot open shared object file: No such file or directory",
			"libmpi.so.40 is not installed: on Debian and Ubuntu: apt-get install openmpi-bin"},
		{"mpich", "backend mpich: libmpich.so.12: cannot open shared object file: No such file or directory",
			"libmpich.so.12 is not installed: on Debian and Ubuntu: apt-get install mpich"},
		{"ucx:tcp", "backend ucx: libucp.so.0: cannot open shared object file: No such file or directory",
			"libucp.so.0 is not installed: on Debian and Ubuntu: apt-get install libucx0"},
		{"gloo", "/opt/mixdown/bin/mixdown-worker: error while loading shared libraries: libstdc++.so.6: cannot open shared object file: No such file or directory",
			"libstdc++.so.6 is not installed, the worker needs it: on Debian and Ubuntu: apt-get install libstdc++6"},
		{"ucx", "backend ucx: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /opt/mixdown/bin/libmixdown_ucx.so)",
			"this system is older than the one its module was built on, GLIBCXX_3.4.30 is not there: build mixdown here (make build)"},
		{"gloo", "backend gloo: /opt/mixdown/bin/libmixdown_gloo.so: undefined symbol: _ZN4gloo7barrierERNS_14BarrierOptionsE",
			"its library is another version than its module was built for, it has no _ZN4gloo7barrierERNS_14BarrierOptionsE: build mixdown here (make build)"},
		{"nccl", "no CUDA driver: libcuda.so.1: cannot open shared object file: No such file or directory",
			"no CUDA driver: libcuda.so.1: cannot open shared object file: No such file or directory; it needs an NVIDIA GPU, its driver and NCCL (libnccl.so.2) when it runs"},
		{"mine", "backend mine: libmine.so.1: cannot open shared object file: No such file or directory",
			"backend mine: libmine.so.1: cannot open shared object file: No such file or directory"},
		{"mpich", "its library lost its way", "its library lost its way"},
	} {
		l, _ := find(c.backend)
		if got := l.explain(c.said); got != c.want {
			t.Errorf("%s said %q:\ngot  %s\nwant %s", c.backend, c.said, got, c.want)
		}
	}
}

// TestCheckAdvises: what is not there is told apart: the module, its mpirun, its
// library.
func TestCheckAdvises(t *testing.T) {
	dir := t.TempDir()
	worker := Worker{Path: filepath.Join(dir, "mixdown-worker")}
	script := "#!/bin/sh\necho \"mixdown-worker: backend $2: lib$2.so.7: cannot open shared object file: No such file or directory\" >&2\nexit 2\n"
	if err := os.WriteFile(worker.Path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	for _, name := range []string{"gloo", "mpich"} {
		if err := os.WriteFile(worker.module(name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"openmpi": "its module is not built: install openmpi-bin and libopenmpi-dev and run make build",
		"nccl":    "its module is not built: run make build; it needs an NVIDIA GPU, its driver and NCCL (libnccl.so.2) when it runs",
		"mpich":   "mpirun.mpich is not on PATH: on Debian and Ubuntu: apt-get install mpich",
		"gloo":    "libgloo.so.7 is not installed: on Debian and Ubuntu: apt-get install libgloo0",
		"ucc":     "this version of mixdown has no module for it; ucx has the messages that it is built on",
	} {
		b, err := worker.Check(context.Background(), name)
		if b.Reason != want || err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %q (%v), want %q", name, b.Reason, err, want)
		}
	}
}
