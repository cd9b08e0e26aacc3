package critical_test

import (
	"strconv"
	"testing"

	"mixdown/analyze/collective"
	"mixdown/analyze/critical"
	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// us is a microsecond in ns: the made traces count in them.
const us = 1000

// made is a rank of a made trace.
type made struct {
	*trace.Rank
	shift int64 // of its clock, ns
	corr  int64
}

// newRank makes a rank whose step lasts from 0 to end us.
func newRank(rank int, end int64, world ...int) *made {
	m := &made{Rank: &trace.Rank{
		Rank: rank, Names: trace.NewStrings(), Threads: []trace.Thread{{PID: "1", TID: "1"}, {PID: "1", TID: "2"}},
		Groups: []comm.Group{{Name: "0", Ranks: world, Size: len(world)}},
		Steps:  []trace.Step{{Name: "ProfilerStep#1", Number: 1, Start: 0, End: end * us}},
	}}
	return m
}

func (m *made) event(c trace.Category, name string, thread trace.ThreadID, ts, dur, stream int64) int {
	return m.Events.Append(trace.Row{
		Name: m.Names.Intern([]byte(name)), Category: c, Thread: thread, TS: ts * us, Dur: dur * us,
		Correlation: trace.NoID, Stream: stream, Device: -1,
	})
}

// launch adds an API call of the host and returns its correlation.
func (m *made) launch(at int64) int64 { return m.launchOn(0, at) }

func (m *made) launchOn(thread trace.ThreadID, at int64) int64 {
	m.corr++
	i := m.event(trace.Runtime, "cudaLaunchKernel", thread, at, 3, trace.NoStream)
	m.Events.Correlation[i] = m.corr
	return m.corr
}

// kernel adds a kernel; correlation 0 is one without a launch.
func (m *made) kernel(correlation, stream, start, end int64) int {
	i := m.event(trace.Kernel, "kernel"+strconv.FormatInt(start, 10), 0, start, end-start, stream)
	m.Events.Device[i] = 0
	m.Events.Correlation[i] = correlation
	return i
}

// sync adds a call that blocks.
func (m *made) sync(start, end int64) {
	m.event(trace.Runtime, "cudaDeviceSynchronize", 0, start, end-start, trace.NoStream)
}

// reduce adds an all_reduce of 1 MiB on a device stream, issued at.
func (m *made) reduce(at, stream, start, end int64) {
	c := m.launch(at)
	i := m.kernel(c, stream, start, end)
	m.operation(comm.Operation{Op: comm.AllReduce, Issued: at * us, Start: start * us, End: end * us, Event: i, Events: []int{i}})
}

func (m *made) operation(op comm.Operation) {
	op.DType, op.SizeKnown, op.In, op.Out = comm.Float32, true, 1<<18, 1<<18
	op.Name, op.Index = m.Rank.Name(op.Event), len(m.Operations)
	m.Operations = append(m.Operations, op)
}

// moved puts everything on the rank's clock.
func (m *made) moved() *trace.Rank {
	d := m.shift
	for i := range m.Events.TS {
		m.Events.TS[i] += d
	}
	for i := range m.Operations {
		o := &m.Operations[i]
		o.Issued, o.Returned, o.Start, o.End = o.Issued+d, o.Returned+d, o.Start+d, o.End+d
	}
	for i := range m.Steps {
		m.Steps[i].Start, m.Steps[i].End = m.Steps[i].Start+d, m.Steps[i].End+d
	}
	for i := range m.Waits {
		m.Waits[i].TS += d
	}
	return m.Rank
}

func build(t testing.TB, ranks ...*made) (*critical.Graph, *critical.Result, *diagnostic.Set) {
	t.Helper()
	run := &trace.Run{}
	for _, m := range ranks {
		run.Ranks = append(run.Ranks, m.moved())
	}
	g, diags, err := critical.Build(run, collective.Match(run), critical.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := g.Analyze()
	check(t, g, r)
	return g, r, diags
}

// check holds what must be true of any result.
func check(t testing.TB, g *critical.Graph, r *critical.Result) {
	t.Helper()
	end := g.Evaluate(nil)
	var latest int64
	for i := range end {
		n := g.Node(i)
		if n.Own < 0 || end[i] != n.End {
			t.Fatalf("node %d %+v is replayed to end at %d", i, n, end[i])
		}
		latest = max(latest, n.End)
		for d, lag := range g.Deps(i) {
			if lag > 0 || g.Node(d).End+lag > n.End {
				t.Fatalf("node %d ends before what it depends on", i)
			}
		}
	}
	if r.StepNS != latest {
		t.Errorf("step of %d ns, the last moment is at %d", r.StepNS, latest)
	}
	at := int64(0)
	for _, s := range r.Path {
		if s.Start != at || s.End <= s.Start || s.Dur != s.End-s.Start {
			t.Fatalf("the path has a gap or a fold at %d: %s", at, s)
		}
		at = s.End
	}
	if at != r.StepNS {
		t.Errorf("the path is %d ns long, the step %d", at, r.StepNS)
	}
	var kinds, ranks, names int64
	for _, k := range r.ByKind {
		kinds += k.NS
	}
	for _, k := range r.ByRank {
		ranks += k.NS
	}
	for _, k := range r.ByName {
		names += k.NS
	}
	if kinds != at || ranks != at || names != at {
		t.Errorf("totals %d, %d, %d of a path of %d ns", kinds, ranks, names, at)
	}
	gain := func(name string, x critical.Gain) {
		if x.GainNS < 0 || x.GainNS > x.PathTransfer || x.GainNS > r.Free.GainNS || x.StepNS+x.GainNS != r.StepNS {
			t.Errorf("%s: impossible gain %+v, all free %+v", name, x, r.Free)
		}
	}
	gain("all", r.Free)
	for _, x := range r.FreeByOp {
		gain(string(*x.Op), x)
	}
	for _, x := range r.FreeByGroup {
		gain(*x.Group+" "+string(*x.Op), x)
	}
}

// lines are the path as text.
func lines(r *critical.Result) []string {
	var list []string
	for _, s := range r.Path {
		list = append(list, s.String())
	}
	return list
}

func count(set *diagnostic.Set, code string) int64 {
	var n int64
	for _, d := range set.List() {
		if d.Code == code {
			n += d.Count
		}
	}
	return n
}
