package simulate

import (
	"fmt"

	"mixdown/analyze/report"
	"mixdown/cmd/mixdown/input"
	"mixdown/cmd/mixdown/planning"
	"mixdown/replay/mix"
	"mixdown/replay/sim"
)

// contention finds what communication makes of kernels beside it: with plans as they
// have it, else as the traces show it.
func (r *Result) contention(job *input.Job, plans *planning.Plans) error {
	if plans != nil {
		r.Contention = plans.Contention
		return nil
	}
	if len(job.Run.Ranks) == 0 {
		return nil
	}
	first := job.Run.Ranks[0]
	traced := mix.TracedBackend(first.Distributed.Backend, first.CPUOnly)
	var err error
	r.Contention, err = planning.FindContention(job.Run, nil, traced, traced, nil)
	return err
}

// writeContention says by how much kernels are slowed.
func (r *Result) writeContention(p *report.Page) {
	c := r.Contention
	if c == nil || r.Unchanged == nil {
		return
	}
	if c.Traced.Factor == nil {
		p.Linef("Kernels keep the time they took, whatever runs beside them: %s.", *c.Traced.Why)
	} else {
		p.Linef("Kernels take %s.", words(&c.Traced))
	}
	for i := range c.Others {
		p.Linef("On other backends they take %s.", words(&c.Others[i]))
	}
}

// words is a slowdown for people.
func words(s *planning.Slowdown) string {
	on := report.Printable(s.Backend)
	if s.Backend == mix.UnknownBackend {
		on = "a backend that the traces don't name"
	}
	return fmt.Sprintf("%.2f times as long beside communication on %s (95 %% interval %.2f to %.2f, from %d kernels of the %s)",
		*s.Factor, on, s.CI95[0], s.CI95[1], s.Kernels, *s.From)
}

// unsettled says where a play came to no end of what communication makes of kernels.
func unsettled(run *sim.WorkloadRun) []string {
	if !run.Unsettled {
		return nil
	}
	return []string{"how long kernels take and what runs beside them did not come to agree: the step is off by more than 0.1 %"}
}
