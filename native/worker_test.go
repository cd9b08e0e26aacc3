package native_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
)

var backends = []string{"gloo", "openmpi", "mpich", "ucx"}

// direct are those whose workers need no launcher.
var direct = []string{"gloo", "ucx"}

const (
	f32  = planpb.DType_DTYPE_FLOAT32
	f16  = planpb.DType_DTYPE_FLOAT16
	i8   = planpb.DType_DTYPE_INT8
	opAR = planpb.Op_OP_ALL_REDUCE
	plus = planpb.ReduceOp_REDUCE_OP_SUM
)

// Groups that overlap and are not in rank order, streams that share a group,
// dependencies between streams, messages to self in separate tasks.
func TestGroupsAndStreams(t *testing.T) {
	for _, backend := range backends {
		t.Run(backend, func(t *testing.T) {
			need(t, filepath.Dir(worker(t)), backend)
			b := newBuilder(4, 3, backend)
			left, right, reversed := b.group(0, 1, 2), b.group(1, 2, 3), b.group(3, 1)
			same := b.group(0, 1, 2, 3)
			for k := range 20 {
				count := int64(1 + 1000*k)
				b.collective(planpb.Op_OP_REDUCE_SCATTER, f32, plus, left, 0, count, 0)
				b.collective(planpb.Op_OP_ALL_TO_ALLV, f32, plus, right, 0, count, 0)
				b.collective(planpb.Op_OP_GATHER, f16, plus, reversed, 1, count, 0)
				b.collective(planpb.Op_OP_BROADCAST, i8, plus, reversed, 0, count, 0)
				// The same group from two streams, and another communicator of
				// the same ranks.
				b.collective(opAR, f32, plus, 0, 0, count, 1+k%2)
				b.collective(opAR, f32, plus, 0, 0, 1, 2-k%2)
				b.collective(planpb.Op_OP_ALL_GATHER, f32, plus, same, 0, count, 0)
				b.ring(0, f32, count, 2)
				b.ring(reversed, f32, count, 1)
				for r := range 4 {
					last := int32(len(b.w.Programs[r].Tasks) - 1)
					b.add(r, k%3, &planpb.Task{Kind: &planpb.Task_Wait{Wait: &planpb.Wait{}}}, last)
				}
			}
			for r := range 4 {
				b.sendRecv(0, r, r, f32, 99, 0)
			}
			e := experiment(b.w)
			e.Settings.Iterations = 5
			start(t, e, launch{backend: backend}).done(t, e)
		})
	}
}

// The worlds of traces are larger than what is replayed: workers are positions,
// ranks are names.
func TestRanksWithoutProgram(t *testing.T) {
	need(t, filepath.Dir(worker(t)), "gloo")
	b := newBuilder(3, 1, "gloo")
	b.collective(planpb.Op_OP_SCATTER, f32, plus, 0, 2, 5, 0)
	b.ring(0, f32, 3, 0)
	rename := map[int32]int32{0: 3, 1: 8, 2: 40}
	b.w.WorldSize = 64
	b.w.Groups[0].Ranks = []int32{3, 8, 40}
	b.w.Groups = append(b.w.Groups, &planpb.Group{Ranks: []int32{0, 63}})
	for _, p := range b.w.Programs {
		p.Rank = rename[p.Rank]
		for _, task := range p.Tasks {
			c := task.GetCommunication()
			c.Root = rename[c.Root]
			for _, tr := range c.Transfers {
				tr.Peer = rename[tr.Peer]
			}
		}
	}
	e := experiment(b.w)
	start(t, e, launch{backend: "gloo"}).done(t, e)
}

// Two plans of one job, on different mixes, measured alternately.
func TestMixedBackends(t *testing.T) {
	for _, pair := range [][2]string{{"gloo", "openmpi"}, {"gloo", "mpich"}, {"gloo", "ucx"}, {"ucx", "openmpi"}, {"ucx", "mpich"}, {"ucx", "ucx:tcp"}} {
		first, other := pair[0], pair[1]
		t.Run(first+" and "+other, func(t *testing.T) {
			need(t, filepath.Dir(worker(t)), first)
			need(t, filepath.Dir(worker(t)), mix.Library(other))
			var plans []*planpb.Workload
			for _, second := range []string{first, other} {
				b := newBuilder(3, 2, first)
				for k := range 10 {
					b.backend = first
					b.collective(opAR, f32, plus, 0, 0, 5000, k%2)
					b.backend = second
					b.collective(planpb.Op_OP_ALL_TO_ALL, f32, plus, 0, 0, 500, 1-k%2)
				}
				plans = append(plans, b.w)
			}
			e := experiment(plans...)
			e.Settings.Iterations = 10
			all := start(t, e, launch{backend: other}).done(t, e)
			if n := len(all[0][0].GetHeader().Backends); n != 2 {
				t.Errorf("%d backends in the header, want 2", n)
			}
			orders := map[string]bool{}
			for _, records := range all {
				var order strings.Builder
				for _, r := range records {
					if it := r.GetIteration(); it != nil {
						fmt.Fprint(&order, it.Plan)
					}
				}
				orders[order.String()] = true
			}
			if len(orders) != 1 {
				t.Errorf("ranks ran the plans in different orders: %v", orders)
			}
			for order := range orders {
				if order == strings.Repeat("01", 10) {
					t.Errorf("plans are not permuted: %s", order)
				}
			}
		})
	}
}

// Spans take the time they should, on the virtual clock exactly.
func TestSpans(t *testing.T) {
	need(t, filepath.Dir(worker(t)), "gloo")
	const offset, short, n = 3_000_000, 20_000, 200
	b := newBuilder(2, 2, "gloo")
	for r := range 2 {
		b.w.Programs[r].StartOffsetNs = int64(r) * offset
		for range n {
			b.span(r, 0, short)
		}
		b.span(r, 1, 5_000_000, int32(n-1))
		b.add(r, 0, &planpb.Task{Kind: &planpb.Task_Wait{Wait: &planpb.Wait{}}}, int32(n))
	}
	b.collective(planpb.Op_OP_BARRIER, f32, plus, 0, 0, 0, 0)
	for _, mode := range []planpb.SpanMode{planpb.SpanMode_SPAN_MODE_SLEEP, planpb.SpanMode_SPAN_MODE_SPIN} {
		e := experiment(b.w)
		e.Settings.SpanMode = mode
		for r, records := range start(t, e, launch{backend: "gloo"}).done(t, e) {
			for _, record := range records {
				it := record.GetIteration()
				if it == nil || len(it.Tasks) == 0 {
					continue
				}
				begin := it.StartNs + int64(r)*offset
				if got := it.Tasks[0].StartNs; got != begin {
					t.Errorf("rank %d starts %d ns late", r, got-begin)
				}
				if got, want := it.Tasks[n].EndNs-begin, int64(n*short+5_000_000); got != want {
					t.Errorf("rank %d: spans end after %d ns, want %d", r, got, want)
				}
				barrier := it.Tasks[n+2]
				if got := barrier.StartNs - it.Tasks[n].EndNs; got < 0 || got > 1e9 {
					t.Errorf("rank %d: barrier starts %d ns after it could", r, got)
				}
				if it.EndNs < it.StartNs+offset+n*short+5_000_000 {
					t.Errorf("rank %d: the barrier did not wait for the late rank", r)
				}
			}
		}
	}
}

func TestInvalidExperiments(t *testing.T) {
	need(t, filepath.Dir(worker(t)), "gloo")
	comm := func(e *planpb.Experiment, rank, task int) *planpb.Communication {
		return e.Plans[0].Workload.Programs[rank].Tasks[task].GetCommunication()
	}
	for name, c := range map[string]struct {
		break_ func(e *planpb.Experiment)
		want   string
	}{
		"version":   {func(e *planpb.Experiment) { e.SchemaVersion = 7 }, "schema_version is 7"},
		"span mode": {func(e *planpb.Experiment) { e.Settings.SpanMode = 0 }, "span_mode"},
		"op":        {func(e *planpb.Experiment) { comm(e, 1, 0).Op = 99 }, "plan 0: rank 1: task 0: op is not set or unknown"},
		"dtype":     {func(e *planpb.Experiment) { comm(e, 0, 0).Dtype = 0 }, "dtype is not set"},
		"reduce op": {func(e *planpb.Experiment) { comm(e, 0, 0).ReduceOp = 0 }, "reduce_op is not set"},
		"buffer":    {func(e *planpb.Experiment) { comm(e, 0, 0).OutBuffer = -1 }, "in_buffer or out_buffer is negative"},
		"channels":  {func(e *planpb.Experiment) { comm(e, 0, 0).Channels = -1 }, "channels is -1"},
		"event": {func(e *planpb.Experiment) {
			event(e, &planpb.CommunicatorEvent{Group: 5, Kind: planpb.CommunicatorEvent_MADE})
		}, "communicator event 0: group 5 does not exist"},
		"no event": {func(e *planpb.Experiment) { event(e, &planpb.CommunicatorEvent{}) }, "neither made nor destroyed"},
		"event of none": {func(e *planpb.Experiment) {
			event(e, &planpb.CommunicatorEvent{Kind: planpb.CommunicatorEvent_DESTROYED, Before: 99})
		}, "it is before task 99"},
		"group":    {func(e *planpb.Experiment) { comm(e, 0, 0).Group = 5 }, "group 5 does not exist"},
		"group -1": {func(e *planpb.Experiment) { comm(e, 0, 0).Group = -1 }, "group -1 does not exist"},
		"no program": {func(e *planpb.Experiment) {
			w := e.Plans[0].Workload
			w.WorldSize = 3
			w.Groups[0].Ranks = []int32{0, 1, 2}
		}, "rank 2 of group 0 has no program"},
		"count": {func(e *planpb.Experiment) { comm(e, 0, 0).InCount = -1 }, "in_count is -1"},
		"huge": {func(e *planpb.Experiment) {
			for r := range 2 {
				c := comm(e, r, 0)
				c.InCount, c.OutCount = 1<<39, 1<<39
			}
		}, "MiB for their buffers"},
		"overflow":    {func(e *planpb.Experiment) { comm(e, 0, 0).InCount = 1 << 62 }, "in_count is"},
		"counts":      {func(e *planpb.Experiment) { comm(e, 0, 0).OutCount++ }, "in_count and out_count must be equal"},
		"disagree":    {func(e *planpb.Experiment) { c := comm(e, 0, 0); c.InCount++; c.OutCount++ }, "disagree on the count"},
		"seq":         {func(e *planpb.Experiment) { comm(e, 0, 0).Seq = 9 }, "does not take part"},
		"splits":      {func(e *planpb.Experiment) { comm(e, 0, 1).InSplits[0]++ }, "in_splits adds up to"},
		"split count": {func(e *planpb.Experiment) { c := comm(e, 0, 1); c.InSplits = c.InSplits[:1] }, "in_splits has 1 entries"},
		"peer":        {func(e *planpb.Experiment) { comm(e, 0, 2).Transfers[0].Peer = 77 }, "peer 77 is not in group"},
		"unmatched":   {func(e *planpb.Experiment) { comm(e, 0, 2).Transfers[0].Match = 77 }, "never"},
		"backend":     {func(e *planpb.Experiment) { comm(e, 0, 0).Backend = "../../x" }, "backend may only have"},
		"missing": {func(e *planpb.Experiment) {
			for r := range 2 {
				comm(e, r, 0).Backend = "nope"
			}
		}, "backend nope: "},
		"dependency": {func(e *planpb.Experiment) { e.Plans[0].Workload.Programs[0].Tasks[1].Deps = []int32{1} }, "dependency 1 is not an earlier task"},
		"stream":     {func(e *planpb.Experiment) { e.Plans[0].Workload.Programs[0].Tasks[1].Stream = 1 }, "stream 1 does not exist"},
		"id":         {func(e *planpb.Experiment) { e.Plans[0].Workload.Programs[0].Tasks[1].Id = 3 }, "not its index"},
		"kind":       {func(e *planpb.Experiment) { e.Plans[0].Workload.Programs[0].Tasks[1].Kind = nil }, "neither span nor"},
		"no plans":   {func(e *planpb.Experiment) { e.Plans = nil }, "no plans"},
		"float8":     {func(e *planpb.Experiment) { comm(e, 0, 0).Dtype = planpb.DType_DTYPE_FLOAT8_E4M3FN }, "all_reduce sum of float8_e4m3fn: 8-bit floats can only be moved"},
		"complex": {func(e *planpb.Experiment) {
			c := comm(e, 0, 0)
			c.Dtype, c.ReduceOp = planpb.DType_DTYPE_COMPLEX64, planpb.ReduceOp_REDUCE_OP_MAX
		}, "complex numbers only have sum"},
		"bool": {func(e *planpb.Experiment) {
			c := comm(e, 0, 0)
			c.Dtype, c.ReduceOp = planpb.DType_DTYPE_BOOL, planpb.ReduceOp_REDUCE_OP_AVG
		}, "bool has no average"},
		"bitwise": {func(e *planpb.Experiment) { comm(e, 0, 0).ReduceOp = planpb.ReduceOp_REDUCE_OP_BXOR }, "all_reduce bxor of float32: bitwise reductions are for integers"},
		"premul": {func(e *planpb.Experiment) {
			c := comm(e, 0, 0)
			c.Dtype, c.ReduceOp = planpb.DType_DTYPE_INT32, planpb.ReduceOp_REDUCE_OP_PREMUL_SUM
		}, "premul_sum is for floats"},
		"factor": {func(e *planpb.Experiment) {
			c := comm(e, 0, 0)
			c.ReduceOp, c.Factor = planpb.ReduceOp_REDUCE_OP_PREMUL_SUM, math.NaN()
		}, "factor is not a number"},
		"factors": {func(e *planpb.Experiment) {
			for r := range 2 {
				c := comm(e, r, 0)
				c.ReduceOp, c.Factor = planpb.ReduceOp_REDUCE_OP_PREMUL_SUM, float64(r)
			}
		}, "disagree on the factor"},
		"in place":       {func(e *planpb.Experiment) { comm(e, 0, 0).InPlace = true }, "disagree on being in place"},
		"batch in place": {func(e *planpb.Experiment) { comm(e, 0, 2).InPlace = true }, "batch cannot be in place"},
		"uneven in place": {func(e *planpb.Experiment) {
			for r := range 2 {
				comm(e, r, 1).InPlace = true
			}
		}, "in place in_splits and out_splits must be equal"},
		"part sums": {func(e *planpb.Experiment) { comm(e, 0, 0).Parts = []*planpb.Part{{InCount: 3, OutCount: 3}} }, "not the sums of its parts"},
		"parts": {func(e *planpb.Experiment) {
			comm(e, 0, 0).Parts = []*planpb.Part{{InCount: 3, OutCount: 3}, {InCount: 1, OutCount: 1}}
			comm(e, 1, 0).Parts = []*planpb.Part{{InCount: 2, OutCount: 2}, {InCount: 2, OutCount: 2}}
		}, "disagree on the parts"},
		"part counts": {func(e *planpb.Experiment) {
			comm(e, 0, 0).Parts = []*planpb.Part{{InCount: 3, OutCount: 1}, {InCount: 1, OutCount: 3}}
		}, "part 0: in_count and out_count must be equal"},
		"uneven parts": {func(e *planpb.Experiment) { comm(e, 0, 1).Parts = []*planpb.Part{{}} }, "all_to_allv cannot have parts"},
		"batch parts":  {func(e *planpb.Experiment) { comm(e, 0, 2).Parts = []*planpb.Part{{}} }, "batch cannot have parts"},
		"contradiction": {func(e *planpb.Experiment) {
			for r := range 2 {
				comm(e, r, 0).Seq, comm(e, r, 1).Seq = 1, 0
			}
		}, "can never run"},
		"two MPIs": {func(e *planpb.Experiment) {
			for r := range 2 {
				comm(e, r, 0).Backend, comm(e, r, 1).Backend = "openmpi", "mpich"
			}
		}, "a process can hold only one library of the family mpi"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "two MPIs" {
				need(t, filepath.Dir(worker(t)), "openmpi")
				need(t, filepath.Dir(worker(t)), "mpich")
			}
			b := newBuilder(2, 1, "gloo")
			b.collective(opAR, f32, plus, 0, 0, 4, 0)
			b.collective(planpb.Op_OP_ALL_TO_ALLV, f32, plus, 0, 0, 4, 0)
			b.ring(0, f32, 4, 0)
			good := experiment(b.w)
			bad := proto.Clone(good).(*planpb.Experiment)
			c.break_(bad)
			raw, err := proto.Marshal(bad)
			if err != nil {
				t.Fatal(err)
			}
			expectFailure(t, start(t, good, launch{raw: raw}), c.want)
		})
	}
	b := newBuilder(2, 1, "gloo")
	good := experiment(b.w)
	t.Run("garbage", func(t *testing.T) {
		expectFailure(t, start(t, good, launch{raw: []byte("\xff\xff\xff\xff garbage")}), "not a protobuf")
	})
	t.Run("empty", func(t *testing.T) {
		expectFailure(t, start(t, good, launch{raw: []byte{}}), "schema_version is 0")
	})
	t.Run("slots", func(t *testing.T) {
		j := start(t, good, launch{slots: 3})
		expectFailure(t, j, "it has 2 programs, the control file 3 workers")
	})
	t.Run("mpi without mpirun", func(t *testing.T) {
		need(t, filepath.Dir(worker(t)), "openmpi")
		b := newBuilder(2, 1, "openmpi")
		b.collective(opAR, f32, plus, 0, 0, 4, 0)
		expectFailure(t, start(t, experiment(b.w), launch{}), "start them with this library's own mpirun")
	})
}

// expectFailure wants the message from at least one worker, wherever it is told,
// and no good end of any.
func expectFailure(t *testing.T, j *job, want string) {
	t.Helper()
	j.wait()
	told := false
	for i, code := range j.codes {
		if code != 2 && code != 3 {
			t.Errorf("worker %d ended with %d", i, code)
		}
		if code != 2 {
			continue
		}
		s := j.slot(t, i)
		if s.state != 7 {
			t.Errorf("worker %d: state %d", i, s.state)
		}
		for _, r := range j.records(t, i) {
			if f := r.GetFailure(); f != nil && f.Message == s.message && strings.Contains(s.message, want) {
				told = true
			}
		}
	}
	if !told {
		t.Errorf("no failure with %q:\n%s", want, j.out.String())
	}
}

// endless is an experiment that takes longer than any test waits.
func endless(backend string) *planpb.Experiment {
	b := newBuilder(3, 1, backend)
	for r := range 3 {
		b.span(r, 0, 1_000_000)
	}
	b.collective(opAR, f32, plus, 0, 0, 1000, 0)
	e := experiment(b.w)
	e.Settings.Iterations = 1_000_000
	return e
}

// running waits until the workers have measured something.
func (j *job) running(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		ready := true
		for i := range j.size {
			s := j.slot(t, i)
			ready = ready && s.state == 5 && s.ended > 20
		}
		if ready {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("workers do not get going:\n%s", j.out.String())
		}
	}
}

// event is the only thing that rank 0 does with communicators.
func event(e *planpb.Experiment, x *planpb.CommunicatorEvent) {
	e.Plans[0].Workload.Programs[0].Communicators = []*planpb.CommunicatorEvent{x}
}

func TestStop(t *testing.T) {
	for _, backend := range backends {
		t.Run(backend, func(t *testing.T) {
			need(t, filepath.Dir(worker(t)), backend)
			j := start(t, endless(backend), launch{backend: backend})
			j.running(t)
			j.stop(t)
			begin := time.Now()
			j.wait()
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("workers took %v to leave", took)
			}
			for i, code := range j.codes {
				// MPICH's mpirun kills the others when the first leaves, and may tell
				// of that.
				if code != 3 && (backend != "mpich" || code != 9) {
					t.Errorf("process %d ended with %d, want 3:\n%s", i, code, j.out.String())
				}
			}
		})
	}
}

func TestKilledWorker(t *testing.T) {
	for _, backend := range direct {
		t.Run(backend, func(t *testing.T) { killed(t, backend) })
	}
}

func killed(t *testing.T, backend string) {
	need(t, filepath.Dir(worker(t)), backend)
	j := start(t, endless(backend), launch{})
	j.running(t)
	if err := syscall.Kill(int(j.slot(t, 1).pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	j.stop(t)
	j.wait()
	for _, i := range []int{0, 2} {
		// Gloo may notice the lost connection before the flag is seen.
		if code := j.codes[i]; code != 2 && code != 3 {
			t.Errorf("worker %d ended with %d", i, code)
		}
		// What was measured until then can be read.
		if records := j.records(t, i); records[0].GetHeader() == nil || len(records) < 3 {
			t.Errorf("worker %d left %d records", i, len(records))
		}
	}
}

func TestLauncherGone(t *testing.T) {
	for _, backend := range direct {
		t.Run(backend, func(t *testing.T) { launcherGone(t, backend) })
	}
}

func launcherGone(t *testing.T, backend string) {
	need(t, filepath.Dir(worker(t)), backend)
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	j := start(t, endless(backend), launch{pid: gone.Process.Pid})
	j.wait()
	for i, code := range j.codes {
		if s := j.slot(t, i); code != 3 || s.state != 9 {
			t.Errorf("worker %d ended with %d in state %d, want 3 and 9:\n%s", i, code, s.state, j.out.String())
		}
	}
}

func TestTerminated(t *testing.T) {
	for _, backend := range direct {
		t.Run(backend, func(t *testing.T) { terminated(t, backend) })
	}
}

func terminated(t *testing.T, backend string) {
	need(t, filepath.Dir(worker(t)), backend)
	j := start(t, endless(backend), launch{})
	j.running(t)
	for i := range j.size {
		// One that is gone already has lost its connection to the first.
		if err := syscall.Kill(int(j.slot(t, i).pid), syscall.SIGTERM); err != nil && err != syscall.ESRCH {
			t.Fatal(err)
		}
	}
	j.wait()
	seen := 0
	for i, code := range j.codes {
		if code == 143 {
			seen++
			if s := j.slot(t, i); s.state != 8 {
				t.Errorf("worker %d: state %d, want 8", i, s.state)
			}
		}
	}
	if seen == 0 {
		t.Errorf("exit codes %v, want 143 among them", j.codes)
	}
}

func TestProbe(t *testing.T) {
	path := worker(t)
	for _, backend := range backends {
		t.Run(backend, func(t *testing.T) {
			need(t, filepath.Dir(path), backend)
			out, err := exec.Command(path, "--probe", backend).Output()
			if err != nil {
				t.Fatal(err)
			}
			var info struct {
				Name, Version string
				Notes         []string
				Operations    []struct {
					Op         string
					Native     bool
					ComposedOf string `json:"composed_of"`
				}
			}
			if err := json.Unmarshal(out, &info); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if info.Name != backend || info.Version == "" || strings.ContainsRune(info.Version, 0) {
				t.Errorf("%+v", info)
			}
			if len(info.Operations) != len(planpb.Op_name)-1 {
				t.Errorf("%d operations, want %d", len(info.Operations), len(planpb.Op_name)-1)
			}
			for _, o := range info.Operations {
				composed := backend == "gloo" && slices.Contains([]string{"reduce_scatter", "reduce_scatterv", "gatherv", "scatterv"}, o.Op) ||
					backend == "ucx" && !slices.Contains([]string{"send", "recv", "batch"}, o.Op)
				if o.Native == composed || (o.ComposedOf != "") != composed {
					t.Errorf("%+v", o)
				}
			}
		})
	}
	out, err := exec.Command(path, "--probe", "nope").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "backend nope: ") {
		t.Errorf("%v: %s", err, out)
	}
	if err := exec.Command(path, "--experiment").Run(); err == nil {
		t.Error("wrong usage is no error")
	}
}
