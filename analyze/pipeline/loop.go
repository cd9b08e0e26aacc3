package pipeline

import "slices"

// ring is ranks, given as indices into Run.Ranks, of which each exchanges messages
// with two others, the last with the first: a pipeline with several stages a rank.
// The rank of the first stage is first.
type ring []int

// straightenRing orders a part that is a ring, nil where it is none. Two ranks are
// not told from a chain by their edges, and are never a ring. The first rank is the
// only one that sends before it receives, and what it sends first goes on to the
// second stage.
func (f *finding) straightenRing(near map[int]map[int]bool, part []int, free map[int]bool) ring {
	first := Unknown
	for _, r := range part {
		if !free[r] || len(near[r]) != 2 || len(part) < 3 {
			return nil
		}
		if f.views[r].parts[0].send {
			if first != Unknown {
				return nil
			}
			first = r
		}
	}
	if first == Unknown {
		return nil
	}
	index := map[int]int{} // global rank -> index
	for _, r := range part {
		index[f.run.Ranks[r].Rank] = r
	}
	c := ring{first, index[f.views[first].parts[0].peer]}
	for len(c) < len(part) {
		at := c[len(c)-1]
		for to := range near[at] {
			if !slices.Contains(c, to) {
				c = append(c, to)
				break
			}
		}
		if c[len(c)-1] == at {
			return nil
		}
	}
	return c
}

// turns is the messages of one rank of a ring in a step, in order.
type turns struct {
	activations, activated, gradients, differentiated []part
}

func (f *finding) turns(c ring, place int, on span) turns {
	prev, next := f.run.Ranks[c[(place+len(c)-1)%len(c)]].Rank, f.run.Ranks[c[(place+1)%len(c)]].Rank
	var t turns
	for _, p := range f.views[c[place]].calledIn(on) {
		switch {
		case p.send && p.peer == next:
			t.activated = append(t.activated, p)
		case p.send:
			t.differentiated = append(t.differentiated, p)
		case p.peer == prev:
			t.activations = append(t.activations, p)
		default:
			t.gradients = append(t.gradients, p)
		}
	}
	return t
}

// followRing makes the pipeline of a ring. All ranks of a loop take chunks and
// micro-batches in one order, so the order of the first rank is that of all.
func (f *finding) followRing(c ring) {
	m := &members{ranks: c, evidence: []string{"who sends to whom in a ring, and what ran between messages"}}
	told := true
	for _, w := range f.windows {
		all := make([]turns, len(c))
		messages := 0
		for place, r := range c {
			all[place] = f.turns(c, place, w.on[r])
			messages += len(f.views[r].calledIn(w.on[r]))
		}
		if messages == 0 {
			continue
		}
		l, ok := newLoop(all)
		if ok && m.stagePlace != nil && len(m.stagePlace) != l.loops*len(c) {
			ok = false
		}
		d := draft{name: w.name, number: w.number, window: w}
		if ok {
			d.works, ok = l.works(f, c, w)
		}
		if !ok {
			told = false
			continue
		}
		if m.stagePlace == nil {
			for stage := range l.loops * len(c) {
				m.stagePlace = append(m.stagePlace, stage%len(c))
			}
		}
		m.steps = append(m.steps, d)
	}
	if !told {
		f.unclear(c)
	}
	if len(m.steps) > 0 {
		f.res.Pipelines = append(f.res.Pipelines, f.finish(m))
	}
}

// loop is one step of a ring: who runs how much, and in which order.
type loop struct {
	turns         []turns // by place
	passes        int     // of each rank, forward: chunks x micro-batches
	loops, number int     // chunks, micro-batches
	backward      bool
}

// newLoop counts. The first rank needs no input for its first chunk, and the last
// gives no result of its last one: what is missing on the edge that closes the ring
// are the micro-batches.
func newLoop(all []turns) (*loop, bool) {
	last := len(all) - 1
	l := &loop{turns: all, passes: len(all[0].activated)}
	wraps := len(all[last].activated)
	l.number = l.passes - wraps
	l.backward = len(all[0].gradients) > 0
	if l.number < 1 || l.passes%l.number != 0 || len(all[0].activations) != wraps {
		return nil, false
	}
	l.loops = l.passes / l.number
	backs, backWraps := 0, 0
	if l.backward {
		backs, backWraps = l.passes, wraps
	}
	if l.loops < 2 || len(all[0].differentiated) != backWraps || len(all[last].gradients) != backWraps {
		return nil, false
	}
	for place := range all {
		t := &all[place]
		if place > 0 && (len(t.activations) != l.passes || len(t.differentiated) != backs) ||
			place < last && (len(t.activated) != l.passes || len(t.gradients) != backs) {
			return nil, false
		}
	}
	return l, true
}

// turn is a chunk and a micro-batch.
type turn struct{ chunk, microbatch int }

// works finds the tasks of all ranks.
func (l *loop) works(f *finding, c ring, w window) ([][]work, bool) {
	last := len(c) - 1
	forward, ok := l.order(between(l.turns[0].activations, l.turns[0].activated), sends(l.turns[last].activations, l.turns[last].activated), 0, 1)
	if !ok {
		return nil, false
	}
	var backward []turn
	if l.backward {
		backward, ok = l.order(between(l.turns[last].gradients, l.turns[last].differentiated), sends(l.turns[0].gradients, l.turns[0].differentiated), l.loops-1, -1)
		if !ok {
			return nil, false
		}
	}
	works := make([][]work, len(c))
	for place, r := range c {
		v, t := f.views[r], &l.turns[place]
		a, ok := v.loopWorks(Forward, place, len(c), forward, t.activations, t.activated, place == 0, place == last, l.loops, w.on[r])
		if !ok {
			return nil, false
		}
		b, ok := v.loopWorks(Backward, place, len(c), backward, t.gradients, t.differentiated, place == last, place == 0, l.loops, w.on[r])
		if !ok {
			return nil, false
		}
		if works[place] = append(a, b...); !apart(works[place]) || !v.covers(works[place], w.on[r]) {
			return nil, false
		}
	}
	return works, !l.backward || firstInFirstOut(works[last], l.loops*len(c)-1, l.number)
}

// between says, for each result of the first rank of a direction, whether it had an
// input from the last: one came since the result before.
func between(inputs, results []part) []bool {
	has := make([]bool, len(results))
	j := 0
	for k := range results {
		if j < len(inputs) && inputs[j].done <= results[k].call {
			has[k] = true
			j++
		}
	}
	return has
}

// sends says, for each input of the last rank of a direction, whether its result
// went on: one was sent before the next input.
func sends(inputs, results []part) []bool {
	has := make([]bool, len(inputs))
	j := 0
	for k := range inputs {
		if j < len(results) && results[j].call >= inputs[k].done && (k+1 == len(inputs) || results[j].call <= inputs[k+1].done) {
			has[k] = true
			j++
		}
	}
	return has
}

// order tells which chunk and micro-batch each pass is. One without an input
// begins a micro-batch; one with continues what the last rank sent on.
func (l *loop) order(input, goesOn []bool, chunk, step int) ([]turn, bool) {
	list := make([]turn, 0, l.passes)
	seen := map[turn]bool{}
	begun, from := 0, 0
	for _, has := range input {
		t := turn{chunk, begun}
		if has {
			for from < len(goesOn) && !goesOn[from] {
				from++
			}
			if from >= len(list) {
				return nil, false // it continues what has not been run
			}
			t = turn{list[from].chunk + step, list[from].microbatch}
			from++
		} else {
			begun++
		}
		if t.chunk < 0 || t.chunk >= l.loops || t.microbatch >= l.number || seen[t] {
			return nil, false
		}
		seen[t] = true
		list = append(list, t)
	}
	return list, len(list) == l.passes
}

// loopWorks finds the tasks of one direction on one rank. starts and ends say
// whether the rank begins, or finishes, the direction.
func (v *view) loopWorks(phase Phase, place, places int, order []turn, inputs, results []part, starts, ends bool, loops int, on span) ([]work, bool) {
	first, final := 0, loops-1
	if phase == Backward {
		first, final = final, first
	}
	var works []work
	for _, t := range order {
		w := work{key: key{phase, t.chunk*places + place, t.microbatch}, exact: true}
		limit := int64(noLimit)
		if !ends || t.chunk != final {
			w.sends, results = results[:1], results[1:]
			limit = w.sends[0].call
		}
		var ok bool
		if starts && t.chunk == first {
			w.window, ok = v.before(limit, on, phase == Backward)
		} else {
			w.recvs, inputs = inputs[:1], inputs[1:]
			w.window, ok = v.after(w.recvs, limit, on, phase == Backward)
		}
		if !ok {
			return nil, false
		}
		works = append(works, w)
	}
	return works, true
}
