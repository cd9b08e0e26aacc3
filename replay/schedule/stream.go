package schedule

// beside says whether the kind runs on a rank's data-parallel stream, beside its
// passes.
func (k Kind) beside() bool { return k == Unshard || k == ReduceGradient }

// streams are the data-parallel streams of all ranks while an order is played:
// each runs one collective at a time, in the order of actions.
type streams[T instant[T]] struct {
	free     []T // by rank: when the last collective so far ends
	gathered map[shardPlace]T
	reduced  map[shardPlace]T
}

// shardPlace is a stage on a rank: orders with two directions hold it on two.
type shardPlace struct {
	rank, stage int32
}

func newStreams[T instant[T]](ranks int, zero T) streams[T] {
	s := streams[T]{free: make([]T, ranks), gathered: map[shardPlace]T{}, reduced: map[shardPlace]T{}}
	for r := range s.free {
		s.free[r] = zero
	}
	return s
}

// run puts a collective on a rank's stream when the rank has reached it.
func (s streams[T]) run(rank int32, a Action, reached, takes T) (start, end T) {
	start = reached
	if start.before(s.free[rank]) {
		start = s.free[rank]
	}
	end = start.plus(takes)
	s.free[rank] = end
	if a.Kind == Unshard {
		s.gathered[shardPlace{rank, a.Stage}] = end
	} else {
		s.reduced[shardPlace{rank, a.Stage}] = end
	}
	return start, end
}

// wait is when an action may start that could at `start` but for collectives: a
// pass waits for its stage's weights, WAIT_REDUCE_GRAD for the reduction.
func (s streams[T]) wait(rank int32, a Action, start T) T {
	var until T
	var found bool
	switch {
	case a.Kind.Computes() && len(s.gathered) > 0:
		until, found = s.gathered[shardPlace{rank, a.Stage}]
	case a.Kind == WaitReduceGradient:
		until, found = s.reduced[shardPlace{rank, a.Stage}]
	}
	if found && start.before(until) {
		return until
	}
	return start
}
