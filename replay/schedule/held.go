package schedule

import "slices"

// PeakChunks is, for each rank, the most micro-batches times chunks whose
// activations it holds at once: from the start of a forward to the end of its
// full backward or weight gradient, or of the forward itself in inference. It
// depends on the order alone, not on how long anything takes.
func (o Order) PeakChunks() []int {
	peaks := make([]int, len(o))
	for r, peak := range o.PeakHeld(func(int) int64 { return 1 }) {
		peaks[r] = int(peak)
	}
	return peaks
}

// PeakHeld is PeakChunks with stages of different weight: the largest sum, for
// each rank, of what the stages held are worth.
func (o Order) PeakHeld(of func(stage int) int64) []int64 {
	trains := slices.ContainsFunc(o, func(row []Action) bool {
		return slices.ContainsFunc(row, func(a Action) bool { return a.Kind.Computes() && a.Kind != Forward })
	})
	peaks := make([]int64, len(o))
	for r, row := range o {
		held := int64(0)
		for _, a := range row {
			switch a.Kind {
			case Forward:
				peaks[r] = max(peaks[r], held+of(int(a.Stage)))
				if trains {
					held += of(int(a.Stage))
				}
			case Backward, Weight:
				held -= of(int(a.Stage))
			}
		}
	}
	return peaks
}
