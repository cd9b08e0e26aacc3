package pipeline

import (
	"cmp"
	"slices"
	"sort"

	"mixdown/analyze/collective"
	"mixdown/analyze/waiting"
	"mixdown/ingest/comm"
)

// addTransfers joins what tasks give with what others need.
func (f *finding) addTransfers(p *Pipeline, s *Step, works [][]work) {
	made := map[key]*work{}
	for place := range works {
		for i := range works[place] {
			w := &works[place][i]
			if w.phase != WeightGradient {
				made[w.message()] = w
			}
		}
	}
	for place := range works {
		for i := range works[place] {
			w := &works[place][i]
			source := made[w.source()]
			if w.phase == WeightGradient || source == nil || !p.remote(w.key) || len(source.sends) != len(w.recvs) {
				continue
			}
			from := p.StagePlace[source.stage]
			for k := range w.recvs {
				s.Transfers = append(s.Transfers, f.transfer(p, source, from, place, source.sends[k], w.recvs[k]))
			}
		}
	}
	slices.SortStableFunc(s.Transfers, func(a, b Transfer) int {
		switch {
		case a.Phase != b.Phase:
			return int(a.Phase) - int(b.Phase)
		case a.Stage != b.Stage:
			return a.Stage - b.Stage
		}
		return a.Microbatch - b.Microbatch
	})
}

func (f *finding) transfer(p *Pipeline, source *work, from, to int, send, recv part) Transfer {
	k := source.message()
	sender, receiver := f.views[p.Index[from]], f.views[p.Index[to]]
	out, in := &sender.rank.Operations[send.operation], &receiver.rank.Operations[recv.operation]
	t := Transfer{
		Phase: k.phase, Stage: k.stage, Microbatch: k.microbatch, From: from, To: to,
		Send: collective.Member{Rank: sender.index, Operation: send.operation},
		Recv: collective.Member{Rank: receiver.index, Operation: recv.operation},
		Done: in.End, Timed: f.opts.comparable(sender.index, receiver.index),
	}
	if out.SizeKnown {
		t.Bytes, t.BytesKnown = out.InBytes(), true
		if send.transfer < len(out.Transfers) {
			t.Bytes = out.Transfers[send.transfer].Count * out.DType.Size()
		}
	}
	t.Posted = max(f.there(sender, send), f.there(receiver, recv))
	// Where the receiver found it when it asked, nothing tells since when it was
	// there.
	if _, waited := receiver.waitedFor(recv); receiver.rank.CPUOnly && !waited {
		t.Timed = false
	}
	t.Timed = t.Timed && t.Posted <= t.Done
	return t
}

// there is when an end of a transfer was ready: its kernel on a device, the call
// on a host, whose annotation lasts until its wait returned.
func (f *finding) there(v *view, p part) int64 {
	if v.rank.CPUOnly {
		return p.call
	}
	return v.rank.Operations[p.operation].Start
}

// waitedFor is the wait that a part ended, if it was one: an interpreter takes
// some time to find that there is nothing to wait for.
func (v *view) waitedFor(p part) (waiting.Wait, bool) {
	i, ok := v.waitOf[p.operation]
	if !ok {
		return waiting.Wait{}, false
	}
	w := v.waits[i]
	return w, w.End-w.Start >= waiting.MinAsync
}

// addArrivals finds when the tasks' inputs were there, and what held them up
// besides.
func (f *finding) addArrivals(p *Pipeline, s *Step, place int, works []work) {
	v := f.views[p.Index[place]]
	posted := map[int]int64{} // operation -> when both ends were there
	for i := range s.Transfers {
		t := &s.Transfers[i]
		if t.To == place && f.opts.comparable(t.Send.Rank, t.Recv.Rank) {
			posted[t.Recv.Operation] = max(posted[t.Recv.Operation], t.Posted)
		}
	}
	ended := int64(Unknown)
	for i := range works {
		task := &s.Tasks[place][i]
		for _, recv := range works[i].recvs {
			if task.Remote {
				task.Arrived = max(task.Arrived, v.arrival(recv, posted))
			}
		}
		if i > 0 {
			task.Held = v.held(span{max(ended, task.Arrived), task.Start})
		}
		ended = max(ended, task.End)
	}
}

// arrival is when the input of a task was there. A program that did not have to
// wait found it: it came between the moment both ends were there and the question.
func (v *view) arrival(recv part, posted map[int]int64) int64 {
	at := v.rank.Operations[recv.operation].End
	if !v.rank.CPUOnly {
		return at
	}
	if w, waited := v.waitedFor(recv); !waited {
		at = min(at, max(w.Start, recv.returned))
		if both, ok := posted[recv.operation]; ok {
			at = min(at, both)
		}
	}
	return at
}

// listSends lists when the program of a host was in a call that sends, which may
// do the work of it, or waited for a send.
func (v *view) listSends() {
	var list []span
	for _, p := range v.parts {
		if p.send {
			list = append(list, span{p.call, p.returned})
		}
	}
	for _, w := range v.waits {
		if v.rank.Operations[w.Operation].Op == comm.Send {
			list = append(list, span{w.Start, w.End})
		}
	}
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	for _, s := range list {
		if n := len(v.sending); n > 0 && s.start <= v.sending[n-1].end {
			v.sending[n-1].end = max(v.sending[n-1].end, s.end)
		} else {
			v.sending = append(v.sending, s)
		}
	}
}

// held is how long of s the program sent.
func (v *view) held(s span) int64 {
	total := int64(0)
	from := sort.Search(len(v.sending), func(i int) bool { return v.sending[i].end > s.start })
	for _, w := range v.sending[from:] {
		if w.start >= s.end {
			break
		}
		total += max(0, min(w.end, s.end)-max(w.start, s.start))
	}
	return total
}
