package native_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// The way in which MPICH's waiting ranks are made to give up the processor when they
// hold no lock.
func TestRebind(t *testing.T) {
	out, err := exec.Command(filepath.Join(filepath.Dir(worker(t)), "testing", "rebind-check")).CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
