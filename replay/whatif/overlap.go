package whatif

import (
	"fmt"
	"slices"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

var overlapped = Kind{
	Name: "overlap", Value: "none|full", Example: "overlap=none",
	Summary: "none: computation waits for every collective that its thread issued before it; full: computation waits for none",
	Formula: "none: what computes next on the rank depends on the collective; full: those dependencies are dropped, the step still ends with its last operation",
	Source:  "overlap as Lumos (MLSys 2025) and Daydream (ATC 2020) change it",
	Cost:    "full: a bound; buffers of everything in flight at once, and results that are used before they are there would be wrong", NotModeled: "that kernels of several streams slow each other down (what communication makes of kernels is played where it is known, see mixdown help simulation); messages of point-to-point keep their overlap",
	Step: true, structure: true, once: true,
	parse: func(value string) (change, error) {
		switch value {
		case "none":
			return overlapNone{}, nil
		case "full":
			return overlapFull{}, nil
		}
		return nil, fmt.Errorf("%q: expected none or full", value)
	},
}

// errCutBeside: buckets and overlap=none contradict each other.
var errCutBeside = fmt.Errorf("%w: buckets let parts of an all_reduce run beside the work that makes the others, which overlap=none forbids: ask one of them", ErrNotApplicable)

type overlapNone struct{}

func (overlapNone) step(s *Step) error {
	if s.fused != nil {
		return errCutBeside
	}
	s.serial = true
	held := 0
	for _, program := range s.Workload.Programs {
		device := hasDevice(program)
		byIssue(program)
		by := threadsOf(program)
		open := map[int32][]int32{} // stream -> collectives that its next task waits for
		for _, t := range program.Tasks {
			if isCollective(t) {
				for stream := range program.Streams {
					if by.together(int32(stream), t.Stream) {
						open[int32(stream)] = append(open[int32(stream)], t.Id)
					}
				}
				continue
			}
			// What the task waits for as it is, is no longer open on its stream.
			open[t.Stream] = slices.DeleteFunc(open[t.Stream], func(c int32) bool { return slices.Contains(t.Deps, c) })
			span := t.GetSpan()
			if span == nil || device && span.Kind != planpb.Span_DEVICE || len(open[t.Stream]) == 0 {
				continue // a host with a device launches ahead
			}
			for _, c := range open[t.Stream] {
				if program.Tasks[c].Stream != t.Stream {
					t.Deps = append(t.Deps, c)
					held++
				}
			}
			delete(open, t.Stream)
		}
	}
	if held == 0 {
		return fmt.Errorf("%w: no collective ran beside other work", ErrNotApplicable)
	}
	return nil
}

// threads are the host streams that gave each stream its work. A stream of a host has
// itself.
type threads []map[int32]bool

func threadsOf(p *planpb.Program) threads {
	of := make(threads, len(p.Streams))
	for i, s := range p.Streams {
		of[i] = map[int32]bool{}
		if plan.IsHost(s.Name) {
			of[i][int32(i)] = true
		}
	}
	for _, t := range p.Tasks {
		for _, d := range t.Deps {
			if on := p.Tasks[d].Stream; plan.IsHost(p.Streams[on].Name) && !plan.IsHost(p.Streams[t.Stream].Name) {
				of[t.Stream][on] = true
			}
		}
	}
	return of
}

// together says whether a thread gave work to both streams. Threads that work at the
// same time issue in one order here and in another there: one that waited for what
// another issued could wait for ever.
func (of threads) together(a, b int32) bool {
	if len(of[a]) == 0 || len(of[b]) == 0 {
		return true
	}
	for host := range of[a] {
		if of[b][host] {
			return true
		}
	}
	return false
}

type overlapFull struct{}

func (overlapFull) step(s *Step) error {
	freed := 0
	for _, program := range s.Workload.Programs {
		for _, t := range program.Tasks {
			if t.GetCommunication() != nil {
				continue
			}
			kept := t.Deps[:0]
			for _, d := range t.Deps {
				if isCollective(program.Tasks[d]) {
					freed++
					continue
				}
				kept = append(kept, d)
			}
			t.Deps = kept
		}
	}
	if freed == 0 {
		return fmt.Errorf("%w: nothing in the step waits for a collective on another stream", ErrNotApplicable)
	}
	s.note("%d waits for collectives are dropped: an upper bound, as the trace does not tell which result is needed when", freed)
	return nil
}

func isCollective(t *planpb.Task) bool {
	c := t.GetCommunication()
	return c != nil && len(c.Transfers) == 0 && !plan.Op(c).IsP2P()
}

func hasDevice(p *planpb.Program) bool {
	for _, t := range p.Tasks {
		if t.GetSpan().GetKind() == planpb.Span_DEVICE {
			return true
		}
	}
	return false
}
