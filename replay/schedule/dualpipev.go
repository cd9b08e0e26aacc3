package schedule

import "fmt"

// dualPipeV places two chunks per rank in a V and pairs the forward of one with
// the backward of the other, so that a framework can overlap them.
//
// Source: deepseek-ai/DualPipe, DualPipeV; PyTorch's ScheduleDualPipeV.
//
// With forward, input gradient and weight gradient of equal length 1 and pairs
// run one after the other, makespan 2m·3 + 2(p-1); every rank holds 2p+1
// chunks at most.
func dualPipeV(s Shape) (Order, error) {
	if s.Microbatches < 2*s.Ranks {
		return nil, fmt.Errorf("dualpipev needs at least 2 micro-batches per rank, %d for %d ranks, not %d", 2*s.Ranks, s.Ranks, s.Microbatches)
	}
	return rows(s.Ranks, func(r int) []Action {
		return dualRow(s.Ranks, r, s.Microbatches,
			chunkCursor{stage: V.Stage(s.Ranks, r, 0)}, chunkCursor{stage: V.Stage(s.Ranks, r, 1)})
	}), nil
}

// dualRow is the order of the rank at distance r from where its `near` chunk's
// micro-batches come in, of n ranks up to where they reach chunk `far`. Each
// chunk runs m micro-batches. The eight blocks and their lengths are those of
// the source.
func dualRow(n, r, m int, near, far chunkCursor) []Action {
	var row, pending []Action // pending: weight gradients put off, oldest first
	add := func(a Action) {
		row = append(row, a)
		if a.Kind == Input {
			pending = append(pending, act(int(a.Stage), Weight, int(a.Microbatch)))
		}
	}
	addPending := func() {
		row, pending = append(row, pending[0]), pending[1:]
	}
	addPair := func(forward, backward Action) {
		forward.Overlap = true
		row = append(row, forward, backward)
	}

	for range 2 * (n - r - 1) {
		add(near.forward())
	}
	for range r + 1 {
		add(near.forward())
		add(far.forward())
	}
	for range n - r - 1 {
		add(far.input())
		addPending()
		add(far.forward())
	}
	for i := range m - 2*n + r + 1 {
		if i == 0 && r == n-1 {
			// The rank at the turn doesn't overlap its first pair: the
			// other side waits for the forward.
			add(near.forward())
			add(far.backward())
		} else {
			addPair(near.forward(), far.backward())
		}
		addPair(far.forward(), near.backward())
	}
	for range n - r - 1 {
		add(far.backward())
		addPair(far.forward(), near.backward())
	}
	for i := range 2 * (r + 1) {
		// The second half splits its backwards.
		cursor := &far
		if i%2 == 1 {
			cursor = &near
		}
		if i > r {
			add(cursor.input())
		} else {
			add(cursor.backward())
		}
	}
	for range n - r - 1 {
		addPending()
		add(near.input())
	}
	for len(pending) > 0 {
		addPending()
	}
	return row
}
