package sim

import (
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// HoldHosts makes operations hold up the host that waits for them: those whose
// backend does not queue its operations on streams, in the programs of ranks with a
// device. There the traced host launched what follows and left the waiting to the
// device; with such a backend it can launch what needs the result only when that is
// there. The workload is changed; HoldHosts says how many operations hold a host.
//
// The host task that ends with the launch of what depends on the operation then
// waits for it, or, where that was launched together with it, the next one. Other
// threads of the rank go on.
func HoldHosts(w *planpb.Workload, streamOrdered func(backend string) bool) int {
	held := 0
	for _, p := range w.Programs {
		held += holdHost(p, streamOrdered)
	}
	return held
}

func holdHost(p *planpb.Program, streamOrdered func(string) bool) int {
	host := make([]bool, len(p.Streams))
	for i, s := range p.Streams {
		host[i] = plan.IsHost(s.Name)
	}
	onHost := func(n int32) bool { s := p.Tasks[n].Stream; return int(s) < len(host) && host[s] }
	device := false
	next := make([]int32, len(p.Tasks))   // the task after it on its stream, -1 none
	before := make([]int32, len(p.Tasks)) // the task before it on its stream, -1 none
	latest := map[int32]int32{}
	for i, t := range p.Tasks {
		next[i], before[i] = -1, -1
		if b, ok := latest[t.Stream]; ok {
			before[i], next[b] = b, int32(i)
		}
		latest[t.Stream] = int32(i)
		device = device || t.GetSpan().GetKind() == planpb.Span_DEVICE
	}
	if !device {
		return 0
	}
	// launchedAfter is the latest host task that a task depends on itself, or by the
	// span that leads to it, -1 none.
	launchedAfter := func(n int32) int32 {
		at := int32(-1)
		for _, d := range p.Tasks[n].Deps {
			if onHost(d) {
				at = max(at, d)
			}
		}
		if b := before[n]; at < 0 && b >= 0 && p.Tasks[b].GetSpan() != nil {
			for _, d := range p.Tasks[b].Deps {
				if onHost(d) {
					at = max(at, d)
				}
			}
		}
		return at
	}
	type wait struct{ host, operation int32 }
	var waits []wait
	for i, t := range p.Tasks {
		if onHost(int32(i)) {
			continue // it waits already
		}
		for _, d := range t.Deps {
			c := p.Tasks[d].GetCommunication()
			if c == nil || streamOrdered(c.Backend) {
				continue
			}
			// The thread that launches what needs the result waits for it; where that
			// was launched before the operation, the thread that issued it does.
			issued, at := launchedAfter(d), launchedAfter(int32(i))
			if issued < 0 {
				continue
			}
			if at <= issued {
				at = next[issued]
			}
			if at >= 0 {
				waits = append(waits, wait{at, d})
			}
		}
	}
	done := map[wait]bool{}
	operations := map[int32]bool{}
	for _, x := range waits {
		if !done[x] {
			done[x], operations[x.operation] = true, true
			p.Tasks[x.host].Deps = append(p.Tasks[x.host].Deps, x.operation)
		}
	}
	return len(operations)
}
