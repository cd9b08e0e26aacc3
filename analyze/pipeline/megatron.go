package pipeline

import (
	"cmp"
	"fmt"
	"slices"

	"mixdown/ingest/diagnostic"
	"mixdown/ingest/megatron"
)

// FromMegatron makes pipelines of the spans of a Megatron tracer: one for each
// run that was merged into the file, with a step for each iteration. Megatron
// places chunks in a loop: stage = chunk x places + place.
//
// Such a trace has no communication, so it does not tell when the input of a task
// was there, and Index is nil: there is no run. Ranks are the places.
func FromMegatron(p *megatron.Pipeline) *Result {
	res := &Result{}
	for _, run := range p.Runs() {
		m := &megatronRun{iterations: map[int][]megatron.Span{}}
		skipped := 0
		for i := range p.Spans {
			s := p.Spans[i]
			if s.Run != run || s.Kind == megatron.Other {
				continue
			}
			if !s.Stage.Known || !s.Microbatch.Known || max(s.Stage.N, s.Chunk.N, s.Microbatch.N) >= maxIndex {
				skipped++
				continue
			}
			m.add(s)
		}
		if skipped > 0 {
			res.Diagnostics.Add(diagnostic.Diagnostic{Code: CodeUnnumbered, Rank: diagnostic.NoRank, Count: int64(skipped), Offset: diagnostic.NoOffset,
				Example: fmt.Sprintf("spans of run %.20q without stage or micro-batch", run)})
		}
		if m.places*m.chunks >= maxIndex {
			res.Diagnostics.Addf(CodeUnclear, diagnostic.NoRank, diagnostic.NoOffset, "run %.20q has %d places and %d chunks", run, m.places, m.chunks)
			continue
		}
		// One place alone hands nothing on: that is no pipeline.
		if m.places > 1 {
			res.Pipelines = append(res.Pipelines, m.pipeline(run, res))
		}
	}
	return res
}

// megatronRun is the spans of one run.
type megatronRun struct {
	iterations     map[int][]megatron.Span
	places, chunks int
}

func (m *megatronRun) add(s megatron.Span) {
	m.iterations[s.Iteration.N] = append(m.iterations[s.Iteration.N], s) // 0 where unknown
	m.places, m.chunks = max(m.places, s.Stage.N+1), max(m.chunks, s.Chunk.N+1)
}

func (m *megatronRun) pipeline(run string, res *Result) *Pipeline {
	p := &Pipeline{Loops: m.chunks, Evidence: fmt.Sprintf("spans of Megatron's tracer, run %.20q", run)}
	for place := range m.places {
		p.Ranks = append(p.Ranks, place)
	}
	for stage := range m.places * m.chunks {
		p.StagePlace = append(p.StagePlace, stage%m.places)
	}
	var numbers []int
	for n, spans := range m.iterations {
		numbers = append(numbers, n)
		for i := range spans {
			p.Microbatches = max(p.Microbatches, spans[i].Microbatch.N+1)
		}
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		p.Steps = append(p.Steps, m.step(p, n))
	}
	res.checkComplete(p)
	return p
}

func (m *megatronRun) step(p *Pipeline, number int) Step {
	s := Step{Name: fmt.Sprintf("iteration %d", number), Number: number, Comparable: true,
		Start: make([]int64, m.places), End: make([]int64, m.places), Tasks: make([][]Task, m.places)}
	for _, sp := range m.iterations[number] { // by start
		place := sp.Stage.N
		k := key{Forward, sp.Chunk.N*m.places + place, sp.Microbatch.N}
		if sp.Kind == megatron.Backward {
			k.phase = Backward
		}
		s.Tasks[place] = append(s.Tasks[place], Task{Phase: k.phase, Stage: k.stage, Microbatch: k.microbatch,
			Start: sp.Start, End: sp.End(), Arrived: Unknown, Remote: p.remote(k)})
	}
	for place, tasks := range s.Tasks {
		slices.SortStableFunc(tasks, func(a, b Task) int { return cmp.Compare(a.Start, b.Start) })
		for i := range tasks {
			if i == 0 {
				s.Start[place], s.End[place] = tasks[i].Start, tasks[i].End
			}
			s.End[place] = max(s.End[place], tasks[i].End)
		}
	}
	return s
}
