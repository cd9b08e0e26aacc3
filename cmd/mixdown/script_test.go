package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"mixdown/cmd/mixdown/root"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

// TestMain lets the scripts run mixdown: this test binary, called by that name,
// is the program.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"mixdown":  func() { os.Exit(root.Main(os.Args[1:])) },
		"longwire": longWire,
	})
}

// TestScripts runs whole command lines, each script one behaviour.
func TestScripts(t *testing.T) {
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	worker := os.Getenv("MIXDOWN_WORKER")
	if worker == "" {
		worker = filepath.Join(repository, "bin", "mixdown-worker")
	}
	if _, err := os.Stat(worker); err != nil {
		t.Fatalf("the worker is not built (%v): run make build", err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("MIXDOWN_WORKER", worker)
			env.Setenv("BIN", filepath.Dir(worker))
			env.Setenv("TESTDATA", filepath.Join(repository, "testdata"))
			env.Setenv("CORPUS", os.Getenv("MIXDOWN_CORPUS"))
			env.Setenv("HOME", env.WorkDir)
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "corpus":
				return os.Getenv("MIXDOWN_CORPUS") != "", nil
			case "mpi":
				_, a := os.Stat(filepath.Join(filepath.Dir(worker), "libmixdown_openmpi.so"))
				return a == nil, nil
			case "ucx":
				_, err := os.Stat(filepath.Join(filepath.Dir(worker), "libmixdown_ucx.so"))
				return err == nil, nil
			case "emulated":
				_, err := os.Stat(filepath.Join(filepath.Dir(worker), "testing", "emulated", "libcuda.so.1"))
				return err == nil, nil
			case "hosts":
				return canMakeHosts(), nil
			case "zfp":
				return exec.Command(worker, "--probe-codec", "zfp").Run() == nil, nil
			case "gpu":
				return exec.Command(worker, "--probe-device", "cuda").Run() == nil, nil
			}
			return false, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"json": jsonCommand, "same": sameCommand, "predictedalike": predictedAlike, "exitcode": exitCode, "killworker": killWorker, "noworkers": noWorkers, "hosts": makeHosts, "contended": contended,
		},
	})
}
