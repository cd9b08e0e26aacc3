package pipeline

import (
	"slices"

	"mixdown/ingest/diagnostic"
)

// message is the key of what a task makes, the same for a backward and for the
// part of it that the stage before waits for.
func (k key) message() key {
	if k.phase == InputGradient {
		k.phase = Backward
	}
	return k
}

// source is the key of the message that a task needs.
func (k key) source() key {
	k = k.message()
	if k.phase == Forward {
		k.stage--
	} else {
		k.stage++
	}
	return k
}

// labelled finds the pipelines whose ranks say what they run.
func (f *finding) labelled() {
	for _, v := range f.views {
		v.dropForeignLabels()
	}
	stageOf := f.chainedStages()
	ran := map[int][][][]work{} // rank -> window -> occurrence -> works
	for _, v := range f.views {
		if len(v.labels) == 0 {
			continue
		}
		found := make([][][]work, len(f.windows))
		any := false
		for n, w := range f.windows {
			stage, known := stageOf[v.index]
			if !known {
				stage = Unknown
			}
			var lost int
			found[n], lost = v.passes(w.on[v.index], stage)
			any = any || len(found[n]) > 0
			if lost > 0 {
				f.res.Diagnostics.Addf(CodeUnnumbered, v.rank.Rank, diagnostic.NoOffset,
					"labels name micro-batches but no stage, and the messages don't tell which one the rank holds")
			}
		}
		if any {
			ran[v.index] = found
		}
	}
	for _, m := range f.replicas(ran) {
		for n, w := range f.windows {
			most := 0
			for _, r := range m.ranks {
				most = max(most, len(ran[r][n]))
			}
			for k := range most {
				d := draft{name: w.name, number: w.number, window: w}
				for _, r := range m.ranks {
					var works []work
					if k < len(ran[r][n]) {
						works = ran[r][n][k]
					}
					d.works = append(d.works, works)
				}
				m.steps = append(m.steps, d)
			}
		}
		f.res.Pipelines = append(f.res.Pipelines, f.finish(m))
	}
}

// passes reads the labels of a rank in a step: the tasks, with the messages that
// labels say belong to them. A program may run its schedule several times within
// a step: what comes again is the next run. Labels without a stage get stage, and
// are counted as lost where that is Unknown.
func (v *view) passes(on span, stage int) (runs [][]work, lost int) {
	type place struct{ run, index int }
	placeOf := map[key]place{} // of the last work of a key
	times := map[key]int{}
	inputs := map[key][][]part{} // by message that a task needs, then run
	outputs := map[key][][]part{}
	file := func(to map[key][][]part, k key, parts []part) { to[k] = append(to[k], parts) }
	for i := range v.labels {
		l := &v.labels[i]
		if !on.holds(l.start) {
			continue
		}
		spans := v.share(l)
		for n, a := range l.actions {
			if a.stage == Unknown && a.kind == computing {
				if a.stage = stage; stage == Unknown {
					lost++
					continue
				}
			}
			switch a.kind {
			case receiving:
				file(inputs, key{a.phase, a.stage, a.microbatch}, v.direction(l.span, false))
			case sending:
				file(outputs, a.key(), v.direction(l.span, true))
			case computing:
				w := work{key: a.key(), window: spans[n]}
				w.recvs, w.sends = v.direction(spans[n], false), v.direction(spans[n], true)
				run := times[w.key]
				times[w.key]++
				if run == len(runs) {
					runs = append(runs, nil)
				}
				placeOf[w.key] = place{run, len(runs[run])}
				runs[run] = append(runs[run], w)
			}
		}
	}
	for run := range runs {
		for i := range runs[run] {
			w := &runs[run][i]
			if w.phase == WeightGradient {
				continue
			}
			// PyTorch names a receive by the task that needs it, a send by the one
			// that made it.
			own := w.message()
			if have := inputs[own]; run < len(have) {
				w.recvs = append(w.recvs, have[run]...)
			}
			if have := outputs[own]; run < len(have) {
				w.sends = append(w.sends, have[run]...)
			}
		}
	}
	return runs, lost
}

// dropForeignLabels forgets labels without a stage that exchange no message: any
// program may call something "Forward 1".
func (v *view) dropForeignLabels() {
	for i := range v.labels {
		l := &v.labels[i]
		if l.actions[0].stage != Unknown || len(v.calledIn(l.span)) > 0 {
			return
		}
	}
	v.labels = nil
}

// direction lists the sends, or receives, that were called in s.
func (v *view) direction(s span, send bool) []part {
	var list []part
	for _, p := range v.calledIn(s) {
		if p.send == send {
			list = append(list, p)
		}
	}
	return list
}

// share gives each task of a label its time. PyTorch runs the two of an
// overlapped pair one after the other, each waiting for its own input.
func (v *view) share(l *label) []span {
	if len(l.actions) < 2 {
		return []span{l.span}
	}
	border := l.end
	forwardFirst := l.actions[0].phase == Forward
	for _, o := range v.during(l.span) {
		if o.backward == forwardFirst {
			border = o.start
			if forwardFirst {
				break
			}
			border = o.end
		}
	}
	if !forwardFirst { // up to the last operator of the backward
		border = l.start
		for _, o := range v.during(l.span) {
			if o.backward {
				border = max(border, o.end)
			}
		}
	}
	return []span{{l.start, border}, {border, l.end}}
}

// chainedStages finds the stages of ranks whose labels have none ("Forward 3"):
// activations received and sent within those labels tell each rank's neighbours.
func (f *finding) chainedStages() map[int]int {
	next, prev := map[int]int{}, map[int]int{} // by global rank
	bare := map[int]int{}                      // global rank -> index
	for _, v := range f.views {
		for i := range v.labels {
			l := &v.labels[i]
			if a := l.actions[0]; a.kind != computing || a.stage != Unknown {
				continue
			}
			bare[v.rank.Rank] = v.index
			if l.actions[0].phase != Forward {
				continue
			}
			for _, p := range v.calledIn(l.span) {
				if p.send {
					next[v.rank.Rank] = p.peer
				} else {
					prev[v.rank.Rank] = p.peer
				}
			}
		}
	}
	stages := map[int]int{}
	for rank := range bare {
		if _, has := prev[rank]; has {
			continue
		}
		for stage, r := range follow(rank, next, prev, bare) {
			stages[r] = stage
		}
	}
	return stages
}

// follow goes from the first rank of a pipeline to its last. It returns none where
// one on the way was not read: how many there are is then not known.
func follow(rank int, next, prev, bare map[int]int) []int {
	var list []int
	for range len(bare) {
		list = append(list, bare[rank])
		to, more := next[rank]
		if !more {
			return list
		}
		if _, read := bare[to]; !read || to == Unknown || prev[to] != rank {
			return nil
		}
		rank = to
	}
	return nil
}

// ofStages lists the stages that the works of a rank name.
func ofStages(found [][][]work) []int {
	var stages []int
	for _, runs := range found {
		for _, works := range runs {
			for i := range works {
				if !slices.Contains(stages, works[i].stage) {
					stages = append(stages, works[i].stage)
				}
			}
		}
	}
	slices.Sort(stages)
	return stages
}
