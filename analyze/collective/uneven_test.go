package collective_test

import (
	"fmt"
	"strings"
	"testing"

	"mixdown/analyze/collective"
	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// TestUnevenGathers: an operation in the same place on all members is one, though
// its sizes differ; what is not in the same place everywhere is none.
func TestUnevenGathers(t *testing.T) {
	// Words: "r8" an all_reduce of 8, "g3" an all_gather, "s3" a reduce_scatter.
	build := func(ranks ...string) *trace.Run {
		run := &trace.Run{}
		var all []int
		for r := range ranks {
			all = append(all, r)
		}
		for r, text := range ranks {
			rank := &trace.Rank{Rank: r, Names: trace.NewStrings(), Groups: []comm.Group{{Name: "0", Ranks: all, Size: len(all)}}}
			for i, word := range strings.Fields(text) {
				op := comm.Operation{DType: comm.Float32, SizeKnown: true, Index: i, Start: int64(100 * i), End: int64(100*i + 50)}
				if _, err := fmt.Sscanf(word[1:], "%d", &op.In); err != nil {
					t.Fatal(err)
				}
				op.Out = op.In
				switch word[0] {
				case 'r':
					op.Op = comm.AllReduce
				case 'g':
					op.Op, op.Out = comm.AllGather, op.In*int64(len(ranks))
				case 's':
					op.Op, op.In = comm.ReduceScatter, op.Out*int64(len(ranks))
				}
				rank.Operations = append(rank.Operations, op)
			}
			run.Ranks = append(run.Ranks, rank)
		}
		return run
	}
	for _, c := range []struct {
		name    string
		ranks   []string
		matched int
	}{
		{"between two reductions", []string{"r8 g3 r9", "r8 g5 r9", "r8 g4 r9"}, 3},
		{"two in a row", []string{"r8 g3 s2 r9", "r8 g5 s7 r9"}, 4},
		{"some members alike", []string{"r8 g3 r9", "r8 g3 r9", "r8 g4 r9"}, 3},
		{"alone", []string{"g3", "g5"}, 1},
		{"one of them more", []string{"r8 g3 g1 r9", "r8 g5 r9"}, 2},
		{"another operation", []string{"r8 g3 r9", "r8 s5 r9"}, 2},
		{"all_reduces are never uneven", []string{"r8 r3 r9", "r8 r5 r9"}, 2},
		{"a window that begins later", []string{"g3 g4 g5", "g4 g5 g6"}, 2},
	} {
		run := build(c.ranks...)
		m := collective.Match(run)
		if len(m.Collectives) != c.matched {
			t.Errorf("%s: %d matched, want %d: %v", c.name, len(m.Collectives), c.matched, m.Unmatched)
		}
		for _, of := range m.Collectives {
			for _, member := range of.Members[1:] {
				if a, b := run.Ranks[of.Members[0].Rank].Operations[of.Members[0].Operation], run.Ranks[member.Rank].Operations[member.Operation]; a.Op != b.Op {
					t.Errorf("%s: %s matched with %s", c.name, a.Op, b.Op)
				}
			}
		}
	}
}
