package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrOrder: an order is malformed or incomplete.
var ErrOrder = errors.New("invalid order")

// Order is what each rank does, in order: Order[r] belongs to rank r.
type Order [][]Action

// Ranks is the number of pipeline ranks.
func (o Order) Ranks() int { return len(o) }

// Microbatches is the number of micro-batches, one more than the highest named.
func (o Order) Microbatches() int {
	most := NoMicrobatch
	for _, row := range o {
		for _, a := range row {
			most = max(most, int(a.Microbatch))
		}
	}
	return most + 1
}

// Stages is the number of stages, one more than the highest named.
func (o Order) Stages() int {
	most := -1
	for _, row := range o {
		for _, a := range row {
			most = max(most, int(a.Stage))
		}
	}
	return most + 1
}

// Loops is the number of chunks per rank: the most stages that one rank holds.
// Orders with two directions hold each stage twice, and both count.
func (o Order) Loops() int {
	most := 0
	for _, row := range o {
		held := map[int32]bool{}
		for _, a := range row {
			if a.Kind.Computes() {
				held[a.Stage] = true
			}
		}
		most = max(most, len(held))
	}
	return most
}

// Copies is the most ranks that one stage is on: 2 where micro-batches enter from
// both ends of the pipeline.
func (o Order) Copies() int {
	on := make([]int, o.Stages())
	most := 0
	for _, row := range o {
		held := map[int32]bool{}
		for _, a := range row {
			if a.Kind.Computes() && !held[a.Stage] {
				held[a.Stage] = true
				on[a.Stage]++
				most = max(most, on[a.Stage])
			}
		}
	}
	return most
}

// Cells is rank r's order as text, an overlapped pair in one cell.
func (o Order) Cells(r int) []string {
	row := o[r]
	cells := make([]string, 0, len(row))
	for i := 0; i < len(row); i++ {
		if row[i].Overlap && i+1 < len(row) {
			cells = append(cells, "("+row[i].String()+";"+row[i+1].String()+overlapSuffix)
			i++
			continue
		}
		cells = append(cells, row[i].String())
	}
	return cells
}

// MarshalJSON writes a list of cells for each rank.
func (o Order) MarshalJSON() ([]byte, error) {
	rows := make([][]string, len(o))
	for r := range o {
		rows[r] = o.Cells(r)
	}
	return json.Marshal(rows)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (o *Order) UnmarshalJSON(data []byte) error {
	var rows [][]string
	if err := json.Unmarshal(data, &rows); err != nil {
		return err
	}
	read := make(Order, len(rows))
	for r, cells := range rows {
		for i, cell := range cells {
			actions, err := parseCell(cell)
			if err != nil {
				return fmt.Errorf("%w: rank %d, place %d: %w", ErrOrder, r, i, err)
			}
			read[r] = append(read[r], actions...)
		}
	}
	*o = read
	return nil
}
