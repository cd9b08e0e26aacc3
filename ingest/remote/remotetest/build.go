package remotetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
)

// build makes a program of a module beside this file, unless it was made before,
// and returns its path.
func build(module, pkg string) (string, error) {
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return "", fmt.Errorf("the place of the sources is not known")
	}
	module = filepath.Join(filepath.Dir(here), filepath.FromSlash(module))
	out := filepath.Join(filepath.Dir(here), "..", "..", "..", "build", "stores")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", err
	}
	program := filepath.Join(out, path.Base(pkg))
	made, err := os.Stat(program)
	wanted, wantErr := os.Stat(filepath.Join(module, "go.mod"))
	if err == nil && wantErr == nil && made.ModTime().After(wanted.ModTime()) {
		return program, nil
	}
	// Several tests may do this at once.
	temporary := fmt.Sprintf("%s.%d", program, os.Getpid())
	cmd := exec.Command("go", "build", "-o", temporary, pkg)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w: %s", pkg, err, bytes.TrimSpace(text))
	}
	return program, os.Rename(temporary, program)
}
