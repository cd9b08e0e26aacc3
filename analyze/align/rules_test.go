package align_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/ingest/comm"
	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/synthetic"
	"mixdown/ingest/trace"
)

func read(t *testing.T, path string) (*trace.Run, *collective.Matching) {
	t.Helper()
	run := kinetotest.Load(t, path)
	return run, collective.Match(run)
}

func codes(res *align.Result) string {
	var list []string
	for _, d := range res.Diagnostics.List() {
		list = append(list, d.Code)
	}
	return strings.Join(slices.Compact(list), " ")
}

// untouched: Apply changes nothing.
func untouched(t *testing.T, res *align.Result) {
	t.Helper()
	if res.Applied {
		t.Errorf("moved: %s", res.Reason)
	}
	for _, c := range res.Clocks {
		for _, at := range []int64{0, 1_791_000_000_000_000_000, math.MinInt64, math.MaxInt64} {
			if c.Correct(at) != at {
				t.Errorf("rank %d: %d becomes %d", c.Rank, at, c.Correct(at))
			}
		}
	}
}

func TestNothingToAlign(t *testing.T) {
	for _, run := range []*trace.Run{{}, {Ranks: []*trace.Rank{{Rank: 3}}}} {
		res := align.Estimate(run, collective.Match(run))
		untouched(t, res)
		if !res.Connected || res.Reason == "" || codes(res) != "" {
			t.Errorf("%d ranks: %+v", len(run.Ranks), res)
		}
	}
	run := &trace.Run{Ranks: []*trace.Rank{{Rank: 0}, {Rank: 1}}}
	res := align.Estimate(run, collective.Match(run))
	untouched(t, res)
	if res.Connected || res.Comparable(0, 1) || codes(res) != "clock-too-few-matches" {
		t.Errorf("two ranks without communication: %+v, %s", res, codes(res))
	}
}

// TestOneClock: a common clock stays as it is, to the ns, drifting or not.
func TestOneClock(t *testing.T) {
	for _, host := range []bool{false, true} {
		common := synthetic.Clock{Offset: 77_777_777, DriftPPB: 40_000}
		run, m, _ := load(t, synthetic.Options{Ranks: 8, Host: host, Noise: 0.2, Clocks: slices.Repeat([]synthetic.Clock{common}, 8)})
		res := align.Estimate(run, m)
		untouched(t, res)
		if !res.Connected || res.Spread > 3_000 || res.Remaining != res.Spread || res.Compared != len(m.Collectives) || res.Clocks[5].Residual > 1_500 {
			t.Errorf("%+v", res)
		}
	}
}

// TestScatter: where ends scatter by themselves, small offsets are not imagined
// and large ones still found.
func TestScatter(t *testing.T) {
	opts := synthetic.Options{Ranks: 4, Steps: 20, Noise: 0.1, EndSkewNs: 400_000, Host: true}
	run, m, _ := load(t, opts)
	res := align.Estimate(run, m)
	untouched(t, res)
	if codes(res) != "" || !strings.Contains(res.Reason, "no offset") || res.Clocks[1].Residual < 20_000 {
		t.Errorf("%s; %s", res.Reason, codes(res))
	}
	opts.Clocks = randomClocks(4, 1, 1)
	run, m, truth := load(t, opts)
	res = align.Estimate(run, m)
	if got := worst(res, truth); !res.Applied || got > 200_000 {
		t.Errorf("worst error %d ns: %s", got, res.Reason)
	}
}

// TestTooFew: four matches are not enough for an offset, but enough to see that
// clocks agree.
func TestTooFew(t *testing.T) {
	few := []synthetic.Collective{{Op: comm.AllReduce, Elements: 10}, {Op: comm.AllReduce, Elements: 20}}
	run, m, _ := load(t, synthetic.Options{Ranks: 3, Steps: 2, Collectives: few, Clocks: []synthetic.Clock{{}, {Offset: 350_000}, {}}})
	res := align.Estimate(run, m)
	untouched(t, res)
	if res.Connected || !res.Comparable(0, 2) || res.Comparable(0, 1) || codes(res) != "clock-too-few-matches" {
		t.Errorf("%+v %s", res, codes(res))
	}
	run, m, truth := load(t, synthetic.Options{Ranks: 3, Steps: 3, Collectives: few, Clocks: []synthetic.Clock{{}, {Offset: 350_000}, {}}})
	if res := align.Estimate(run, m); worst(res, truth) > accuracy || !res.Connected {
		t.Errorf("six matches: %s", res.Reason)
	}
}

// TestUnconnected: nothing is guessed between parts that share nothing.
func TestUnconnected(t *testing.T) {
	opts := synthetic.Options{Ranks: 6, Steps: 8, Clocks: randomClocks(6, 1, 4), Collectives: []synthetic.Collective{
		{Op: comm.AllReduce, Scope: synthetic.Tensor, Elements: 10}, {Op: comm.AllGather, Scope: synthetic.Tensor, Elements: 10}}}
	run, m, truth := load(t, opts)
	res := align.Estimate(run, m)
	if res.Connected || len(res.Components) != 3 || !res.Applied || codes(res) != "clocks-not-connected" || worst(res, truth) > accuracy {
		t.Errorf("%d parts, %s, worst error within them %d ns, %s", len(res.Components), res.Reason, worst(res, truth), codes(res))
	}
	if !res.Comparable(2, 3) || res.Comparable(1, 2) || !res.Clocks[2].Identity() {
		t.Errorf("%+v", res.Clocks)
	}
}

// TestMessages: sends and receives alone bound the offsets; the bound is kept,
// and is of the size of the transfer and of how long the receiver waited.
func TestMessages(t *testing.T) {
	there := synthetic.Collective{Op: comm.Send, Scope: synthetic.Forward, Elements: 1000}
	back := synthetic.Collective{Op: comm.Send, Scope: synthetic.Backward, Elements: 1000}
	opts := synthetic.Options{Ranks: 4, Steps: 10, Noise: 0.3, Collectives: []synthetic.Collective{there, back}}
	opts.Clocks = []synthetic.Clock{{}, {Offset: 300_000_000}, {Offset: -5_000_000}, {Offset: 900_000_000}}
	run, m, truth := load(t, opts)
	if len(m.Pairs) != 60 || len(m.Collectives) != 0 {
		t.Fatalf("%d pairs", len(m.Pairs))
	}
	res := align.Estimate(run, m)
	if !res.Connected || !res.Applied {
		t.Fatalf("%s", res.Reason)
	}
	for r, c := range res.Clocks {
		d := c.Correct(truth.Local(r, truth.Start)) - truth.Start
		if max(d, -d) > c.Uncertainty || c.Uncertainty > 2_000_000 || r > 0 && c.Uncertainty == 0 {
			t.Errorf("rank %d: error %d ns, said to be within %d", r, d, c.Uncertainty)
		}
	}
	opts.Collectives = []synthetic.Collective{there}
	run, m, _ = load(t, opts)
	res = align.Estimate(run, m)
	untouched(t, res)
	if res.Connected {
		t.Error("messages in one direction were taken for an offset")
	}
	opts.Collectives, opts.Clocks = []synthetic.Collective{there, back}, nil
	run, m, _ = load(t, opts)
	res = align.Estimate(run, m)
	untouched(t, res)
	if !res.Connected {
		t.Errorf("one clock: %s", res.Reason)
	}
}

// TestPipelineOfGroups: parts with collectives of their own, messages between.
func TestPipelineOfGroups(t *testing.T) {
	opts := synthetic.Options{Ranks: 6, Steps: 10, Noise: 0.3, Clocks: randomClocks(6, 1, 8)}
	for i := range opts.Clocks {
		opts.Clocks[i].DriftPPB = 0
	}
	opts.Collectives = []synthetic.Collective{
		{Op: comm.AllReduce, Scope: synthetic.Tensor, Elements: 1000}, {Op: comm.Send, Scope: synthetic.Forward, Elements: 100},
		{Op: comm.AllReduce, Scope: synthetic.Tensor, Elements: 2000}, {Op: comm.Send, Scope: synthetic.Backward, Elements: 100}}
	run, m, truth := load(t, opts)
	res := align.Estimate(run, m)
	if !res.Connected {
		t.Fatal(res.Reason)
	}
	for r, c := range res.Clocks {
		d := c.Correct(truth.Local(r, truth.Start)) - res.Clocks[0].Correct(truth.Local(0, truth.Start))
		if max(d, -d) > c.Uncertainty+accuracy || c.Uncertainty > 3_000_000 {
			t.Errorf("rank %d: error %d ns, said to be within %d", r, d, c.Uncertainty)
		}
	}
}

// TestApply: all times move as Correct says, and nothing changes its order.
func TestApply(t *testing.T) {
	run, m, truth := load(t, synthetic.Options{Ranks: 4, Steps: 40, KernelNs: 2_000_000, Clocks: randomClocks(4, 1, 3)})
	res := align.Estimate(run, m)
	if c := res.Clocks[1]; c.Drift == 0 {
		t.Fatalf("%+v: this is not the run that the test is for", c)
	}
	align.Apply(run, res)
	align.UpdateArrivals(run, m)
	apart := func(rank int, at, want int64) {
		t.Helper()
		// The reference is rank 0, whose clock is wrong too.
		if d := at - truth.Local(0, want); d > accuracy || d < -accuracy {
			t.Fatalf("rank %d: %d ns from the truth", rank, d)
		}
	}
	for _, rank := range run.Ranks {
		for i, s := range rank.Steps {
			apart(rank.Rank, s.End, truth.StepEnds[i][rank.Rank])
		}
		for i := range rank.Operations {
			op := &rank.Operations[i]
			if ts := rank.Events.TS[op.Event]; ts != op.Start || rank.Events.End(op.Event) != op.End || op.Issued > op.Returned {
				t.Fatalf("rank %d: operation %d and its event differ", rank.Rank, i)
			}
		}
	}
	for i := range truth.Collectives {
		if ev := &truth.Collectives[i]; ev.Group == "0" {
			k := slices.IndexFunc(m.Collectives, func(c collective.Collective) bool {
				d := c.LastStart - truth.Local(0, ev.LastArrival())
				return m.Groups[c.Group].Name == "0" && max(d, -d) < 100_000
			})
			if k < 0 {
				t.Fatalf("no collective at the place of %+v", ev)
			}
			apart(0, m.Collectives[k].LastStart, ev.LastArrival())
		}
	}
	if again := align.Estimate(run, m); again.Applied || again.Spread > 5_000 {
		t.Errorf("aligned clocks are moved again: %s", again.Reason)
	}
}

// TestCorrectIsExact compares the correction of drift with unbounded integers,
// and never lets time run backwards.
func TestCorrectIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		c := align.Clock{Offset: rng.Int64N(1<<40) - 1<<39, Drift: rng.Int64N(2*align.MaxDrift+1) - align.MaxDrift, Epoch: rng.Int64N(1 << 61)}
		at := rng.Int64N(1 << 61)
		want := new(big.Int).Mul(big.NewInt(at-c.Epoch), big.NewInt(c.Drift))
		want.Quo(want, big.NewInt(1_000_000_000_000))
		if got := at - c.Offset - want.Int64(); c.Correct(at) != got {
			t.Fatalf("%+v at %d: %d, want %d", c, at, c.Correct(at), got)
		}
		if c.Correct(at+1) < c.Correct(at) || c.Correct(c.Epoch+1) < c.Correct(c.Epoch) {
			t.Fatalf("%+v at %d: time runs backwards", c, at)
		}
	}
}

// TestClocksOfOtherAges: a file without baseTimeNanoseconds may be decades off.
func TestClocksOfOtherAges(t *testing.T) {
	run, m, truth := load(t, synthetic.Options{Ranks: 2, Steps: 10})
	all := &align.Result{Clocks: []align.Clock{{}, {Offset: 1_790_000_000_000_000_000}}}
	align.Apply(run, all)
	res := align.Estimate(run, m)
	truth.Clocks[1].Offset -= all.Clocks[1].Offset
	if got := worst(res, truth); got > accuracy || !res.Applied {
		t.Errorf("worst error %d ns: %s", got, res.Reason)
	}
}

// TestTestdata: runs of one host; its processes leave a Gloo collective at
// different times, which is no matter of clocks.
func TestTestdata(t *testing.T) {
	for _, set := range []string{"dp_moe_4rank", "pipeline_1f1b_4rank"} {
		res := align.Estimate(read(t, filepath.Join("../../testdata", set)))
		t.Logf("%s: %s; %s; residuals %d %d; uncertain %d", set, res.Reason, codes(res), res.Clocks[0].Residual, res.Clocks[3].Residual, res.Clocks[3].Uncertainty)
		untouched(t, res)
		if !res.Connected {
			t.Errorf("%s: %s", set, res.Reason)
		}
	}
}

// TestHostMessages: on a host a message may be there before the annotation of its
// send begins. Taken as its start, that would show clocks that contradict each
// other, or that differ where they are one.
func TestHostMessages(t *testing.T) {
	for _, set := range []string{"p4_gpipe", "p4_bfs", "p4_interleaved", "p4_izb", "p4_zbv", "p2_zbv", "p8_1f1b"} {
		res := align.Estimate(read(t, filepath.Join("../../testdata/pipeline_sched_"+set)))
		if !res.Connected || res.Applied {
			t.Errorf("%s: connected %v, corrected %v: %s; %s", set, res.Connected, res.Applied, res.Reason, codes(res))
		}
	}
}

// TestDLRM: a real run of 8 GPUs of one host.
func TestDLRM(t *testing.T) {
	corpus := kinetotest.Corpus(t)
	run, m := read(t, filepath.Join(corpus, "param/dlrm_8rank/kineto"))
	res := align.Estimate(run, m)
	untouched(t, res)
	if !res.Connected || res.Compared != 8 || res.Spread > 5_000 || len(res.Impossible) > 0 {
		t.Errorf("%+v", res)
	}
	for _, c := range res.Clocks {
		if c.Matches != 8 || c.Residual > 2_000 {
			t.Errorf("%+v", c)
		}
	}
	// The same with two of its ranks on another host, 350 us and 11.56 s ahead.
	other := &align.Result{Clocks: make([]align.Clock, 8)}
	other.Clocks[4].Offset, other.Clocks[5].Offset = -350_000, -11_560_000_000
	align.Apply(run, other)
	res = align.Estimate(run, m)
	for r, c := range res.Clocks {
		if d := c.Offset + other.Clocks[r].Offset; max(d, -d) > accuracy {
			t.Errorf("rank %d: offset found %d ns, made %d", r, c.Offset, -other.Clocks[r].Offset)
		}
	}
}
