package schedule

import "fmt"

// none marks an action that an order doesn't hold.
const none = int32(-1)

// index finds actions in an order. An action's number counts through the ranks
// one after the other.
type index struct {
	order        Order
	stages       int
	microbatches int
	offset       []int32   // number of each rank's first action
	rank         []int32   // rank of each action
	at           [][]int32 // by Kind: number of the action of (stage, micro-batch); nil where the order has none of the kind
}

func (x *index) action(n int32) Action {
	r := x.rank[n]
	return x.order[r][n-x.offset[r]]
}

// find is the number of an action, none if the order doesn't hold it.
func (x *index) find(kind Kind, stage, microbatch int) int32 {
	if x.at[kind] == nil || stage < 0 || stage >= x.stages {
		return none
	}
	return x.at[kind][stage*x.microbatches+microbatch]
}

// backward is the number of the full backward or the input gradient.
func (x *index) backward(stage, microbatch int) int32 {
	if n := x.find(Backward, stage, microbatch); n != none {
		return n
	}
	return x.find(Input, stage, microbatch)
}

// newIndex indexes an order and checks that it is complete.
func newIndex(o Order) (*index, error) {
	x := &index{order: o, stages: o.Stages(), microbatches: o.Microbatches(), at: make([][]int32, kinds)}
	actions, forwards := 0, 0
	for r, row := range o {
		if len(row) == 0 {
			return nil, fmt.Errorf("%w: rank %d does nothing: leave it out or give it a stage", ErrOrder, r)
		}
		actions += len(row)
		for i, a := range row {
			if err := checkAction(row, i); err != nil {
				return nil, fmt.Errorf("%w: rank %d: %w", ErrOrder, r, err)
			}
			if a.Kind == Forward {
				forwards++
			}
		}
	}
	if forwards == 0 {
		return nil, fmt.Errorf("%w: no forward in it", ErrOrder)
	}
	// Checked before the tables are made, whose size it bounds.
	if x.stages*x.microbatches > forwards {
		return nil, fmt.Errorf("%w: %s", ErrOrder, missingForward(o, x.stages, x.microbatches))
	}
	if actions > maxActions {
		return nil, fmt.Errorf("%w: %d actions, at most %d are evaluated", ErrOrder, actions, maxActions)
	}

	x.rank = make([]int32, 0, actions)
	for r, row := range o {
		x.offset = append(x.offset, int32(len(x.rank)))
		for _, a := range row {
			n := int32(len(x.rank))
			x.rank = append(x.rank, int32(r))
			if !a.Kind.hasMicrobatch() {
				continue
			}
			if err := x.checkEnds(a); err != nil {
				return nil, err
			}
			if err := x.enter(a, n); err != nil {
				return nil, err
			}
		}
	}
	return x, x.checkComplete()
}

// enter puts action number n in the tables.
func (x *index) enter(a Action, n int32) error {
	if x.at[a.Kind] == nil {
		table := make([]int32, x.stages*x.microbatches)
		for i := range table {
			table[i] = none
		}
		x.at[a.Kind] = table
	}
	place := &x.at[a.Kind][int(a.Stage)*x.microbatches+int(a.Microbatch)]
	if *place != none {
		return fmt.Errorf("%w: %s stands twice, on rank %d and on rank %d", ErrOrder, a, x.rank[*place], x.rank[n])
	}
	*place = n
	return nil
}

// missingForward names the first forward that an order lacks.
func missingForward(o Order, stages, microbatches int) string {
	held := map[[2]int32]bool{}
	for _, row := range o {
		for _, a := range row {
			if a.Kind == Forward {
				held[[2]int32{a.Stage, a.Microbatch}] = true
			}
		}
	}
	for s := range stages {
		for mb := range microbatches {
			if !held[[2]int32{int32(s), int32(mb)}] {
				return fmt.Sprintf("%s is missing: the order names stages up to %d and micro-batches up to %d, and each stage runs each of them", forward(s, mb), stages-1, microbatches-1)
			}
		}
	}
	return "a forward stands twice"
}
