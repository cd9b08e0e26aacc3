package collective_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mixdown/analyze/collective"
	"mixdown/ingest/comm"
	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/trace"
)

// run makes a run of ranks in one group; each rank's operations are given as
// sizes of all_reduces.
func run(sizes ...[]int64) *trace.Run {
	r := &trace.Run{}
	var members []int
	for rank := range sizes {
		members = append(members, rank)
	}
	for rank, list := range sizes {
		one := &trace.Rank{Rank: rank, Groups: []comm.Group{{Name: "0", Ranks: members, Size: len(members)}}}
		for i, n := range list {
			one.Operations = append(one.Operations, comm.Operation{
				Op: comm.AllReduce, DType: comm.Float32, SizeKnown: true, In: n, Out: n, Index: i,
				Start: int64(1000*i + 10*rank), End: int64(1000*i + 100),
			})
		}
		r.Ranks = append(r.Ranks, one)
	}
	return r
}

func TestOneMissingEventCostsOneMatch(t *testing.T) {
	m := collective.Match(run([]int64{1, 2, 3, 4, 5}, []int64{1, 2, 4, 5}))
	if len(m.Collectives) != 4 || len(m.Unmatched) != 1 {
		t.Fatalf("%d matched, %d not; want 4 and 1", len(m.Collectives), len(m.Unmatched))
	}
	if u := m.Unmatched[0]; u.Rank != 0 || u.Operation != 2 {
		t.Errorf("unmatched: rank %d, operation %d; want rank 0, operation 2", u.Rank, u.Operation)
	}
	for i, c := range m.Collectives {
		if c.Seq != i || len(c.Members) != 2 {
			t.Errorf("collective %d: sequence %d, %d members", i, c.Seq, len(c.Members))
		}
	}
}

func TestWindowsThatStartAtDifferentCollectives(t *testing.T) {
	m := collective.Match(run([]int64{3, 4, 5, 6}, []int64{1, 2, 3, 4, 5}))
	if len(m.Collectives) != 3 || len(m.Unmatched) != 3 {
		t.Errorf("%d matched, %d not; want 3 and 3", len(m.Collectives), len(m.Unmatched))
	}
}

// TestStepsBoundWhatAMissingEventCosts: of equal collectives without numbers,
// nothing but the steps tells which one is missing.
func TestStepsBoundWhatAMissingEventCosts(t *testing.T) {
	r := run([]int64{1, 1, 1, 1, 1, 1}, []int64{1, 1, 1, 1, 1, 1})
	for _, rank := range r.Ranks {
		for i := range rank.Operations {
			rank.Operations[i].Issued = rank.Operations[i].Start
		}
		for n := range 3 {
			rank.Steps = append(rank.Steps, trace.Step{Number: n, Start: int64(2000 * n), End: int64(2000*n + 1999)})
		}
	}
	ops := &r.Ranks[1].Operations
	*ops = slices.Delete(*ops, 0, 1)
	check := func(wrong int) {
		t.Helper()
		m := collective.Match(r)
		got := 0
		for _, c := range m.Collectives {
			a, b := &r.Ranks[0].Operations[c.Members[0].Operation], &r.Ranks[1].Operations[c.Members[1].Operation]
			if a.Index != b.Index {
				got++
			}
		}
		if len(m.Collectives) != 5 || len(m.Unmatched) != 1 || got != wrong {
			t.Errorf("%d matched, %d not, %d wrong; want 5, 1, %d", len(m.Collectives), len(m.Unmatched), got, wrong)
		}
	}
	check(1) // which of the two of the first step is missing nobody can tell
	r.Ranks[1].Steps[0].Number = 7
	check(5) // other steps: order alone
}

func TestSequenceNumbersDecideWherePresent(t *testing.T) {
	r := run([]int64{7, 7, 7}, []int64{7, 7})
	for rank, first := range map[int]int64{0: 100, 1: 101} {
		for i := range r.Ranks[rank].Operations {
			r.Ranks[rank].Operations[i].Seq, r.Ranks[rank].Operations[i].SeqKnown = first+int64(i), true
		}
	}
	m := collective.Match(r)
	if len(m.Collectives) != 2 || len(m.Unmatched) != 1 || m.Unmatched[0].Operation != 0 {
		t.Errorf("%d matched, unmatched %+v; want 2 and the first of rank 0: sizes alone would pair it wrongly", len(m.Collectives), m.Unmatched)
	}
}

func TestMissingRankIsNamedNotGuessed(t *testing.T) {
	r := run([]int64{1}, []int64{1}, []int64{1})
	r.Ranks = r.Ranks[:2]
	m := collective.Match(r)
	if len(m.Collectives) != 0 || len(m.Unmatched) != 2 || !strings.Contains(m.Unmatched[0].Reason, "not read") {
		t.Errorf("%d matched, unmatched %+v; want none and the reason", len(m.Collectives), m.Unmatched)
	}
}

func TestSameRanksAnotherGroup(t *testing.T) {
	r := run([]int64{1, 2}, []int64{2, 1})
	for _, rank := range r.Ranks { // the second group has the same members
		g := rank.Groups[0]
		g.Name = "1"
		rank.Groups = append(rank.Groups, g)
	}
	r.Ranks[0].Operations[1].Group = 1
	r.Ranks[1].Operations[0].Group = 1
	if m := collective.Match(r); len(m.Collectives) != 2 || len(m.Unmatched) != 0 {
		t.Errorf("%d matched, %d not; want 2 and 0: each group has its own order", len(m.Collectives), len(m.Unmatched))
	}
}

func TestUnnamedGroupIsInferredOnlyWhenAllAgree(t *testing.T) {
	unnamed := func(r *trace.Run) *trace.Run {
		for _, rank := range r.Ranks {
			rank.Groups[0] = comm.Group{Stream: fmt.Sprint(rank.Rank + 20)}
		}
		return r
	}
	m := collective.Match(unnamed(run([]int64{1, 2}, []int64{1, 2})))
	if len(m.Collectives) != 2 || !m.Groups[0].Inferred {
		t.Errorf("%d matched; want 2 in an inferred group", len(m.Collectives))
	}
	m = collective.Match(unnamed(run([]int64{1, 2}, []int64{1, 3})))
	if len(m.Collectives) != 0 || len(m.Unmatched) != 4 {
		t.Errorf("%d matched, %d not; want none: the ranks disagree", len(m.Collectives), len(m.Unmatched))
	}
}

func TestTransfersMatchByPeerInOrder(t *testing.T) {
	r := run(nil, nil)
	p2p := func(op comm.Op, peer int, n int64) comm.Operation {
		o := comm.Operation{Op: op, DType: comm.Float32, SizeKnown: true, Transfers: []comm.Transfer{{Send: op == comm.Send, Peer: peer, Count: n}}}
		return o
	}
	r.Ranks[0].Operations = []comm.Operation{p2p(comm.Send, 1, 5), p2p(comm.Send, 1, 6), p2p(comm.Recv, 1, 7)}
	r.Ranks[1].Operations = []comm.Operation{p2p(comm.Send, 0, 7), p2p(comm.Recv, 0, 5)}
	m := collective.Match(r)
	if len(m.Pairs) != 2 || len(m.Unmatched) != 1 {
		t.Fatalf("%d pairs, %d unmatched; want 2 and 1", len(m.Pairs), len(m.Unmatched))
	}
	if u := m.Unmatched[0]; u.Rank != 0 || u.Operation != 1 {
		t.Errorf("unmatched: rank %d operation %d; want the second send", u.Rank, u.Operation)
	}
}

func TestTestdataIsMatchedWhole(t *testing.T) {
	for set, want := range map[string]struct{ collectives, pairs int }{
		// 3 steps: 10 collectives of all ranks, 1 of each of two pairs of ranks.
		"dp_moe_4rank": {3 * (10 + 2), 0},
		// 3 steps: an all_reduce; 8 micro-batches over 3 borders, both ways.
		"pipeline_1f1b_4rank": {3, 3 * 8 * 3 * 2},
	} {
		r := kinetotest.Load(t, "../../testdata/"+set+"/rank*.gz")
		m := collective.Match(r)
		if len(m.Collectives) != want.collectives || len(m.Pairs) != want.pairs || len(m.Unmatched) != 0 {
			t.Errorf("%s: %d collectives, %d pairs, %d unmatched; want %d, %d, 0", set, len(m.Collectives), len(m.Pairs), len(m.Unmatched), want.collectives, want.pairs)
		}
	}
}

// TestEstimatedSplitsKeepTheTotals: whatever the totals, rows and columns of the
// estimate add up to them exactly.
func TestEstimatedSplitsKeepTheTotals(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		n := 1 + rng.IntN(9)
		truth := make([][]int64, n)
		in, out := make([]int64, n), make([]int64, n)
		for i := range truth {
			truth[i] = make([]int64, n)
			for j := range truth[i] {
				if rng.IntN(3) > 0 {
					truth[i][j] = rng.Int64N(1 << rng.IntN(40))
				}
				in[i] += truth[i][j]
				out[j] += truth[i][j]
			}
		}
		got, ok := collective.EstimateSplits(in, out)
		if !ok {
			t.Fatalf("totals %v, %v refused", in, out)
		}
		for i := range n {
			var row, column int64
			for j := range n {
				if got[i][j] < 0 {
					t.Fatalf("negative part %d", got[i][j])
				}
				row += got[i][j]
				column += got[j][i]
			}
			if row != in[i] || column != out[i] {
				t.Fatalf("rank %d sends %d and receives %d, want %d and %d", i, row, column, in[i], out[i])
			}
		}
	}
	if _, ok := collective.EstimateSplits([]int64{1, 2}, []int64{1, 1}); ok {
		t.Error("totals that contradict each other were accepted")
	}
	even, _ := collective.EstimateSplits([]int64{8, 8}, []int64{8, 8})
	if fmt.Sprint(even) != "[[4 4] [4 4]]" {
		t.Errorf("even totals give %v", even)
	}
}

func TestBandwidth(t *testing.T) {
	// nccl-tests: 1 MiB all_reduce on 2 ranks in 41.2 us is 25.45 GB/s on both.
	alg, bus, ok := collective.Bandwidth(comm.AllReduce, 1<<20, 1<<20, 2, 41200)
	if !ok || fmt.Sprintf("%.2f %.2f", alg, bus) != "25.45 25.45" {
		t.Errorf("algbw %.2f, busbw %.2f, want 25.45 both", alg, bus)
	}
	if _, _, ok := collective.Bandwidth(comm.Barrier, 0, 0, 2, 100); ok {
		t.Error("a barrier has a bandwidth")
	}
}
