package schedule

import (
	"fmt"
	"io"
	"math/big"
	"strconv"
)

// GanttLegend explains the characters of Gantt in one line.
const GanttLegend = "0-9 forward, a-z backward or input gradient, A-Z weight gradient of micro-batch 0 1 2 ... (after 9 or z from the first again); alternating: overlapped; . idle"

// Gantt draws the timeline, one line a rank, of at most width columns of time
// (80 if width is not positive). A column shows what the rank does in its
// middle. Where there are columns enough, every unit of time has the same number
// of them.
func (t *Timeline) Gantt(w io.Writer, width int) error {
	if width <= 0 {
		width = 80
	}
	end := t.makespan()
	if each := new(big.Int).Quo(big.NewInt(int64(width)), end); each.Sign() > 0 {
		width = int(each.Int64() * end.Int64())
	}
	label := len(strconv.Itoa(len(t.order) - 1))
	line := make([]byte, width)
	for r, row := range t.order {
		for i := range line {
			line[i] = '.'
		}
		for i, a := range row {
			n := t.index.offset[r] + int32(i)
			first, last := column(t.times.start(n), end, width), column(t.times.end(n), end, width)
			step := 1
			if i > 0 && row[i-1].Overlap {
				first, step = first+1, 2 // between those of its partner
			}
			for c := first; c < last; c += step {
				line[c] = mark(a)
			}
		}
		if _, err := fmt.Fprintf(w, "rank %*d |%s|\n", label, r, line); err != nil {
			return err
		}
	}
	return nil
}

// mark is the character of an action.
func mark(a Action) byte {
	switch a.Kind {
	case Forward:
		return '0' + byte(a.Microbatch%10)
	case Backward, Input:
		return 'a' + byte(a.Microbatch%26)
	}
	return 'A' + byte(a.Microbatch%26)
}

// column is the first column whose middle is not before a time.
func column(at, end *big.Int, width int) int {
	// The middle of column c is at (2c+1)·end/(2·width): the smallest c for
	// which that is at least `at` is the ceiling of (2·at·width - end)/(2·end).
	n := new(big.Int).Mul(at, big.NewInt(2*int64(width)))
	n.Sub(n, end)
	n.Add(n, new(big.Int).Sub(new(big.Int).Lsh(end, 1), big.NewInt(1)))
	return int(n.Quo(n, new(big.Int).Lsh(end, 1)).Int64())
}
