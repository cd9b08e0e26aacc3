package schedule

import (
	"fmt"
	"strings"
)

// Wait is one link of a chain of ranks that wait for each other.
type Wait struct {
	Rank  int
	At    Action // what the rank would run next
	Needs Action // what At needs first
	On    int    // the rank that Needs is on, further down its order
}

// BlockedError says that an order can't run to its end: some ranks wait for
// each other. Chain is the shortest such circle among the ranks that are stuck:
// each link waits on the rank of the next, the last on that of the first.
type BlockedError struct {
	Chain []Wait
}

// Error names every link.
func (e *BlockedError) Error() string {
	var b strings.Builder
	b.WriteString("the order can't run to its end: ")
	for i, w := range e.Chain {
		if i > 0 {
			b.WriteString("; ")
		}
		place := fmt.Sprintf("on rank %d", w.On)
		if w.On == w.Rank {
			place = "later on the same rank"
		} else if next := e.Chain[(i+1)%len(e.Chain)]; next.At != w.Needs {
			place += fmt.Sprintf(" behind %s", next.At)
		}
		fmt.Fprintf(&b, "rank %d at %s waits for %s %s", w.Rank, w.At, w.Needs, place)
	}
	return b.String()
}

// blocked finds the shortest circle; next holds each rank's first action that
// did not run.
func blocked(x *index, next []int32) *BlockedError {
	waits := make([][]Wait, len(x.order))
	for r, row := range x.order {
		n := next[r]
		if n == x.offset[r]+int32(len(row)) {
			continue
		}
		for at := n; at < n+x.together(n); at++ {
			for _, d := range x.needs(at, nil) {
				if on := x.rank[d.action]; d.action >= next[on] {
					waits[r] = append(waits[r], Wait{Rank: r, At: x.action(at), Needs: x.action(d.action), On: int(on)})
				}
			}
		}
	}
	var best []Wait
	for r := range waits {
		if chain := circle(waits, r, len(best)); chain != nil {
			best = chain
		}
		if len(best) == 1 {
			break
		}
	}
	return &BlockedError{Chain: best}
}

// circle is a shortest chain of waits from a rank back to itself, nil if there
// is none shorter than `below` (0: any length).
func circle(waits [][]Wait, from, below int) []Wait {
	came := map[int]Wait{} // by rank: the wait that leads there
	ring := []int{from}
	for depth := 1; len(ring) > 0 && (below == 0 || depth < below); depth++ {
		var further []int
		for _, r := range ring {
			for _, w := range waits[r] {
				if _, seen := came[w.On]; seen {
					continue
				}
				came[w.On] = w
				if w.On == from {
					return trail(came, from, depth)
				}
				further = append(further, w.On)
			}
		}
		ring = further
	}
	return nil
}

// trail reads a circle of a given length backwards from its end.
func trail(came map[int]Wait, from, length int) []Wait {
	chain := make([]Wait, length)
	for at, i := from, length-1; i >= 0; i-- {
		chain[i] = came[at]
		at = came[at].Rank
	}
	return chain
}
