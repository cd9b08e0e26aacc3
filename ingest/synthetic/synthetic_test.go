package synthetic_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"mixdown/ingest/comm"
	"mixdown/ingest/synthetic"
	"mixdown/ingest/trace"
)

var clocks = []synthetic.Clock{{}, {Offset: 1_000_000_000, DriftPPB: -50_000}, {Offset: -999_999_999, DriftPPB: 50_000}, {Offset: 123, DriftPPB: 1}}

// TestTracesHoldTheTruth: what package kineto reads of a run is what was
// simulated, to the ns, in every form the generator writes.
func TestTracesHoldTheTruth(t *testing.T) {
	p2p := []synthetic.Collective{{Op: comm.Send, Scope: synthetic.Forward, Elements: 4096}, {Op: comm.Send, Scope: synthetic.Backward, Elements: 4096}, {Op: comm.AllReduce, Elements: 100}}
	world := []synthetic.Collective{{Op: comm.AllReduce, Elements: 1000}, {Op: comm.AllReduce, Elements: 2000, Async: true}, {Op: comm.Barrier}}
	all := []synthetic.Collective{
		{Op: comm.AllGather, Scope: synthetic.Tensor, Elements: 10}, {Op: comm.ReduceScatter, Scope: synthetic.Data, Elements: 20},
		{Op: comm.AllToAll, Elements: 40}, {Op: comm.Broadcast, Elements: 50}, {Op: comm.AllReduce, Scope: synthetic.Tensor, Elements: 60, Async: true}, {Op: comm.Barrier},
	}
	for name, opts := range map[string]synthetic.Options{
		"arguments":         {Ranks: 4, Collectives: all},
		"sequence numbers":  {Ranks: 4, Collectives: all, Generation: synthetic.CommSeq},
		"no arguments":      {Ranks: 4, Collectives: world, Generation: synthetic.NoCommArgs},
		"host":              {Ranks: 4, Collectives: all, Host: true},
		"pipeline":          {Ranks: 4, Collectives: p2p},
		"pipeline on hosts": {Ranks: 4, Collectives: p2p, Host: true},
		"long lists":        {Ranks: 70, Steps: 1},
		"one rank":          {Ranks: 1},
		"odd":               {Ranks: 5, TensorParallel: 3},
		"dropped":           {Ranks: 4, Collectives: all, DropShare: 0.2, Steps: 5},
		"dropped on hosts":  {Ranks: 4, Collectives: all, DropShare: 0.2, Steps: 5, Host: true},
		"dropped sends":     {Ranks: 4, Collectives: p2p, DropShare: 0.2, Steps: 5},
	} {
		t.Run(name, func(t *testing.T) {
			opts.Clocks, opts.Noise, opts.Seed = clocks, 0.1, 7
			opts.Stragglers = []synthetic.Straggler{{Rank: 0, Step: 0, Collective: 1, Delay: 3_000_000}}
			run, truth, err := synthetic.Load(t.TempDir(), opts)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range run.Diagnostics.List() {
				if opts.DropShare == 0 { // else what is missing is rightly complained of
					t.Errorf("diagnostic: %s", d)
				}
			}
			for r, rank := range run.Ranks {
				if len(rank.Steps) == 0 || rank.CPUOnly != opts.Host || rank.Rank != r {
					t.Fatalf("rank %d: %d steps, CPU only %v", rank.Rank, len(rank.Steps), rank.CPUOnly)
				}
				checkOperations(t, rank, truth, opts)
			}
		})
	}
}

// checkOperations compares one rank's operations, group by group, with truth.
func checkOperations(t *testing.T, rank *trace.Rank, truth *synthetic.Truth, opts synthetic.Options) {
	t.Helper()
	type times struct {
		op         comm.Op
		start, end int64
	}
	want, got := map[string][]times{}, map[string][]times{}
	add := func(ev *synthetic.Event) {
		k := slices.Index(ev.Ranks, rank.Rank)
		if k < 0 || ev.Dropped[k] {
			return
		}
		op := ev.Op
		if op == comm.Send && k == 1 {
			op = comm.Recv
		}
		want[ev.Group] = append(want[ev.Group], times{op, truth.Local(rank.Rank, ev.Arrival[k]), truth.Local(rank.Rank, ev.End[k])})
	}
	for i := range truth.Collectives {
		add(&truth.Collectives[i])
	}
	for i := range truth.Transfers {
		add(&truth.Transfers[i])
	}
	for _, op := range rank.Operations {
		g := rank.Groups[op.Group]
		name := g.Name
		if opts.Generation == synthetic.NoCommArgs {
			name = "0"
		} else if len(g.Ranks) == 0 || !op.SizeKnown {
			t.Errorf("rank %d: %s: group %+v, size known %v", rank.Rank, op.Op, g, op.SizeKnown)
		}
		if op.Op.IsP2P() && len(op.Transfers) != 1 {
			t.Errorf("rank %d: %s without peer", rank.Rank, op.Op)
		}
		got[name] = append(got[name], times{op.Op, op.Start, op.End})
	}
	for _, lists := range []map[string][]times{want, got} {
		for _, list := range lists {
			slices.SortFunc(list, func(a, b times) int { return int(a.start - b.start) })
		}
	}
	if fmt.Sprint(want) != fmt.Sprint(got) {
		t.Errorf("rank %d: operations\n got %v\nwant %v", rank.Rank, got, want)
	}
}

func TestSameOptionsSameBytes(t *testing.T) {
	write := func() ([]byte, *synthetic.Truth) {
		var a, b bytes.Buffer
		truth, err := synthetic.Generate(synthetic.Options{Noise: 0.3, DropShare: 0.1, Seed: 5}, []io.Writer{&a, &b})
		if err != nil {
			t.Fatal(err)
		}
		return append(a.Bytes(), b.Bytes()...), truth
	}
	first, truth := write()
	second, again := write()
	if !bytes.Equal(first, second) || fmt.Sprint(truth) != fmt.Sprint(again) {
		t.Error("two runs of the same options differ")
	}
}

// TestPhysics: nobody leaves before the last has arrived, and a straggler is
// the last by the time it lost.
func TestPhysics(t *testing.T) {
	late := synthetic.Straggler{Rank: 3, Step: 1, Collective: 2, Delay: 5_000_000}
	files := make([]io.Writer, 6)
	for i := range files {
		files[i] = io.Discard
	}
	truth, err := synthetic.Generate(synthetic.Options{Ranks: 6, Noise: 0.05, Stragglers: []synthetic.Straggler{late}}, files)
	if err != nil {
		t.Fatal(err)
	}
	for i := range truth.Collectives {
		ev := &truth.Collectives[i]
		for k, end := range ev.End {
			if end < ev.LastArrival()+ev.Transfer || end > ev.LastArrival()+ev.Transfer+3_000 || ev.Wait(k) < 0 {
				t.Fatalf("impossible: %+v", ev)
			}
		}
		if ev.Step != late.Step || ev.Collective != late.Collective || !slices.Contains(ev.Ranks, late.Rank) {
			continue
		}
		order := ev.Order()
		lead := ev.LastArrival() - slices.Sorted(slices.Values(ev.Arrival))[len(order)-2]
		if order[len(order)-1] != late.Rank || lead < late.Delay-200_000 {
			t.Errorf("order %v, the last %d ns late; want rank %d by about %d ns", order, lead, late.Rank, late.Delay)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, opts := range []synthetic.Options{
		{Ranks: -1}, {DropShare: 2}, {Collectives: []synthetic.Collective{{Op: comm.Gather}}},
		{Collectives: []synthetic.Collective{{Op: comm.Send}}}, {Stragglers: []synthetic.Straggler{{Rank: 9}}},
		{Collectives: []synthetic.Collective{{Op: comm.Send, Scope: synthetic.Forward}}, Generation: synthetic.NoCommArgs},
		{Ranks: 3},
	} {
		if _, err := synthetic.Generate(opts, make([]io.Writer, 2)); !errors.Is(err, synthetic.ErrOptions) {
			t.Errorf("%+v: error %v", opts, err)
		}
	}
	broken := []io.Writer{io.Discard, brokenWriter{}}
	if _, err := synthetic.Generate(synthetic.Options{}, broken); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a broken file: error %v", err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// BenchmarkGenerate writes a step of 256 ranks.
func BenchmarkGenerate(b *testing.B) {
	files := make([]io.Writer, 256)
	var count counter
	for i := range files {
		files[i] = &count
	}
	for b.Loop() {
		count = 0
		if _, err := synthetic.Generate(synthetic.Options{Ranks: 256, Steps: 1, Kernels: 300, Noise: 0.1}, files); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(count))
}

type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }
