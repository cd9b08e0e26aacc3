package schedule

// MicrobatchOrder is the order in which a chunk's backwards follow its forwards.
type MicrobatchOrder uint8

const (
	FIFO MicrobatchOrder = iota // first forward, first backward (Fast-LLM, GPipe in PyTorch)
	LIFO                        // last forward, first backward (PyTorch's ScheduleLoopedBFS)
)

// String is "fifo" or "lifo".
func (m MicrobatchOrder) String() string {
	if m == LIFO {
		return "lifo"
	}
	return "fifo"
}

// at is the i-th of m micro-batches.
func (m MicrobatchOrder) at(i, count int) int {
	if m == LIFO {
		return count - 1 - i
	}
	return i
}

// Shape is what a generator needs to know. A zero means "not given".
type Shape struct {
	Ranks        int // p, pipeline ranks
	Microbatches int // m, micro-batches of the whole pipeline per step
	Loops        int // v, chunks per rank

	Group         int             // micro-batches that a chunk runs before the next one; depth-first and interleaved-zero-bubble only
	Rounds        int             // passes over all chunks, each with its share of the micro-batches; hybrid only
	BackwardOrder MicrobatchOrder // breadth-first and hybrid only
	Placement     Placement       // breadth-first and hybrid only
}

// rows makes an order from a function that makes one rank's.
func rows(ranks int, row func(rank int) []Action) Order {
	o := make(Order, ranks)
	for r := range o {
		o[r] = row(r)
	}
	return o
}
