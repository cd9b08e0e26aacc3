package tune

import (
	"math"
	"math/bits"
	"slices"
)

// Heat is who wins by question and size, as a heat map shows it: a row for each
// question, a column for each range of sizes.
type Heat struct {
	Contenders []Contender // that were compared, by name
	Columns    []int64     // the least size of each, bytes, rising
	Rows       []HeatRow   // in the order of the comparisons
}

// HeatRow is a question's.
type HeatRow struct {
	Question
	Cells []HeatCell // by column
}

// HeatCell is the outcome in a range of sizes.
type HeatCell struct {
	// Places is how many sizes were compared here; the rest is empty where it is 0.
	Places int
	// Winner has the least time at these sizes, in the geometric mean.
	Winner Contender
	// Clear: it wins clearly at each of these sizes.
	Clear bool
	// Gain is the next best's time over the winner's, in the geometric mean.
	Gain float64
}

// NewHeat makes a heat map of at most so many columns: as many as there are
// measured sizes, or powers of 2, 4, 8 ... so that they are few enough. Questions
// that one contender alone has answers to have no row.
func NewHeat(list []Comparison, columns int) *Heat {
	h := &Heat{}
	var sizes []int64
	for i := range list {
		for _, p := range list[i].Places {
			if len(p.Times) > 1 {
				sizes = append(sizes, p.Bytes)
			}
		}
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	h.Columns = sizes
	for step := 1; len(h.Columns) > max(columns, 1) && step < 64; step++ {
		h.Columns = nil
		power := -1 // of 2^step, that the sizes of the last column are in
		for _, bytes := range sizes {
			if n := bits.Len64(uint64(bytes)) / step; n != power {
				h.Columns, power = append(h.Columns, bytes), n
			}
		}
	}
	for i := range list {
		c := &list[i]
		row := HeatRow{Question: c.Question, Cells: make([]HeatCell, len(h.Columns))}
		any := false
		for col, from := range h.Columns {
			to := int64(math.MaxInt64)
			if col+1 < len(h.Columns) {
				to = h.Columns[col+1]
			}
			row.Cells[col] = c.cell(from, to)
			any = any || row.Cells[col].Places > 0
		}
		if !any {
			continue
		}
		h.Rows = append(h.Rows, row)
		h.Contenders = append(h.Contenders, c.Contenders...)
	}
	slices.SortFunc(h.Contenders, CompareContenders)
	h.Contenders = slices.Compact(h.Contenders)
	return h
}

// cell judges the places from a size to below another.
func (c *Comparison) cell(from, to int64) HeatCell {
	var cell HeatCell
	sums := map[Contender]float64{} // of logarithms, over the winner of each place
	at := map[Contender]int{}
	for i := range c.Places {
		p := &c.Places[i]
		if p.Bytes < from || p.Bytes >= to || len(p.Times) < 2 {
			continue
		}
		cell.Places++
		for who, t := range p.Times {
			sums[who] += math.Log(float64(t) / float64(p.Times[p.Winner]))
			at[who]++
		}
	}
	if cell.Places == 0 {
		return cell
	}
	// Who was measured at the most of these places comes first: means over
	// different places can't be compared.
	most := 0
	for _, n := range at {
		most = max(most, n)
	}
	best, second := math.Inf(1), math.Inf(1)
	for _, who := range c.Contenders {
		if at[who] < most {
			continue
		}
		switch mean := sums[who] / float64(most); {
		case mean < best:
			cell.Winner, best, second = who, mean, best
		case mean < second:
			second = mean
		}
	}
	if !math.IsInf(second, 1) {
		cell.Gain = math.Exp(second - best)
	} else {
		cell.Gain = 1
	}
	cell.Clear = true
	for i := range c.Places {
		p := &c.Places[i]
		if p.Bytes >= from && p.Bytes < to && len(p.Times) > 1 && (p.Winner != cell.Winner || !p.Clear) {
			cell.Clear = false
		}
	}
	return cell
}
