package schedule

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// maxCSV is the largest order that ReadCSV reads, in bytes: room for thirty
// million actions.
const maxCSV = 256 << 20

// ReadCSV reads an order as torch.distributed.pipelining writes it: one row a
// rank, actions between commas, an empty cell where the rank idles. Both of its
// formats, with and without communication, are read. Empty rows at the end of
// the file are not ranks.
//
// PyTorch 2.5 wrote BW for a full backward and B for an input gradient. A file
// that says BW anywhere is read that way.
//
// What is read need not be complete: Order.Validate and Evaluate check that.
func ReadCSV(r io.Reader) (Order, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxCSV+1))
	if err != nil {
		return nil, fmt.Errorf("reading an order: %w", err)
	}
	if len(data) > maxCSV {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrOrder, maxCSV)
	}
	text := strings.TrimRightFunc(string(data), func(c rune) bool { return c == ',' || unicode.IsSpace(c) })
	if text == "" {
		return nil, fmt.Errorf("%w: no action in it (expected one row a rank, such as 0F0,0F1,0B0,0B1)", ErrOrder)
	}
	inputIsB := strings.Contains(text, "BW")

	var o Order
	for line := range strings.SplitSeq(text, "\n") {
		var row []Action
		place := 0
		for cell := range strings.SplitSeq(line, ",") {
			place++
			cell = strings.TrimSpace(cell)
			actions, err := parseCell(cell)
			if err != nil {
				return nil, fmt.Errorf("%w: row %d, cell %d: %w", ErrOrder, len(o)+1, place, err)
			}
			for _, a := range actions {
				if inputIsB && a.Kind == Backward && !strings.Contains(cell, "BW") {
					a.Kind = Input
				}
				row = append(row, a)
			}
		}
		o = append(o, row)
	}
	return o, nil
}

// Numbered is the order with its micro-batches numbered as the last stage runs
// their forwards, on all ranks alike. PyTorch's runtime takes the loss of a
// micro-batch by that position, so it runs no other numbering; which micro-batch
// is which makes no difference to the order. An order whose last stage is on
// several ranks, or nowhere, stays as it is.
func (o Order) Numbered() Order {
	last := int32(o.Stages() - 1)
	number := map[int32]int32{}
	for _, row := range o {
		seen := len(number)
		for _, a := range row {
			if a.Kind == Forward && a.Stage == last {
				if seen > 0 {
					return o
				}
				number[a.Microbatch] = int32(len(number))
			}
		}
	}
	numbered := make(Order, len(o))
	for r, row := range o {
		numbered[r] = slices.Clone(row)
		for i := range row {
			if n, ok := number[row[i].Microbatch]; ok {
				numbered[r][i].Microbatch = n
			}
		}
	}
	return numbered
}

// WriteCSV writes the order in the form that ReadCSV and PyTorch's _load_csv
// read: format compute_only, or compute_comms where the order names its
// transfers. It leaves no cell empty: an order says what comes next, not when.
func (o Order) WriteCSV(w io.Writer) error {
	for r := range o {
		if _, err := io.WriteString(w, strings.Join(o.Cells(r), ",")+"\n"); err != nil {
			return fmt.Errorf("writing an order: %w", err)
		}
	}
	return nil
}
