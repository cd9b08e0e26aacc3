package html

import (
	"cmp"
	"slices"

	"mixdown/analyze/align"
	"mixdown/analyze/breakdown"
	"mixdown/analyze/collective"
	"mixdown/analyze/report"
	"mixdown/analyze/straggler"
	"mixdown/ingest/trace"
)

// Source is an analysed run: matched, on one clock, and with its report.
type Source struct {
	Run      *trace.Run
	Match    *collective.Matching
	Clocks   *align.Result
	Analysis *report.Analysis
}

// AddRun adds an analysed run with all that its traces tell, the time line among
// it. A page shows one run.
func (p *Page) AddRun(in Source, opts TimelineOptions) {
	p.Analysis = in.Analysis
	b := breakdown.Analyze(in.Run, in.Match, in.Clocks)
	for _, r := range b.By(breakdown.ByGroup | breakdown.ByOp | breakdown.ByPhase) {
		row := PhaseRow{Group: r.GroupLabel(), Op: string(r.Op), Phase: r.Phase.String(), Count: r.Count, Total: r.Total, Exposed: r.Exposed}
		if r.TimesKnown {
			row.Wait, row.Transfer = &r.Wait, &r.Transfer
		}
		p.Phases = append(p.Phases, row)
	}
	for _, r := range b.Ranks {
		one := report.RankSteps{Rank: r.Rank, Steps: []report.StepTime{}}
		for _, s := range r.Steps {
			one.Steps = append(one.Steps, report.StepTime{
				Step: b.Steps[s.Step].Name, Dur: s.Dur, Compute: s.Compute, Comm: s.Comm, Exposed: s.Exposed, Hidden: s.Hidden, Memory: s.Memory, Idle: s.Idle,
			})
		}
		p.Steps = append(p.Steps, one)
	}
	p.Caused = causedBySteps(straggler.Find(in.Run, in.Match, in.Clocks))
	p.Timeline = newTimeline(in, opts)
}

// causedBySteps adds up what each rank made others wait in each step.
func causedBySteps(r *straggler.Report) []Caused {
	type key struct {
		step string
		rank int
	}
	sums := map[key]int64{}
	for _, l := range r.Late {
		if l.Step != "" {
			sums[key{l.Step, l.Rank}] += l.Caused
		}
	}
	list := make([]Caused, 0, len(sums))
	for k, ns := range sums {
		list = append(list, Caused{Step: k.step, Rank: k.rank, Caused: ns})
	}
	slices.SortFunc(list, func(a, b Caused) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Step, b.Step)) })
	return list
}

// sumPhases adds up rows of the breakdown by group, op and phase, the most
// exposed first.
func sumPhases(rows []breakdownJSON) []PhaseRow {
	type key struct{ group, op, phase string }
	index := map[key]int{}
	var list []PhaseRow
	for _, r := range rows {
		k := key{text(r.Group), text(r.Op), text(r.Phase)}
		i, ok := index[k]
		if !ok {
			i = len(list)
			index[k] = i
			list = append(list, PhaseRow{Group: k.group, Op: k.op, Phase: k.phase, Wait: new(int64), Transfer: new(int64)})
		}
		p := &list[i]
		p.Count, p.Total, p.Exposed = p.Count+r.Count, p.Total+r.Total, p.Exposed+r.Exposed
		p.Wait, p.Transfer = plus(p.Wait, r.Wait), plus(p.Transfer, r.Transfer)
	}
	slices.SortStableFunc(list, func(a, b PhaseRow) int {
		return cmp.Or(cmp.Compare(b.Exposed, a.Exposed), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Phase, b.Phase))
	})
	return list
}

// plus is a sum that is unknown when one of its parts is.
func plus(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	sum := *a + *b
	return &sum
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
