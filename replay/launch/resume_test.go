package launch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"
)

// TestResume: what a killed run completed is not run again, and does not count when
// the plan or the settings are others.
func TestResume(t *testing.T) {
	w, dir := testWorker(t), t.TempDir()
	suffer(t, w, dir, func(pids []int) { _ = syscall.Kill(pids[0], syscall.SIGKILL) })
	run, _ := filepath.Glob(filepath.Join(dir, "run-*"))
	k, err := ReadKept(run[0])
	if err != nil {
		t.Fatal(err)
	}
	done := k.complete()
	exp := endless("gloo")
	exp.Settings.Iterations = int32(done) + 5
	results, err := w.Run(context.Background(), exp, Options{Resume: dir})
	if err != nil {
		t.Fatal(err)
	}
	p := results.Plans[0]
	if len(p.Iterations) != done+5 || len(p.Ranks[2]) != done+5 {
		t.Fatalf("%d iterations, %d of worker 2, want %d", len(p.Iterations), len(p.Ranks[2]), done+5)
	}
	for i := range done {
		if p.Iterations[i] != k.Plans[0].Iterations[i] {
			t.Fatalf("iteration %d took %d ns, the kept run says %d", i, p.Iterations[i], k.Plans[0].Iterations[i])
		}
	}

	other := proto.CloneOf(exp)
	other.Plans[0].Workload.Programs[1].Tasks[0].GetCommunication().InCount++
	if _, err := findKept(dir, other, true); !errors.Is(err, ErrCannotResume) || !strings.Contains(err.Error(), `plan 0, "endless", is not the same`) {
		t.Errorf("another plan: %v", err)
	}
	other = proto.CloneOf(exp)
	other.Settings.Warmup = 9
	if _, err := findKept(dir, other, true); !errors.Is(err, ErrCannotResume) || !strings.Contains(err.Error(), "other settings") {
		t.Errorf("other settings: %v", err)
	}
	here := k.Experiment.Plans[0].Workload.Programs[1].Place
	if here.GetHost() == "" || here.GetEnvironment() == "" || exp.Plans[0].Workload.Programs[1].Place != nil {
		t.Errorf("the run was at %v, the plan is now at %v", here, exp.Plans[0].Workload.Programs[1].Place)
	}
	if _, err := findKept(dir, placed(exp, direct, true), true); err != nil {
		t.Errorf("the same environment: %v", err)
	}
	t.Setenv("NCCL_ALGO", "Tree")
	if _, err := findKept(dir, placed(exp, direct, true), true); !errors.Is(err, ErrCannotResume) || !strings.Contains(err.Error(), "another environment") {
		t.Errorf("another environment: %v", err)
	}
	if _, err := findKept(t.TempDir(), exp, true); !errors.Is(err, ErrCannotResume) {
		t.Errorf("nothing kept: %v", err)
	}
}

// TestReadKept: a result file may end anywhere.
func TestReadKept(t *testing.T) {
	w, dir := testWorker(t), t.TempDir()
	exp := endless("gloo")
	exp.Settings.Iterations = 8
	if _, err := w.Run(context.Background(), exp, Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	run, _ := filepath.Glob(filepath.Join(dir, "run-*"))
	file := filepath.Join(run[0], "result.1.pb")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	last := 8
	for size := len(whole); size >= 0; size-- {
		if err := os.WriteFile(file, whole[:size], 0o644); err != nil {
			t.Fatal(err)
		}
		k, err := ReadKept(run[0])
		if err != nil {
			t.Fatalf("cut to %d bytes: %v", size, err)
		}
		if n := k.complete(); n > last || n < last-1 {
			t.Fatalf("cut to %d bytes: %d iterations after %d", size, n, last)
		} else {
			last = n
		}
	}
	if last != 0 {
		t.Errorf("%d iterations of an empty file", last)
	}
}
