package pipeline

import (
	"cmp"
	"math"
	"slices"

	"mixdown/ingest/diagnostic"
)

// unlabelled finds the pipelines of ranks without labels, from the messages and
// from what ran between them. Micro-batches are counted: what one rank sends in
// some order, the next takes in that order.
func (f *finding) unlabelled() {
	free := map[int]bool{}
	for _, v := range f.views {
		if len(v.labels) == 0 && len(v.parts) > 0 {
			free[v.index] = true
		}
	}
	f.findPeers(free)
	chains, rings, others := f.chains(free)
	for _, c := range chains {
		f.followChain(c)
	}
	for _, c := range rings {
		if f.differentiates(c, free) {
			f.followRing(c)
		}
	}
	for _, part := range others {
		f.reportOthers(part, free)
	}
}

// followChain makes the pipeline of a chain, unless its ranks did not work like
// one.
func (f *finding) followChain(c chain) {
	m := &members{ranks: c, stagePlace: make([]int, len(c)), evidence: []string{"who sends to whom, and what ran between messages"}}
	for i := range c {
		m.stagePlace[i] = i
	}
	instructed := false
	for _, w := range f.windows {
		d := draft{name: w.name, number: w.number, window: w, works: make([][]work, len(c))}
		count, told := 0, true
		for place, r := range c {
			l := f.line(c, place, w.on[r])
			n, backward, ok := l.microbatches()
			if len(f.views[r].calledIn(w.on[r])) == 0 {
				continue // it did nothing in this step
			}
			if !ok || count != 0 && n != count {
				told = false
				break
			}
			count = n
			works, ok := f.views[r].follow(&l, n, backward, w.on[r], place)
			if !ok {
				told = false
				break
			}
			if backward && place == len(c)-1 && !firstInFirstOut(works, place, n) {
				told = false
				break
			}
			instructed = f.views[r].instruct(works, w.on[r]) || instructed
			d.works[place] = works
		}
		switch {
		case !told:
			f.unclear(c)
		case count > 0:
			m.steps = append(m.steps, d)
		}
	}
	if len(m.steps) == 0 {
		return
	}
	if instructed {
		m.evidence = append(m.evidence, "functions that run tasks")
	}
	f.res.Pipelines = append(f.res.Pipelines, f.finish(m))
}

// follow finds the tasks of a rank from its messages.
func (v *view) follow(l *line, n int, backward bool, on span, place int) ([]work, bool) {
	works, ok := v.between(n, key{Forward, place, 0}, l.activations, l.activated, on)
	if !ok {
		return nil, false
	}
	if backward {
		more, ok := v.between(n, key{Backward, place, 0}, l.gradients, l.differentiated, on)
		if !ok {
			return nil, false
		}
		works = append(works, more...)
	}
	if l.first {
		v.trimLoading(works)
	}
	return works, apart(works) && v.covers(works, on)
}

// between finds the tasks of one phase, one for each of n micro-batches. A task
// starts when its input was there and ends when its result is sent; where one of
// the two is missing, in the first and the last stage, what ran between this
// message and the next is it.
func (v *view) between(n int, of key, inputs, results [][]part, on span) ([]work, bool) {
	var works []work
	for i := range n {
		of.microbatch = i
		w := work{key: of, exact: true}
		limit := int64(noLimit)
		if len(results) > 0 {
			w.sends = results[i]
			limit = w.sends[0].call
		}
		var ok bool
		if len(inputs) > 0 {
			w.recvs = inputs[i]
			w.window, ok = v.after(w.recvs, limit, on, of.phase == Backward)
		} else {
			w.window, ok = v.before(limit, on, of.phase == Backward)
		}
		if !ok {
			return nil, false
		}
		works = append(works, w)
	}
	return works, true
}

// firstInFirstOut says whether the last stage can't have taken micro-batches back
// in the opposite order, as GPipe and breadth-first may: it took one back before it
// had seen all.
func firstInFirstOut(works []work, last, microbatches int) bool {
	var forward, backward span
	for i := range works {
		switch w := &works[i]; {
		case w.stage != last:
		case w.phase == Forward && w.microbatch == microbatches-1:
			forward = w.window
		case w.phase == Backward && w.microbatch == 0:
			backward = w.window
		}
	}
	return microbatches == 1 || backward.start < forward.start
}

// uncovered is the part of the time in autograd, one in so much, that may be
// outside of tasks: programs compute other gradients too.
const uncovered = 10

// covers says whether the tasks hold what autograd did in a step. Where a backward
// is split, nothing is sent after the part that computes weight gradients, and
// messages alone don't tell of which micro-batch it is.
func (v *view) covers(works []work, on span) bool {
	byStart := slices.Clone(works)
	slices.SortFunc(byStart, func(a, b work) int { return cmp.Compare(a.window.start, b.window.start) })
	var inside, outside int64
	for _, o := range v.during(on) {
		if !o.backward {
			continue
		}
		k, _ := slices.BinarySearchFunc(byStart, o.start+1, func(w work, t int64) int { return cmp.Compare(w.window.start, t) })
		if k > 0 && byStart[k-1].phase == Backward && byStart[k-1].window.holds(o.start) {
			inside += o.end - o.start
		} else {
			outside += o.end - o.start
		}
	}
	return outside <= inside/uncovered
}

// apart says whether no two tasks are in each other's time: a program runs one
// after the other.
func apart(works []work) bool {
	byStart := slices.Clone(works)
	slices.SortFunc(byStart, func(a, b work) int { return cmp.Compare(a.window.start, b.window.start) })
	for i := 1; i < len(byStart); i++ {
		if byStart[i].window.start < byStart[i-1].window.end {
			return false
		}
	}
	return true
}

func done(input []part) int64 {
	last := int64(math.MinInt64)
	for _, p := range input {
		last = max(last, p.done)
	}
	return last
}

// after finds the work that follows an input: from when the program could go on,
// other messages between the two included, to the end of the last operator, of a
// backward or else of a forward. It ends before limit, which is the send of its
// result, or without one (noLimit) at the next message.
func (v *view) after(input []part, limit int64, on span, backward bool) (span, bool) {
	s := span{start: done(input), end: math.MinInt64}
	operators := v.during(span{s.start, min(limit, on.end)})
	k := slices.IndexFunc(operators, func(o operator) bool { return !o.buffer })
	if k < 0 || operators[k].backward != backward {
		return s, false // the input is of another kind than the chain makes it
	}
	first := operators[k].start
	s.start = v.lastMessage(s.start, first)
	if limit == noLimit {
		for _, p := range v.parts {
			if p.call >= first {
				limit = p.call
				break
			}
		}
	}
	for _, o := range operators[k:] {
		if o.start >= limit || o.backward && !backward { // the backward of the last stage
			break
		}
		if o.backward == backward && !emptyBuffer(v, o) {
			s.end = max(s.end, o.end)
		}
	}
	return s, s.end > s.start
}

// noLimit is no send that ends a task.
const noLimit = math.MaxInt64

// lastMessage is when the program was last done with a message by t, at least from.
func (v *view) lastMessage(from, t int64) int64 {
	for _, p := range v.parts {
		if p.call > t {
			break
		}
		if p.returned <= t {
			from = max(from, p.returned)
		}
		if p.done <= t {
			from = max(from, p.done)
		}
	}
	return from
}

// before finds the work that makes a result: the operators of a backward, or else
// of a forward, before its send, back to the message before.
func (v *view) before(send int64, on span, backward bool) (span, bool) {
	operators := v.during(span{on.start, send})
	last := len(operators) - 1
	for last >= 0 && operators[last].buffer {
		last--
	}
	if last < 0 || operators[last].backward != backward {
		return span{}, false // the result is of another kind than the chain makes it
	}
	from := v.lastMessage(on.start, operators[last].start)
	s := span{operators[last].start, operators[last].end}
	for i := last - 1; i >= 0 && operators[i].start >= from && operators[i].backward == backward; i-- {
		s.start = operators[i].start
	}
	for _, o := range operators[last+1:] { // views of the result
		if o.backward == backward && !emptyBuffer(v, o) {
			s.end = max(s.end, o.end)
		}
	}
	return s, true
}

// emptyBuffer says whether an operator makes room for a message to come.
func emptyBuffer(v *view, o operator) bool {
	name := v.rank.Names.Get(o.name)
	return o.buffer && len(name) >= len("aten::empty") && name[:len("aten::empty")] == "aten::empty"
}

// trimLoading cuts the loading of the batch off the first forward of a step: it
// runs the operators of the second, and what came before them is no part of it.
func (v *view) trimLoading(works []work) {
	if len(works) < 2 || works[1].phase != Forward {
		return
	}
	first, second := v.during(works[0].window), v.during(works[1].window)
	extra := len(first) - len(second)
	if extra <= 0 || !slices.EqualFunc(first[extra:], second, func(a, b operator) bool { return a.name == b.name }) {
		return
	}
	works[0].window.start = first[extra].start
}

// instruct takes the times of functions that run tasks where there is one for each.
func (v *view) instruct(works []work, on span) bool {
	count := map[Phase]int{}
	var spans [2][]span
	for i := range v.instructions {
		l := &v.instructions[i]
		if phase := l.actions[0].phase; on.holds(l.start) && phase <= Backward {
			spans[phase] = append(spans[phase], l.span)
		}
	}
	for i := range works {
		count[works[i].phase]++
	}
	if len(v.instructions) == 0 || count[Forward] != len(spans[Forward]) || count[Backward] != len(spans[Backward]) {
		return false
	}
	for i := range works {
		w := &works[i]
		s := spans[w.phase][w.microbatch]
		if s.start < w.window.end && s.end > w.window.start { // else it is another one's
			w.window = s
		}
	}
	return true
}

// reportOthers says that a pipeline can't be told where ranks that exchange
// messages, and compute gradients between them, do so in no chain.
func (f *finding) reportOthers(part []int, free map[int]bool) {
	if f.differentiates(part, free) {
		f.unclear(part)
	}
}

// differentiates says whether all ranks of a part, as far as they were read, have
// no label and compute gradients.
func (f *finding) differentiates(part []int, free map[int]bool) bool {
	for _, r := range part {
		if r < 0 {
			continue // not read
		}
		if !free[r] || !slices.ContainsFunc(f.views[r].operators, func(o operator) bool { return o.backward }) {
			return false
		}
	}
	return true
}

func (f *finding) unclear(ranks []int) {
	var read []int
	for _, r := range ranks {
		if r >= 0 && r < len(f.run.Ranks) {
			read = append(read, f.run.Ranks[r].Rank)
		}
	}
	f.res.Diagnostics.Addf(CodeUnclear, diagnostic.NoRank, diagnostic.NoOffset,
		"ranks %v exchange messages like a pipeline, but neither labels nor messages tell which task ran when", read)
}
