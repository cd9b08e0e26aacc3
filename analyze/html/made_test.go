package html_test

import (
	"bytes"
	"fmt"
	"testing"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/analyze/html"
	"mixdown/analyze/pipeline"
	"mixdown/analyze/report"
	"mixdown/ingest/comm"
	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/trace"
)

// made is a run of so many ranks, each with steps of so many kernels and
// collectives in turn. Later ranks arrive later.
func made(t *testing.T, ranks, steps, kernels int, name func(string) string) html.Source {
	t.Helper()
	run := &trace.Run{}
	group := comm.Group{Name: name("0"), Size: ranks}
	for rank := range ranks {
		group.Ranks = append(group.Ranks, rank)
	}
	for rank := range ranks {
		r := &trace.Rank{
			Rank: rank, Names: trace.NewStrings(), Threads: []trace.Thread{{PID: "1", TID: name("2")}}, Groups: []comm.Group{group},
			Source: name(fmt.Sprintf("rank%d.json", rank)), Read: int64(steps * kernels),
		}
		r.Distributed.Backend, r.Distributed.WorldSize = name("nccl"), ranks
		add := func(kernel string, ts, end, stream int64) int {
			return r.Events.Append(trace.Row{Name: r.Names.InternString(name(kernel)), Category: trace.Kernel, TS: ts, Dur: end - ts, Stream: stream, Correlation: trace.NoID})
		}
		at := int64(1_700_000_000_000_000_000)
		for step := range steps {
			begin := at
			for k := range kernels {
				end := at + 900 + int64(k%7)*150
				add(fmt.Sprintf("gemm_%d", k%50), at, end, 7)
				at = end + 120
				if k%20 != 19 {
					continue
				}
				start, done := at+int64(rank)*40, at+int64(ranks)*40+5000
				e := add("ncclKernel_AllReduce", start, done, 20)
				r.Operations = append(r.Operations, comm.Operation{
					Op: comm.AllReduce, DType: comm.Float32, SizeKnown: true, In: 1 << 20, Out: 1 << 20, Issued: at - 100, Returned: at - 50,
					Start: start, End: done, Event: e, Events: []int{e}, Stream: "20", Name: "ncclKernel", Index: len(r.Operations),
				})
				at = done
			}
			r.Steps = append(r.Steps, trace.Step{Name: name(fmt.Sprintf("ProfilerStep#%d", step)), Number: step, Start: begin, End: at})
		}
		run.Ranks = append(run.Ranks, r)
	}
	return source(t, run)
}

// source analyses a run as the command does.
func source(t *testing.T, run *trace.Run) html.Source {
	t.Helper()
	in := html.Source{Run: run, Match: collective.Match(run)}
	in.Clocks = align.Estimate(run, in.Match)
	align.Apply(run, in.Clocks)
	align.UpdateArrivals(run, in.Match)
	found, err := pipeline.Find(run, in.Match, pipeline.Options{Clocks: in.Clocks})
	if err != nil {
		t.Fatal(err)
	}
	in.Analysis, err = report.Analyze(run, in.Match, report.Options{Clocks: in.Clocks, Critical: len(run.Ranks) > 1 && len(run.Ranks) <= 8, Breakdown: true, Pipelines: found})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// load is a set of testdata, analysed.
func load(t *testing.T, traces string) html.Source {
	t.Helper()
	return source(t, kinetotest.Load(t, traces))
}

// write is the page as bytes.
func write(t *testing.T, p *html.Page) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
