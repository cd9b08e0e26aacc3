package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licences are texts and what stands under each.
type licences struct {
	texts []string            // in the order in which they came
	under map[string][]string // names, by text
}

// licenceFile are the names that such files have; an Apache licence wants the
// NOTICE passed on too.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]es?|copying|notice|patents|third[-_]party[-_]notices)([-._].*)?$`)

func (l *licences) add(name, text string) {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	if l.under == nil {
		l.under = map[string][]string{}
	}
	if _, ok := l.under[text]; !ok {
		l.texts = append(l.texts, text)
	}
	if !slices.Contains(l.under[text], name) {
		l.under[text] = append(l.under[text], name)
	}
}

// addFile adds NAME=FILE: what is in the package but no module of Go.
func (l *licences) addFile(arg string) error {
	name, path, ok := strings.Cut(arg, "=")
	if !ok {
		return fmt.Errorf("%q is not NAME=FILE", arg)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("the licence of %s: %w", name, err)
	}
	l.add(name, string(text))
	return nil
}

// linked reads the licences of every module that a program links packages of, in
// the folders of those packages and above them: a module may hold code of others
// under other terms. One without any is an error.
func linked(program string) (*licences, error) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}", program)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("what %s links: %w: %s", program, err, stderr.String())
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("where Go is: %w", err)
	}
	list := &licences{}
	if err := list.addFile("Go's standard library=" + filepath.Join(strings.TrimSpace(string(goroot)), "LICENSE")); err != nil {
		return nil, err
	}
	lines := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(string(out), " ", "@"), "\t", "|"))
	slices.Sort(lines)
	found, tops := map[string]int{}, map[string]string{}
	for _, line := range lines {
		part := strings.Split(line, "|")
		if len(part) != 3 {
			return nil, fmt.Errorf("go list says %q", line)
		}
		n, err := list.addAbove(part[0], part[1], part[2])
		if err != nil {
			return nil, err
		}
		found[part[0]] += n
		tops[part[0]] = part[1]
	}
	for _, module := range slices.Sorted(maps.Keys(found)) {
		if found[module] == 0 && !list.addReadme(module, tops[module]) {
			return nil, fmt.Errorf("no licence is in %s, which mixdown links: it can't be passed on", module)
		}
	}
	return list, nil
}

// addAbove adds the files of a package's folder and those up to its module's, and
// says how many they are.
func (l *licences) addAbove(module, top, dir string) (int, error) {
	n := 0
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return n, err
		}
		for _, e := range entries {
			if e.IsDir() || !licenceFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return n, err
			}
			name := module
			if rel, err := filepath.Rel(top, dir); err == nil && rel != "." {
				name += "/" + filepath.ToSlash(rel)
			}
			l.add(name, string(text))
			n++
		}
		if dir == top || !strings.HasPrefix(dir, top) {
			return n, nil
		}
		dir = filepath.Dir(dir)
	}
}

// addReadme adds the licence that stands in a module's README, in the words of the
// MIT and BSD licences; false when none does.
func (l *licences) addReadme(module, top string) bool {
	text, err := os.ReadFile(filepath.Join(top, "README.md"))
	if err != nil || !permission.Match(text) {
		return false
	}
	l.add(module, string(text))
	return true
}

var permission = regexp.MustCompile(`(?i)permission is hereby granted, free of charge|redistribution and use in source and binary forms`)

func (l *licences) text() string {
	var b strings.Builder
	b.WriteString("mixdown contains software of others, under the terms below.\n")
	for _, text := range l.texts {
		b.WriteString("\n" + strings.Repeat("=", 72) + "\n")
		for _, name := range l.under[text] {
			b.WriteString(name + "\n")
		}
		b.WriteString(strings.Repeat("-", 72) + "\n" + text + "\n")
	}
	return b.String()
}
