package schedule

import (
	"fmt"
	"slices"
)

// WithTransfers is the order with every transfer between ranks named: a send
// right after the pass that makes what it carries, and at that moment the
// receive on the other rank, behind all that this rank has begun by then.
// Frameworks that post transfers in their order of actions then never wait for
// each other. What else the order holds (UNSHARD, REDUCE_GRAD) keeps its place.
//
// The moment is counted in turns, in each of which every rank, the lowest
// first, runs its next action if its input has been sent. That is the rule of
// torch.distributed.pipelining (_add_send_recv), so that an order lowered here
// is the one that PyTorch makes of the same compute_only file, and WriteCSV
// writes it as a compute_comms file.
//
// The error is ErrOrder if the order is malformed or names transfers already,
// and a *BlockedError if it can't run to its end.
func (o Order) WithTransfers() (Order, error) {
	x, err := newIndex(o)
	if err != nil {
		return nil, err
	}
	for _, k := range []Kind{SendForward, SendBackward} {
		if x.at[k] != nil {
			return nil, fmt.Errorf("%w: it names its transfers already", ErrOrder)
		}
	}
	named := make(Order, len(o))
	next := slices.Clone(x.offset)
	var list []dependency
	ready := func(n, count int32) bool {
		list = list[:0]
		for i := range count {
			list = x.needs(n+i, list)
		}
		return !slices.ContainsFunc(list, func(d dependency) bool { return d.action >= next[x.rank[d.action]] })
	}
	for left := len(x.rank); left > 0; {
		before := left
		for r, row := range o {
			n := next[r]
			i := n - x.offset[r]
			if int(i) == len(row) {
				continue
			}
			count := x.together(n)
			if !ready(n, count) {
				continue
			}
			cell := row[i : i+count]
			named[r] = append(named[r], cell...)
			for _, a := range cell {
				x.addTransfer(named, r, a)
			}
			next[r] += count
			left -= int(count)
		}
		if left == before {
			return nil, blocked(x, next)
		}
	}
	return named, nil
}

// addTransfer appends the transfer of what action a of rank r makes, if any.
func (x *index) addTransfer(named Order, r int, a Action) {
	s, mb := int(a.Stage), int(a.Microbatch)
	send, recv, to, used := SendForward, RecvForward, s+1, none
	switch {
	case a.Kind == Forward:
		used = x.find(Forward, to, mb)
	case isBackward(a):
		send, recv, to = SendBackward, RecvBackward, s-1
		used = x.backward(to, mb)
	}
	if used == none || int(x.rank[used]) == r {
		return
	}
	named[r] = append(named[r], act(s, send, mb))
	at := x.rank[used]
	named[at] = append(named[at], act(to, recv, mb))
}

// WithReductionWaits is the order with a wait right after each reduction of a
// gradient, as PyTorch from 2.15 on places it before it adds transfers.
func (o Order) WithReductionWaits() Order {
	waits := make(Order, len(o))
	for r, row := range o {
		for _, a := range row {
			waits[r] = append(waits[r], a)
			if a.Kind == ReduceGradient {
				a.Kind = WaitReduceGradient
				waits[r] = append(waits[r], a)
			}
		}
	}
	return waits
}

// WithSendWaits is an order that names its transfers, with a wait for each send:
// after the backward that shows that a forward's output has been used, and at
// the end for all others. PyTorch from 2.15 on wants them in a compute_comms
// file, older ones don't read them.
//
// Source: torch.distributed.pipelining _add_wait_send.
func (o Order) WithSendWaits() Order {
	waits := make(Order, len(o))
	for r, row := range o {
		var sends []Action               // in order
		pending := make(map[Action]bool) // those of them without a wait
		for _, a := range row {
			waits[r] = append(waits[r], a)
			if a.Kind == SendForward || a.Kind == SendBackward {
				sends = append(sends, a)
				pending[a] = true
			}
			if !isBackward(a) {
				continue
			}
			if send := act(int(a.Stage), SendForward, int(a.Microbatch)); pending[send] {
				delete(pending, send)
				waits[r] = append(waits[r], act(int(a.Stage), WaitSendForward, int(a.Microbatch)))
			}
		}
		for _, send := range sends {
			if !pending[send] {
				continue
			}
			kind := WaitSendForward
			if send.Kind == SendBackward {
				kind = WaitSendBackward
			}
			waits[r] = append(waits[r], act(int(send.Stage), kind, int(send.Microbatch)))
		}
	}
	return waits
}
