package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mixdown/replay/cluster/clusterpb"
	"mixdown/replay/launch"
	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
)

func testWorker(t *testing.T) launch.Worker {
	t.Helper()
	path := os.Getenv("MIXDOWN_WORKER")
	if path == "" {
		path, _ = filepath.Abs("../../bin/mixdown-worker")
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "libmixdown_gloo.so")); err != nil {
		t.Skipf("the worker or its module for Gloo is not built: %v", err)
	}
	return launch.Worker{Path: path}
}

// experiment is of all_reduces of all ranks, and a message from the last to the first.
func experiment(ranks, iterations int) *planpb.Experiment {
	w := &planpb.Workload{WorldSize: int32(ranks), Groups: []*planpb.Group{{Name: "all"}}}
	for r := range int32(ranks) {
		w.Groups[0].Ranks = append(w.Groups[0].Ranks, r)
		p := &planpb.Program{Rank: r, Streams: []*planpb.Stream{{Name: "stream"}}}
		for seq := range int64(5) {
			p.Tasks = append(p.Tasks, &planpb.Task{Id: int32(seq), Kind: &planpb.Task_Communication{Communication: &planpb.Communication{
				Op: planpb.Op_OP_ALL_REDUCE, Seq: seq, Dtype: planpb.DType_DTYPE_FLOAT32, InCount: 1000, OutCount: 1000,
				ReduceOp: planpb.ReduceOp_REDUCE_OP_SUM, Backend: "gloo"}}})
		}
		w.Programs = append(w.Programs, p)
	}
	last := int32(ranks - 1)
	w.Programs[last].Tasks = append(w.Programs[last].Tasks, &planpb.Task{Id: 5, Kind: &planpb.Task_Communication{Communication: &planpb.Communication{
		Op: planpb.Op_OP_SEND, Dtype: planpb.DType_DTYPE_FLOAT32, InCount: 64, Backend: "gloo", Transfers: []*planpb.Transfer{{Send: true, Peer: 0, Count: 64}}}}})
	w.Programs[0].Tasks = append(w.Programs[0].Tasks, &planpb.Task{Id: 5, Kind: &planpb.Task_Communication{Communication: &planpb.Communication{
		Op: planpb.Op_OP_RECV, Dtype: planpb.DType_DTYPE_FLOAT32, OutCount: 64, Backend: "gloo", Transfers: []*planpb.Transfer{{Peer: last, Count: 64}}}}})
	return &planpb.Experiment{SchemaVersion: 1, Plans: []*planpb.Plan{{Name: "traced", Workload: w}},
		Settings: &planpb.Settings{Iterations: int32(iterations), Warmup: 1, Verify: true, SpanMode: planpb.SpanMode_SPAN_MODE_SLEEP}}
}

// TestSettings: settings of a run reach its workers, wherever they are.
func TestSettings(t *testing.T) {
	worker := testWorker(t)
	seen := filepath.Join(t.TempDir(), "seen")
	script := filepath.Join(t.TempDir(), "worker")
	text := fmt.Sprintf("#!/bin/sh\necho \"$MIXDOWN_A_SETTING\" >>%s\nexec %s --modules %s \"$@\"\n", seen, worker.Path, filepath.Dir(worker.Path))
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	j := newJobOf(t, launch.Worker{Path: script}, 2)
	run := launch.Worker{Path: worker.Path, Env: []string{"MIXDOWN_A_SETTING=ring"}}
	if _, err := run.Run(context.Background(), experiment(2, 1), launch.Options{Starter: j.leader.Starter(nil)}); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(seen); err != nil || string(data) != "ring\nring\n" {
		t.Errorf("the workers saw %q, %v", data, err)
	}
}

// job is a leader with n members, all in this process, with workers of their own.
type job struct {
	leader *Leader
	worker launch.Worker
	cancel []context.CancelFunc // of each member
	ended  chan error
}

func newJob(t *testing.T, n int) *job {
	t.Helper()
	return newJobOf(t, testWorker(t), n)
}

func newJobOf(t *testing.T, worker launch.Worker, n int) *job {
	t.Helper()
	j := &job{worker: worker, ended: make(chan error, n)}
	var err error
	if j.leader, err = Listen(LeaderOptions{Address: "127.0.0.1:0", Token: "secret", Patience: 20 * time.Second}); err != nil {
		t.Fatal(err)
	}
	for r := range n {
		ctx, cancel := context.WithCancel(context.Background())
		j.cancel = append(j.cancel, cancel)
		go func() {
			code, err := Join(ctx, JoinOptions{Leader: fmt.Sprintf("127.0.0.1:%d", j.leader.Port()), Token: "secret", Worker: j.worker,
				Task: Task{Rank: r, Size: n, LocalRank: -1}})
			if err == nil && code != 0 {
				err = fmt.Errorf("exit code %d", code)
			}
			j.ended <- err
		}()
	}
	t.Cleanup(func() {
		j.leader.Close(0)
		for range n {
			select {
			case <-j.ended:
			case <-time.After(30 * time.Second):
				t.Error("a member does not end")
			}
		}
	})
	return j
}

// TestRun: two runs on the same members, with the data checked, and the results in the
// leader's folder.
func TestRun(t *testing.T) {
	j := newJob(t, 3)
	for range 2 {
		results, err := j.worker.Run(context.Background(), experiment(3, 4), launch.Options{Dir: t.TempDir(), Starter: j.leader.Starter(nil)})
		if err != nil {
			t.Fatal(err)
		}
		p := results.Plans[0]
		if !p.Verified() || len(p.Iterations) != 4 || p.Elements == 0 {
			t.Errorf("verified %t, %d iterations, %d elements; expected all data right in 4 iterations", p.Verified(), len(p.Iterations), p.Elements)
		}
		for i, ns := range p.Iterations {
			if ns <= 0 || ns > int64(5*time.Second) {
				t.Errorf("iteration %d took %d ns", i, ns)
			}
		}
		if len(results.Hosts) != 1 || len(results.Hosts[0].Workers) != 3 {
			t.Errorf("hosts %+v: expected one with three workers", results.Hosts)
		}
	}
}

// TestKilledWorker: the account names the rank and its host; what was measured is kept;
// the members are there for the next run.
func TestKilledWorker(t *testing.T) {
	j := newJob(t, 3)
	dir := t.TempDir()
	killed := false
	_, err := j.worker.Run(context.Background(), experiment(3, 1_000_000), launch.Options{Dir: dir, Starter: j.leader.Starter(nil), Timeout: 10 * time.Second, Progress: func(p launch.Progress) {
		if p.State == launch.Timing && p.Iteration > 20 && !killed {
			killed = true
			j.leader.mu.Lock()
			m := j.leader.members[1]
			j.leader.mu.Unlock()
			m.mu.Lock()
			pid := m.status.PID
			m.mu.Unlock()
			if err := syscall.Kill(int(pid), syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}})
	if !errors.Is(err, launch.ErrFailed) {
		t.Fatalf("run: %v; expected ErrFailed", err)
	}
	for _, want := range []string{"rank 1 died", "rank 0 on ", "rank 2 on ", "all_reduce", `group "all"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the account lacks %q:\n%v", want, err)
		}
	}
	runs, _ := filepath.Glob(filepath.Join(dir, "run-*"))
	if len(runs) != 1 {
		t.Fatalf("%d runs are kept", len(runs))
	}
	k, err := launch.ReadKept(runs[0])
	if err != nil {
		t.Fatal(err)
	}
	if n := len(k.Plans[0].Iterations); n < 10 {
		t.Errorf("%d iterations are kept, expected those before the kill", n)
	}
	if _, err := j.worker.Run(context.Background(), experiment(3, 2), launch.Options{Starter: j.leader.Starter(nil)}); err != nil {
		t.Errorf("the run after it: %v", err)
	}
}

// TestLostMember: a task whose connection ends is lost, and can't come back.
func TestLostMember(t *testing.T) {
	j := newJob(t, 2)
	once := false
	_, err := j.worker.Run(context.Background(), experiment(2, 1_000_000), launch.Options{Dir: t.TempDir(), Starter: j.leader.Starter(nil), Progress: func(p launch.Progress) {
		if p.State == launch.Timing && p.Iteration > 5 && !once {
			once = true
			j.cancel[1]()
		}
	}})
	if err == nil || !strings.Contains(err.Error(), "rank 1 on ") || !strings.Contains(err.Error(), "is lost, while in the timed iterations: its connection ended") {
		t.Errorf("run: %v; expected that rank 1 is lost", err)
	}
	_, err = Join(context.Background(), JoinOptions{Leader: fmt.Sprintf("127.0.0.1:%d", j.leader.Port()), Token: "secret", Worker: j.worker,
		Task: Task{Rank: 1, Size: 2, LocalRank: -1}})
	if err == nil || !strings.Contains(err.Error(), "can't take tasks in again") {
		t.Errorf("coming back: %v; expected to be refused", err)
	}
}

// TestRefused: who does not fit is told why.
func TestRefused(t *testing.T) {
	leader, err := Listen(LeaderOptions{Address: "127.0.0.1:0", Token: "secret", Version: "2"})
	if err != nil {
		t.Fatal(err)
	}
	defer leader.Close(0)
	at := fmt.Sprintf("127.0.0.1:%d", leader.Port())
	for _, c := range []struct {
		name string
		o    JoinOptions
		want string
	}{
		{"token", JoinOptions{Token: "guess", Version: "2", Task: Task{Rank: 0, Size: 2}}, "does not know the job's token"},
		{"version", JoinOptions{Token: "secret", Version: "1", Task: Task{Rank: 0, Size: 2}}, "runs mixdown 1, the leader 2"},
		{"rank", JoinOptions{Token: "secret", Version: "2", Task: Task{Rank: 2, Size: 2}}, "rank 2 of 2 tasks"},
		{"restart", JoinOptions{Token: "secret", Version: "2", Task: Task{Rank: 1, Size: 2, Restarts: 1}}, "restart 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Leader = at
			_, err := Join(context.Background(), c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("join: %v; expected %q", err, c.want)
			}
		})
	}
}

// TestSteeredApart: check E9 where each host knows its own environment alone.
func TestSteeredApart(t *testing.T) {
	at := func(steering map[string]string) *member {
		return newMember(nil, &clusterpb.Hello{Host: "node", Steering: steering})
	}
	ring, tree := map[string]string{"NCCL_ALGO": "a"}, map[string]string{"NCCL_ALGO": "b"}
	if err := alikeSteered([]*member{at(ring), at(ring)}); err != nil {
		t.Error(err)
	}
	for name, members := range map[string][]*member{
		"another value": {at(ring), at(ring), at(tree)}, "one more": {at(nil), at(nil), at(ring)}, "one less": {at(ring), at(ring), at(nil)},
	} {
		err := alikeSteered(members)
		if !errors.Is(err, mix.ErrDeadlock) || !strings.Contains(err.Error(), "E9 rank 0 on node and rank 2 on node have different values") || !strings.Contains(err.Error(), "NCCL_ALGO") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWrongNumber: a job of other size than the traces is refused, and says which is
// which.
func TestWrongNumber(t *testing.T) {
	j := newJob(t, 2)
	_, err := j.worker.Run(context.Background(), experiment(3, 1), launch.Options{Dir: t.TempDir(), Starter: j.leader.Starter(nil)})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "the traces are of 3 ranks, the job has 2 tasks: start it with 3") {
		t.Errorf("run: %v", err)
	}
}

// TestMissing: tasks that never join are named.
func TestMissing(t *testing.T) {
	worker := testWorker(t)
	leader, err := Listen(LeaderOptions{Address: "127.0.0.1:0", Patience: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer leader.Close(0)
	_, err = worker.Run(context.Background(), experiment(3, 1), launch.Options{Dir: t.TempDir(), Starter: leader.Starter(nil)})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "no task of rank 0, 1, 2 has joined of 3") {
		t.Errorf("run: %v", err)
	}
}
