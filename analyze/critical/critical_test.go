package critical_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mixdown/analyze/collective"
	"mixdown/analyze/critical"
	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

func want(t *testing.T, r *critical.Result, path ...string) {
	t.Helper()
	if diff := cmp.Diff(path, lines(r)); diff != "" {
		t.Errorf("path (-want +got):\n%s", diff)
	}
}

func TestLaunchKernelWait(t *testing.T) {
	m := newRank(0, 130, 0)
	m.kernel(m.launch(10), 7, 15, 115)
	m.sync(20, 120)
	_, r, _ := build(t, m)
	want(t, r,
		"0.000-0.010 ms rank 0 host: host, 0.010 ms",
		"0.010-0.015 ms rank 0 stream 7: idle kernel15, 0.005 ms",
		"0.015-0.115 ms rank 0 stream 7: compute kernel15, 0.100 ms",
		"0.115-0.120 ms rank 0 host: host cudaDeviceSynchronize, 0.005 ms",
		"0.120-0.130 ms rank 0 host: host, 0.010 ms",
	)
	if r.Bound.Rank != 0 || r.Bound.Name != "kernel15" || !strings.Contains(r.Bound.Text, "rank 0 bounds the step with 0.130 ms (100 %)") {
		t.Errorf("bound %+v", r.Bound)
	}
}

// straggler is a step of two ranks; rank 1 computes longer before the collective.
func straggler() (*made, *made) {
	a, b := newRank(0, 110, 0, 1), newRank(1, 110, 0, 1)
	for i, m := range []*made{a, b} {
		computed := []int64{30, 70}[i]
		m.kernel(m.launch(5), 7, 10, computed)
		m.reduce(12, 20, computed+2, 100)
		m.sync(20, 101)
	}
	return a, b
}

func TestTheLastMemberBoundsACollective(t *testing.T) {
	a, b := straggler()
	_, r, _ := build(t, a, b)
	want(t, r,
		"0.000-0.005 ms rank 1 host: host, 0.005 ms",
		"0.005-0.010 ms rank 1 stream 7: idle kernel10, 0.005 ms",
		"0.010-0.070 ms rank 1 stream 7: compute kernel10, 0.060 ms",
		"0.070-0.072 ms rank 1 stream 20: idle kernel72, 0.002 ms",
		"0.072-0.100 ms rank 0 stream 20: communication-transfer all_reduce in group 0 (kernel32), 0.028 ms",
		"0.100-0.101 ms rank 0 host: host cudaDeviceSynchronize, 0.001 ms",
		"0.101-0.110 ms rank 0 host: host, 0.009 ms",
	)
	if r.Free.GainNS != 28*us || r.Free.StepNS != 82*us || r.Bound.Rank != 1 || !r.ClocksAligned {
		t.Errorf("free %+v, bound %+v", r.Free, r.Bound)
	}
	size := int64(1 << 20)
	if diff := cmp.Diff([]critical.ClassTotal{{
		Class: critical.Class{Group: "0", Op: comm.AllReduce, SizeFrom: &size}, Count: 1, Transfer: 28 * us,
	}}, r.ByClass); diff != "" {
		t.Errorf("classes (-want +got):\n%s", diff)
	}
}

// TestClocksThatDiffer: no join, and the wait told by the shortest member.
func TestClocksThatDiffer(t *testing.T) {
	for _, shift := range []int64{1e9, -1e9, 3e15} {
		a, b := straggler()
		b.shift = shift
		_, r, diags := build(t, a, b)
		if r.ClocksAligned || count(diags, "clocks-not-aligned") != 1 || r.StepNS != 110*us {
			t.Errorf("shift %d: %+v, %v", shift, r, diags.List())
		}
		if w := r.ByKind[3]; w.Kind != critical.KindWait || r.Bound.Rank == 0 && w.NS != 40*us {
			t.Errorf("shift %d: wait %+v", shift, w)
		}
	}
	a, b := straggler()
	b.shift = 1e9
	run := &trace.Run{Ranks: []*trace.Rank{a.moved(), b.moved()}}
	r, _, err := critical.Analyze(run, collective.Match(run), critical.Options{Offsets: []int64{0, 1e9}})
	if err != nil || !r.ClocksAligned || r.Free.GainNS != 28*us {
		t.Errorf("offsets given: %+v, %v", r, err)
	}
}

func TestHiddenCommunicationGainsNothing(t *testing.T) {
	a, b := newRank(0, 200, 0, 1), newRank(1, 200, 0, 1)
	for _, m := range []*made{a, b} {
		m.kernel(m.launch(5), 7, 10, 30)
		m.reduce(12, 20, 32, 100)
		m.kernel(m.launch(20), 7, 31, 150)
		m.sync(30, 151)
	}
	_, r, _ := build(t, a, b)
	if r.Free.GainNS != 0 || r.ByKind[1].NS != (20+119)*us {
		t.Errorf("free %+v, kinds %v", r.Free, r.ByKind)
	}
}

// TestWaitOfTheProgram: what is launched after a wait depends on the collective,
// and so does an unexplained start just after its end.
func TestWaitOfTheProgram(t *testing.T) {
	for _, waits := range []bool{true, false} {
		a, b := newRank(0, 200, 0, 1), newRank(1, 200, 0, 1)
		for _, m := range []*made{a, b} {
			m.kernel(m.launch(5), 7, 10, 30)
			m.reduce(12, 20, 32, 100)
			if waits {
				m.Waits = []trace.Wait{{TS: 14 * us}}
			}
			m.kernel(m.launch(20), 7, 104, 150)
			m.sync(30, 151)
		}
		_, r, _ := build(t, a, b)
		if r.Free.GainNS != 68*us {
			t.Errorf("wait recorded %v: free %+v", waits, r.Free)
		}
		if inferred := r.Inferred > 0; inferred == waits {
			t.Errorf("wait recorded %v: %d dependencies inferred", waits, r.Inferred)
		}
	}
}

// TestGraphLaunch: one launch, many kernels (HolisticTraceAnalysis#290).
func TestGraphLaunch(t *testing.T) {
	m := newRank(0, 1000, 0)
	c := m.launch(10)
	for i := range int64(20) {
		m.kernel(c, 7, 20+10*i, 29+10*i)
	}
	m.sync(30, 220)
	g, r, _ := build(t, m)
	n := 0
	for i := range g.Len() {
		if g.Node(i).Kind == critical.NodeCompute {
			n++
		}
	}
	if n != 20 || r.ByKind[1].NS != 20*9*us {
		t.Errorf("%d kernels, kinds %v", n, r.ByKind)
	}
}

// TestStreamsOfTwoDevices: the same number, and nothing to do with each other
// (HolisticTraceAnalysis#117); a stream orders its kernels (chakra#215).
func TestStreamsOfTwoDevices(t *testing.T) {
	m := newRank(0, 100, 0)
	c := m.launch(10)
	m.kernel(c, 7, 20, 50)
	other := m.kernel(c, 7, 52, 80)
	m.kernel(0, 7, 54, 60) // no launch: after the first, on its stream
	m.Events.Device[other] = 1
	g, _, _ := build(t, m)
	depends := map[string][]int64{}
	for i := range g.Len() {
		n := g.Node(i)
		for d := range g.Deps(i) {
			if n.Kind == critical.NodeCompute {
				depends[m.Rank.Name(n.Event)] = append(depends[m.Rank.Name(n.Event)], g.Node(d).End/us)
			}
		}
	}
	if diff := cmp.Diff(map[string][]int64{"kernel20": {10}, "kernel52": {10, 50}, "kernel54": {50}}, depends); diff != "" {
		// kernel52 starts when the other device's ends: inferred only where
		// nothing else explains its start.
		t.Errorf("dependencies (-want +got):\n%s", diff)
	}
}

// TestBackwardDependencies are rejected and counted (chakra#185).
func TestBackwardDependencies(t *testing.T) {
	m := newRank(0, 1000, 0)
	m.kernel(m.launch(500), 7, 100, 200)
	m.kernel(m.launch(510), 7, 110, 130) // within the first
	_, r, diags := build(t, m)
	if r.Backward != 3 || count(diags, "ends-before-launch") != 2 || count(diags, "stream-overlap") != 1 {
		t.Errorf("%d backward, %v", r.Backward, diags.List())
	}
}

// TestThreads: what another thread launches while one blocks does not wait.
func TestThreads(t *testing.T) {
	m := newRank(0, 300, 0)
	m.kernel(m.launch(10), 7, 20, 200)
	m.sync(15, 202)
	m.kernel(m.launchOn(1, 100), 8, 105, 250)
	_, r, _ := build(t, m)
	if r.Backward != 0 || r.StepNS != 300*us {
		t.Errorf("%+v", r)
	}
	want(t, r,
		"0.000-0.010 ms rank 0 host: host, 0.010 ms",
		"0.010-0.020 ms rank 0 stream 7: idle kernel20, 0.010 ms",
		"0.020-0.200 ms rank 0 stream 7: compute kernel20, 0.180 ms",
		"0.200-0.202 ms rank 0 host: host cudaDeviceSynchronize, 0.002 ms",
		"0.202-0.300 ms rank 0 host: host, 0.098 ms",
	)
}

// TestRunsIntoTheStep: what was launched before is no work of the step's, but
// holds it up.
func TestRunsIntoTheStep(t *testing.T) {
	m := newRank(0, 50, 0)
	m.kernel(m.launch(-100), 7, -20, 60)
	m.kernel(m.launch(10), 7, 61, 90)
	_, r, _ := build(t, m)
	if r.StepNS != 90*us || len(r.Path) == 0 || !r.Path[0].BeforeStep || r.Path[0].Dur != 60*us {
		t.Errorf("path %v", lines(r))
	}
}

// p2p is a rank without a device that sends to or receives from the other.
func p2p(rank int, op comm.Op, issued, start, end, stepEnd int64) *made {
	m := newRank(rank, stepEnd, 0, 1)
	m.CPUOnly = true
	m.event(trace.CPUOp, "aten::work", 0, 0, issued, trace.NoStream)
	i := m.event(trace.UserAnnotation, "gloo:"+string(op), 1, start, end-start, trace.NoStream)
	m.operation(comm.Operation{Op: op, Issued: issued * us, Returned: issued * us, Start: start * us, End: end * us, Event: i, Events: []int{i},
		Transfers: []comm.Transfer{{Send: op == comm.Send, Peer: 1 - rank, Count: 1 << 18}}})
	m.Operations[0].Stream = "thread 2"
	return m
}

func TestReceiveWaitsForItsSend(t *testing.T) {
	_, r, _ := build(t, p2p(0, comm.Send, 500, 501, 520, 530), p2p(1, comm.Recv, 100, 101, 600, 610))
	want(t, r,
		"0.000-0.500 ms rank 0 host: compute aten::work, 0.500 ms",
		"0.500-0.501 ms rank 0 thread 2: idle gloo:send, 0.001 ms",
		"0.501-0.600 ms rank 1 thread 2: communication-transfer recv in group 0 (gloo:recv), 0.099 ms",
		"0.600-0.610 ms rank 1 host: host, 0.010 ms",
	)
	if r.Free.GainNS != 99*us { // the sender waited for its send, too
		t.Errorf("free %+v", r.Free)
	}
}

func TestRootLeavesEarly(t *testing.T) {
	a, b := straggler()
	for i, m := range []*made{a, b} {
		m.Operations[0].Op, m.Operations[0].Root, m.Operations[0].RootKnown = comm.Broadcast, 0, true
		if i == 0 { // the root is done before rank 1 comes
			m.Operations[0].End, m.Events.Dur[m.Operations[0].Event] = 40*us, 8*us
		}
	}
	_, r, diags := build(t, a, b)
	if r.Backward != 0 || len(diags.List()) > 1 {
		t.Errorf("%d backward, %v", r.Backward, diags.List())
	}
}

// TestAnything: whatever the times are, the weights explain them.
func TestAnything(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 9))
	backward := 0
	for range 400 {
		var ranks []*made
		for rank := range 3 {
			m := newRank(rank, 50+rng.Int64N(100), 0, 1, 2)
			m.shift = rng.Int64N(30) * us
			m.CPUOnly = rng.IntN(4) == 0
			for range rng.IntN(30) {
				at, dur := rng.Int64N(160)-20, rng.Int64N(40)
				if m.CPUOnly {
					i := m.event(trace.UserAnnotation, "gloo:all_reduce", trace.ThreadID(rng.IntN(2)), at, dur, trace.NoStream)
					issued := (at - rng.Int64N(20)) * us
					m.operation(comm.Operation{Op: comm.AllReduce, Thread: rng.IntN(3) - 1, Issued: issued, Start: at * us, End: (at + dur) * us, Event: i, Events: []int{i}})
					m.event(trace.CPUOp, "aten::add", 0, at-rng.Int64N(30), rng.Int64N(30), trace.NoStream)
					continue
				}
				switch rng.IntN(5) {
				case 0:
					m.sync(at, at+dur)
				case 1:
					m.reduce(at-rng.Int64N(20), 20, at, at+dur)
				case 2:
					m.Waits = append(m.Waits, trace.Wait{TS: at * us})
				default:
					c := int64(0)
					if rng.IntN(4) > 0 {
						c = m.launchOn(trace.ThreadID(rng.IntN(2)), at-rng.Int64N(20)+5)
					}
					m.kernel(c, 7+rng.Int64N(2), at, at+dur)
				}
			}
			slices.SortFunc(m.Waits, func(a, b trace.Wait) int { return int(a.TS - b.TS) })
			slices.SortStableFunc(m.Operations, func(a, b comm.Operation) int { return int(a.Issued - b.Issued) })
			ranks = append(ranks, m)
		}
		_, r, _ := build(t, ranks...)
		backward += r.Backward
	}
	if backward == 0 {
		t.Error("no dependency was backward: the test does not reach what rejects them")
	}
}

func TestErrors(t *testing.T) {
	m := newRank(0, 10, 0)
	run := &trace.Run{Ranks: []*trace.Rank{m.Rank}}
	if _, _, err := critical.Analyze(run, collective.Match(run), critical.Options{Step: "9"}); !errors.Is(err, trace.ErrNoStep) {
		t.Errorf("error %v, want ErrNoStep", err)
	}
	if _, _, err := critical.Analyze(run, collective.Match(run), critical.Options{Step: "all"}); !errors.Is(err, critical.ErrEmpty) {
		t.Errorf("error %v, want ErrEmpty", err)
	}
	empty := &trace.Run{}
	if _, _, err := critical.Analyze(empty, collective.Match(empty), critical.Options{}); !errors.Is(err, critical.ErrEmpty) {
		t.Errorf("error %v, want ErrEmpty", err)
	}
}

func TestJSON(t *testing.T) {
	a, b := straggler()
	_, r, _ := build(t, a, b)
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"step_ns":110000`, `"path":[{"rank":1,"stream":"host","kind":"host","name":"","class":null,`, `"speedup_at_most":1.34`, `"group":"0","op":"all_reduce","size_from_bytes":1048576`} {
		if !strings.Contains(string(data), part) {
			t.Errorf("no %s in %s", part, data)
		}
	}
}
