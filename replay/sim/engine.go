package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mixdown/replay/schedule"
)

// ErrBlocked: the order can't run to its end.
var ErrBlocked = errors.New("the order can't run to its end")

// ErrTooLong: what was asked for takes longer than can be counted.
var ErrTooLong = errors.New("a step of more than 73 years is not played")

// Bounds of times, ns, so that sums stay within 64 bits: of one task, message or
// reduction, and of a moment that is played.
const (
	longestTask = int64(1) << 56
	farthest    = int64(1) << 61
)

// atMost is a time that was computed, within what is played.
func atMost(ns float64) int64 {
	if !(ns < float64(longestTask)) {
		return longestTask
	}
	return int64(ns)
}

// Moment is when an action ran, ns after the start of the step.
type Moment struct{ Start, End int64 }

// Run is an order that was played.
type Run struct {
	Order   schedule.Order
	Moments [][]Moment // by place and position in the order
	// Spans is how long each action keeps its place, ns: the gap before it and the
	// work. Of an overlapped pair the first has it all.
	Spans   [][]int64
	Reduced []int64 // by place: when its last reduction or gather ended, 0 without any
	// Kept is the most micro-batches times chunks that each place holds at once where
	// activations are moved to another memory; nil where they stay.
	Kept []int
	Step int64 // ns, the length of the step

	firstTask, lastTask int64 // ns, over all places
}

// never is the time of what has not happened.
const never = -1

// transfer is one message.
type transfer struct {
	sent, posted, done int64
	waiter             int32 // place that waits for it, -1: none
}

// player plays one order.
type player struct {
	order schedule.Order
	costs *Costs
	opts  Options
	next  []int   // by place: action
	clock []int64 // by place
	// forward[stage·M+mb] carries the output of the stage, backward its input's
	// gradient.
	forward, backward []transfer
	place             [2][]int32 // of the forward and the backward of [stage·M+mb], -1: nowhere
	edges             map[[2]int32]int64
	reducer           []int64           // by place: when its data-parallel stream is free
	gathered          []map[int32]int64 // by place: when a stage's weights are there
	moves             []mover           // by place; nil: activations stay where they are
	ready             []int32
	run               *Run
	tooLate           bool // a moment was beyond the farthest
}

// moment is a time that is played, or the farthest.
func (p *player) moment(at int64) int64 {
	if at > farthest {
		p.tooLate = true
		return farthest
	}
	return at
}

// Play runs an order. Actions that name transfers (SEND, RECV) have no effect:
// messages leave when they are made. UNSHARD and REDUCE_GRAD run beside the
// tasks.
func Play(order schedule.Order, costs *Costs, opts Options) (*Run, error) {
	if err := order.Validate(); err != nil {
		return nil, err
	}
	p := newPlayer(order, costs, opts)
	for place := range order {
		p.ask(int32(place), 0, p.clock[place])
	}
	for len(p.ready) > 0 {
		place := p.ready[len(p.ready)-1]
		p.ready = p.ready[:len(p.ready)-1]
		p.advance(place)
	}
	if err := p.stuck(); err != nil {
		return nil, err
	}
	p.finish()
	if p.tooLate {
		return nil, ErrTooLong
	}
	return p.run, nil
}

func newPlayer(order schedule.Order, costs *Costs, opts Options) *player {
	m := order.Microbatches()
	n := order.Stages() * m
	p := &player{
		order: order, costs: costs, opts: opts,
		next: make([]int, len(order)), clock: costs.head(len(order)),
		forward: make([]transfer, n), backward: make([]transfer, n),
		edges: map[[2]int32]int64{}, reducer: make([]int64, len(order)), gathered: make([]map[int32]int64, len(order)),
		run: &Run{
			Order: order, Moments: make([][]Moment, len(order)), Spans: make([][]int64, len(order)), Reduced: make([]int64, len(order)),
		},
	}
	if costs.Move != nil {
		p.moves = newMovers(len(order))
	}
	for i := range n {
		p.forward[i] = transfer{never, never, never, -1}
		p.backward[i] = transfer{never, never, never, -1}
	}
	for k := range p.place {
		p.place[k] = slices.Repeat([]int32{-1}, n)
	}
	for r, row := range order {
		p.run.Moments[r], p.run.Spans[r] = make([]Moment, len(row)), make([]int64, len(row))
		p.gathered[r] = map[int32]int64{}
		p.ready = append(p.ready, int32(r))
		for _, a := range row {
			switch a.Kind {
			case schedule.Forward:
				p.place[0][int(a.Stage)*m+int(a.Microbatch)] = int32(r)
			case schedule.Backward, schedule.Input:
				p.place[1][int(a.Stage)*m+int(a.Microbatch)] = int32(r)
			}
		}
	}
	return p
}

// advance runs a place as far as it gets.
func (p *player) advance(place int32) {
	row := p.order[place]
	for p.next[place] < len(row) {
		i := p.next[place]
		a := row[i]
		count := 1
		if a.Overlap {
			count = 2
		}
		var arrived int64 = never
		for _, part := range row[i : i+count] {
			t := p.input(part)
			if t == nil {
				continue
			}
			if t.done == never {
				t.waiter = place
				return
			}
			arrived = max(arrived, t.done)
		}
		if !p.pass(place, a) {
			return
		}
		p.perform(place, i, count, arrived)
		p.next[place] += count
	}
}

// pass says whether nothing but messages keeps a place from its next action. In
// a blocking program what it sent last must have been received.
func (p *player) pass(place int32, a schedule.Action) bool {
	if p.opts.Sends == Running || !a.Kind.Computes() {
		return true
	}
	last := before(p.order[place], p.next[place])
	if last < 0 {
		return true
	}
	t := p.output(p.order[place][last], place)
	if t == nil {
		return true
	}
	if t.done == never {
		t.waiter = place
		return false
	}
	p.clock[place] = max(p.clock[place], t.done)
	return true
}

// before is the position of the task before position i of a row, -1 if there is
// none.
func before(row []schedule.Action, i int) int {
	for i--; i >= 0 && !row[i].Kind.Computes(); i-- {
	}
	return i
}

// perform runs `count` actions as one.
func (p *player) perform(place int32, i, count int, arrived int64) {
	row := p.order[place]
	a := row[i]
	switch a.Kind {
	case schedule.Unshard:
		p.gathered[place][a.Stage] = p.beside(place, p.costs.Gather.of(a.Stage))
		p.run.Moments[place][i] = Moment{p.gathered[place][a.Stage] - p.costs.Gather.of(a.Stage), p.gathered[place][a.Stage]}
		return
	case schedule.ReduceGradient:
		end := p.beside(place, p.costs.Reduce.of(a.Stage))
		p.run.Moments[place][i] = Moment{end - p.costs.Reduce.of(a.Stage), end}
		return
	}
	if !a.Kind.Computes() {
		p.run.Moments[place][i] = Moment{p.clock[place], p.clock[place]}
		return
	}
	start := p.clock[place]
	for _, part := range row[i : i+count] {
		start = max(start, p.gathered[place][part.Stage])
	}
	waited := arrived > start
	gap := p.costs.gap(p.opts, int(place), kindBefore(row, i), a.Kind, waited)
	start = max(start, arrived)
	if p.moves != nil {
		start = max(start, p.moves[place].fetch(row[i:i+count], p.costs))
	}
	start += gap
	end := start
	for _, part := range row[i : i+count] {
		end += p.costs.at(int(place), part)
	}
	for n := range count {
		p.run.Moments[place][i+n] = Moment{start, end}
	}
	end = p.moment(end)
	p.clock[place] = end
	if p.moves != nil {
		p.moves[place].ran(row[i:i+count], Moment{start, end}, p.costs)
	}
	p.run.Spans[place][i] = gap + end - start
	p.ask(place, i+count, end)
	for _, part := range row[i : i+count] {
		p.send(part, place, end)
	}
}

// kindBefore is the kind of the task before the i-th action of a row, noTask for
// the first.
func kindBefore(row []schedule.Action, i int) int {
	if i = before(row, i); i >= 0 {
		return int(row[i].Kind)
	}
	return noTask
}

// beside runs something on a place's data-parallel stream and says when it ends.
func (p *player) beside(place int32, ns int64) int64 {
	end := p.moment(max(p.clock[place], p.reducer[place]) + ns)
	p.reducer[place] = end
	p.run.Reduced[place] = end
	return end
}

// input is what an action needs of the stage beside its own, nil if it needs
// nothing. It is a message even where one place holds both stages: it is done
// when it is made.
func (p *player) input(a schedule.Action) *transfer {
	m := p.costs.microbatches
	switch a.Kind {
	case schedule.Forward:
		if a.Stage > 0 {
			return &p.forward[int(a.Stage-1)*m+int(a.Microbatch)]
		}
	case schedule.Backward, schedule.Input:
		if int(a.Stage)+1 < p.costs.stages && !p.costs.local {
			return &p.backward[int(a.Stage+1)*m+int(a.Microbatch)]
		}
	}
	return nil
}

// output is the message that an action made, nil if none goes to another place.
func (p *player) output(a schedule.Action, place int32) *transfer {
	t, to := p.made(a)
	if t == nil || to == place {
		return nil
	}
	return t
}

// made is what an action makes for the next stage, and the place that needs it.
func (p *player) made(a schedule.Action) (*transfer, int32) {
	m := p.costs.microbatches
	at := int(a.Stage)*m + int(a.Microbatch)
	switch a.Kind {
	case schedule.Forward:
		if int(a.Stage)+1 < p.costs.stages {
			return &p.forward[at], p.place[0][at+m]
		}
	case schedule.Backward, schedule.Input:
		if a.Stage > 0 && !p.costs.local {
			return &p.backward[at], p.place[1][at-m]
		}
	}
	return nil, -1
}

// send hands on what an action made.
func (p *player) send(a schedule.Action, place int32, at int64) {
	t, to := p.made(a)
	if t == nil {
		return
	}
	t.sent = at
	if to == place {
		p.complete(t, at)
		return
	}
	if p.opts.Sends == Running || around(a.Kind == schedule.Forward, place, to) {
		t.posted = 0
	}
	p.meet(t, a.Kind, place, to)
}

// ask lets a blocking place ask for what its next task, from position i on, needs.
func (p *player) ask(place int32, i int, at int64) {
	if p.opts.Sends == Running {
		return
	}
	for ; i < len(p.order[place]); i++ {
		a := p.order[place][i]
		if !a.Kind.Computes() {
			continue
		}
		if t := p.input(a); t != nil && t.posted == never && t.done == never {
			t.posted = at
			p.meet(t, a.Kind, p.maker(a), place)
		}
		if !a.Overlap {
			return
		}
	}
}

// around says whether a message goes around the end of a loop.
func around(activation bool, from, to int32) bool { return activation == (to < from) }

// maker is the place that makes what an action needs.
func (p *player) maker(a schedule.Action) int32 {
	m := p.costs.microbatches
	if a.Kind == schedule.Forward {
		return p.place[0][int(a.Stage-1)*m+int(a.Microbatch)]
	}
	return p.place[1][int(a.Stage+1)*m+int(a.Microbatch)]
}

// meet moves a message once both its ends are there.
func (p *player) meet(t *transfer, kind schedule.Kind, from, to int32) {
	if t.sent == never || t.posted == never {
		return
	}
	hop := p.costs.Hop(int(from), int(to), kind == schedule.Forward)
	edge := [2]int32{from, to}
	start := max(t.sent, t.posted, p.edges[edge])
	p.edges[edge] = p.moment(start + min(hop.Occupied, longestTask))
	p.complete(t, p.moment(p.edges[edge]+min(hop.Latency, longestTask)))
}

func (p *player) complete(t *transfer, at int64) {
	t.done = at
	if t.waiter >= 0 {
		p.ready = append(p.ready, t.waiter)
		t.waiter = -1
	}
}

// stuck is an error when a place did not get to its end.
func (p *player) stuck() error {
	var waits []string
	for place, row := range p.order {
		if i := p.next[place]; i < len(row) {
			waits = append(waits, fmt.Sprintf("rank %d at %s", place, row[i]))
		}
	}
	if len(waits) == 0 {
		return nil
	}
	// Which of them wait for each other is worked out where orders are checked.
	if _, err := schedule.Evaluate(p.order, schedule.DefaultCosts()); err != nil {
		return fmt.Errorf("%w: %w", ErrBlocked, err)
	}
	shown := waits[:min(len(waits), 4)]
	return fmt.Errorf("%w: sends wait to be received: %s", ErrBlocked, strings.Join(shown, ", "))
}

// finish adds what comes after the tasks.
func (p *player) finish() {
	r := p.run
	r.firstTask = never
	for place, moments := range r.Moments {
		for i, mo := range moments {
			if !p.order[place][i].Kind.Computes() {
				continue
			}
			if r.firstTask == never || mo.Start < r.firstTask {
				r.firstTask = mo.Start
			}
			r.lastTask = max(r.lastTask, mo.End)
		}
		r.Step = max(r.Step, p.clock[place], r.Reduced[place])
	}
	for place := range p.moves {
		r.Kept = append(r.Kept, p.moves[place].most())
	}
	r.Step += p.costs.Tail
}

// Makespan is the time from the start of the first task to the end of the last.
func (r *Run) Makespan() int64 { return r.lastTask - r.firstTask }
