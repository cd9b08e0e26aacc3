package synthetic

import "mixdown/ingest/comm"

// beside runs what the second threads do in a step. Nothing of it waits for the
// programs, which run meanwhile.
func (s *run) beside(step int) {
	b := s.Beside
	if b == nil {
		return
	}
	for _, r := range s.ranks {
		r.line, r.aside = r.aside, r.line
		r.program = r.aside.program + wakeNs
	}
	for range b.Rounds {
		for _, r := range s.ranks {
			ns := s.noisy(r.rng, b.WorkNs)
			if r.number < len(b.Pace) {
				ns = int64(float64(ns) * b.Pace[r.number])
			}
			r.out.span("cpu_op", "aten::stack", r.thread, r.program, r.program+ns, "")
			r.program += ns
			if b.CopyNs > 0 {
				s.copy(r, s.noisy(r.rng, b.CopyNs))
			}
		}
		if b.Collective == 0 {
			continue
		}
		ev := Event{Step: step, Collective: Second, Op: comm.AllReduce}
		parts := make([]part, len(s.ranks))
		for k, r := range s.ranks {
			g := &s.groups[s.groupOf[other][k]]
			ev.Group, ev.Ranks = g.name, g.ranks
			parts[k] = part{r: r, op: comm.AllReduce, c: Collective{Op: comm.AllReduce, Scope: other, Elements: b.Collective, Free: b.Free}, group: g, peer: -1}
		}
		s.together(&ev, parts)
		s.truth.Collectives = append(s.truth.Collectives, ev)
		for _, r := range s.ranks {
			if !s.Host {
				s.blocked(r)
			}
		}
	}
	for _, r := range s.ranks {
		r.line, r.aside = r.aside, r.line
	}
}

// copy lets a thread copy to the device and wait for it.
func (s *run) copy(r *rank, ns int64) {
	r.ids++
	correlation := `"correlation": ` + itoa64(r.ids)
	r.out.span("cuda_runtime", "cudaMemcpyAsync", r.thread, r.program, r.program+s.LaunchNs/3, correlation)
	start := max(r.program+kernelLatency, r.compute)
	r.compute = start + ns
	r.out.onDevice("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", r.onto, start, r.compute, correlation)
	r.program += s.LaunchNs
	s.blocked(r)
}

// blocked lets a thread wait for its stream.
func (s *run) blocked(r *rank) {
	called := r.program
	r.program = max(r.program, r.compute) + s.LaunchNs
	r.out.span("cuda_runtime", "cudaStreamSynchronize", r.thread, called, r.program, "")
}

// join lets the program wait for the second thread, and look at what it made.
func (s *run) join(r *rank) {
	if s.Beside == nil {
		return
	}
	if r.aside.program > r.program {
		r.program = r.aside.program + wakeNs
	}
	r.out.span("cpu_op", "aten::slice", r.thread, r.program, r.program+s.LaunchNs, "")
	r.program += s.LaunchNs
}
