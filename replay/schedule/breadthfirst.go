package schedule

// breadthFirst gives each rank v chunks and takes all micro-batches through a
// chunk before the next one begins: forward from the first chunk to the last,
// then backward from the last to the first. A chunk's gradient is complete while
// the chunks before it still have work, which hides its reduction. Any number of
// micro-batches will do.
//
// Source: J. Lamy-Poirier, arXiv 2211.05953, as in the author's Fast-LLM
// (backwards FIFO) and in PyTorch's ScheduleLoopedBFS (LIFO).
//
// In a loop of equal stages with m >= p, makespan (mv+p-1)(forward+backward)
// and bubble (p-1)/(mv+p-1); with m < p,
// ((v-1)p+m+p-1)(forward+backward). Every rank holds all mv chunks. With m some
// more than p, hops cost 2(p-1)c only.
func breadthFirst(s Shape) (Order, error) {
	return rows(s.Ranks, func(r int) []Action {
		return breadth(s, r, 0, 1, make([]Action, 0, 2*s.Loops*s.Microbatches))
	}), nil
}

// breadth appends a breadth-first pass of rank r over the micro-batches first,
// first+step, first+2·step and so on.
func breadth(s Shape, r, first, step int, row []Action) []Action {
	count := s.Microbatches / step
	for c := range s.Loops {
		for i := range count {
			row = append(row, forward(s.Placement.Stage(s.Ranks, r, c), first+i*step))
		}
	}
	for c := s.Loops - 1; c >= 0; c-- {
		for i := range count {
			row = append(row, backward(s.Placement.Stage(s.Ranks, r, c), first+s.BackwardOrder.at(i, count)*step))
		}
	}
	return row
}
