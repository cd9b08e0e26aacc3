package native_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The example of README.md, built as README.md says, does everything that a
// backend must, on its own and beside Gloo.
func TestExampleBackend(t *testing.T) {
	compiler := os.Getenv("CXX")
	if compiler == "" {
		compiler = "c++"
	}
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skipf("no C++ compiler: %v", err)
	}
	modules := t.TempDir()
	module := filepath.Join(modules, "libmixdown_files.so")
	build := exec.Command(compiler, "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", "-Iinclude",
		"example/files_backend.cpp", "-o", module)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	t.Run("probe", func(t *testing.T) {
		out, err := exec.Command(worker(t), "--probe", "files", "--modules", modules).Output()
		if err != nil {
			t.Fatal(err)
		}
		var info struct {
			Operations []struct {
				Op     string
				Native bool
			}
		}
		if err := json.Unmarshal(out, &info); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, o := range info.Operations {
			if native := o.Op == "barrier" || o.Op == "send" || o.Op == "recv" || o.Op == "batch"; o.Native != native {
				t.Errorf("%+v", o)
			}
		}
	})

	t.Run("matrix", func(t *testing.T) {
		w, _ := matrix(3, "files")
		e := experiment(w)
		e.Settings.Iterations, e.Settings.Warmup = 0, 0
		start(t, e, launch{modules: modules}).done(t, e)
	})

	t.Run("beside gloo", func(t *testing.T) {
		gloo := filepath.Join(filepath.Dir(worker(t)), "libmixdown_gloo.so")
		need(t, filepath.Dir(worker(t)), "gloo")
		if err := os.Symlink(gloo, filepath.Join(modules, "libmixdown_gloo.so")); err != nil {
			t.Fatal(err)
		}
		b := newBuilder(2, 2, "files")
		for k := range 10 {
			b.collective(opAR, f32, plus, 0, 0, 1000, k%2)
			b.backend = []string{"gloo", "files"}[k%2]
		}
		e := experiment(b.w)
		start(t, e, launch{modules: modules}).done(t, e)
	})
}
