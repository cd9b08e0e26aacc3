package schedule

import "fmt"

// Validate checks that the order is complete: every stage runs every
// micro-batch forward exactly once and, unless the order is for inference,
// backward exactly once, whole or in its two parts, on the same rank; transfers
// stand beside what they carry, and have both their sides. The error is
// ErrOrder. Whether the order can run to its end is for Evaluate to say.
func (o Order) Validate() error {
	_, err := newIndex(o)
	return err
}

// checkAction checks an action by itself and with the one after it.
func checkAction(row []Action, i int) error {
	a := row[i]
	switch {
	case int(a.Kind) >= kinds:
		return fmt.Errorf("unknown %s", a.Kind)
	case a.Stage < 0 || a.Kind.hasMicrobatch() && a.Microbatch < 0 || !a.Kind.hasMicrobatch() && a.Microbatch != NoMicrobatch:
		return fmt.Errorf("%s with stage %d and micro-batch %d", a.Kind, a.Stage, a.Microbatch)
	case !a.Overlap:
		return nil
	case a.Kind != Forward || i+1 == len(row) || row[i+1].Overlap || row[i+1].Kind != Backward && row[i+1].Kind != Input:
		return fmt.Errorf("%s is marked as overlapped, but no backward follows it", a)
	}
	return nil
}

// checkComplete checks what an order as a whole needs.
func (x *index) checkComplete() error {
	trains := x.at[Backward] != nil || x.at[Input] != nil || x.at[Weight] != nil
	for s := range x.stages {
		for mb := range x.microbatches {
			if err := x.checkChunk(s, mb, trains); err != nil {
				return fmt.Errorf("%w: %w", ErrOrder, err)
			}
		}
	}
	return nil
}

// checkChunk checks one micro-batch on one stage.
func (x *index) checkChunk(s, mb int, trains bool) error {
	f := x.find(Forward, s, mb)
	if f == none {
		return fmt.Errorf("%s is missing", forward(s, mb))
	}
	full, in, w := x.find(Backward, s, mb), x.find(Input, s, mb), x.find(Weight, s, mb)
	switch {
	case trains && full == none && in == none:
		return fmt.Errorf("%s is missing, with %s present", backward(s, mb), forward(s, mb))
	case full != none && (in != none || w != none):
		return fmt.Errorf("%s stands beside a part of itself (%s or %s)", backward(s, mb), input(s, mb), weight(s, mb))
	case in != none && w == none:
		return fmt.Errorf("%s is missing, with %s present", weight(s, mb), input(s, mb))
	case w != none && in == none:
		return fmt.Errorf("%s is missing, with %s present", input(s, mb), weight(s, mb))
	}
	for _, n := range []int32{full, in, w} {
		if n != none && x.rank[n] != x.rank[f] {
			return fmt.Errorf("%s is on rank %d and %s on rank %d: what a forward keeps is not moved", x.action(f), x.rank[f], x.action(n), x.rank[n])
		}
	}
	for _, wait := range []struct{ kind, send Kind }{{WaitSendForward, SendForward}, {WaitSendBackward, SendBackward}} {
		w, send := x.find(wait.kind, s, mb), x.find(wait.send, s, mb)
		if w != none && (send == none || x.rank[send] != x.rank[w]) {
			return fmt.Errorf("%s waits for a send that its rank does not make", x.action(w))
		}
	}
	if s+1 < x.stages {
		if err := x.checkTransfer(SendForward, RecvForward, f, x.find(Forward, s+1, mb), s, s+1, mb); err != nil {
			return err
		}
	}
	if s > 0 {
		return x.checkTransfer(SendBackward, RecvBackward, x.backward(s, mb), x.backward(s-1, mb), s, s-1, mb)
	}
	return nil
}

// checkTransfer checks the transfer, if the order names it, of what action made
// makes on stage `from` to action used on stage `to`.
func (x *index) checkTransfer(send, recv Kind, made, used int32, from, to, mb int) error {
	out, in := x.find(send, from, mb), x.find(recv, to, mb)
	switch {
	case out == none && in == none:
		return nil
	case in == none:
		return fmt.Errorf("%s is missing, with %s present", act(to, recv, mb), x.action(out))
	case out == none:
		return fmt.Errorf("%s is missing, with %s present", act(from, send, mb), x.action(in))
	case made == none || used == none:
		return fmt.Errorf("%s stands without an action that makes or needs what it carries", x.action(out))
	case x.rank[out] != x.rank[made]:
		return fmt.Errorf("%s is on rank %d, but %s on rank %d", x.action(out), x.rank[out], x.action(made), x.rank[made])
	case x.rank[in] != x.rank[used]:
		return fmt.Errorf("%s is on rank %d, but %s on rank %d", x.action(in), x.rank[in], x.action(used), x.rank[used])
	}
	return nil
}

// checkEnds refuses transfers over either end of the pipeline.
func (x *index) checkEnds(a Action) error {
	switch {
	case a.Stage == 0 && (a.Kind == RecvForward || a.Kind == SendBackward):
		return fmt.Errorf("%w: %s: no stage comes before stage 0", ErrOrder, a)
	case int(a.Stage) == x.stages-1 && (a.Kind == SendForward || a.Kind == RecvBackward):
		return fmt.Errorf("%w: %s: no stage comes after stage %d, the last", ErrOrder, a, a.Stage)
	}
	return nil
}
