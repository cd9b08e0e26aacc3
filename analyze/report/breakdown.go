package report

import (
	"fmt"

	"mixdown/analyze/breakdown"
)

// RankSteps is the time of each step of one rank, and of what lies in none.
type RankSteps struct {
	Rank    int        `json:"rank"`
	Steps   []StepTime `json:"steps"`
	Outside StepTime   `json:"outside"`
}

// StepTime is the decomposition of one step, ns; device work belongs to the step
// that launched it.
type StepTime struct {
	Step    string `json:"step"`
	Dur     int64  `json:"dur_ns"` // as the CPU saw it
	Compute int64  `json:"compute_ns"`
	Comm    int64  `json:"comm_ns"`
	Exposed int64  `json:"exposed_comm_ns"`
	Hidden  int64  `json:"hidden_comm_ns"`
	Memory  int64  `json:"memory_ns"`
	Idle    int64  `json:"idle_ns"`
}

func stepsByRank(b *breakdown.Breakdown) []RankSteps {
	list := []RankSteps{}
	for _, r := range b.Ranks {
		one := RankSteps{Rank: r.Rank, Steps: []StepTime{}, Outside: stepTime("", 0, r.Outside)}
		for _, s := range r.Steps {
			one.Steps = append(one.Steps, stepTime(b.Steps[s.Step].Name, s.Dur, s.Times))
		}
		list = append(list, one)
	}
	return list
}

func stepTime(name string, dur int64, t breakdown.Times) StepTime {
	return StepTime{Step: name, Dur: dur, Compute: t.Compute, Comm: t.Comm, Exposed: t.Exposed, Hidden: t.Hidden, Memory: t.Memory, Idle: t.Idle}
}

// writeBreakdown shows communication by phase and the times of each step.
func (a *Analysis) writeBreakdown(p *Page, opts TextOptions) {
	if a.phases == nil {
		return
	}
	p.Headingf("Communication by phase (times summed over ranks and steps)")
	g := NewGrid(Column{"group", Names}, Column{"op", Names}, Column{Head: "phase"}, Column{Head: "count"}, Column{Head: "total"}, Column{Head: "exposed"}, Column{"hidden", Spare})
	for _, r := range a.phases[:opts.limit(len(a.phases))] {
		phase := r.Phase.String()
		if phase == "" {
			phase = "?"
		}
		g.Row(Printable(r.GroupLabel()), Printable(string(r.Op)), phase, fmt.Sprint(r.Count), Duration(r.Total), Duration(r.Exposed), Duration(r.Hidden))
	}
	p.Grid(g)
	p.more(len(a.phases)-opts.limit(len(a.phases)), "rows")
	p.Headingf("Time of each step")
	g = NewGrid(Column{Head: "rank"}, Column{"step", Names}, Column{Head: "lasts"}, Column{Head: "compute"}, Column{Head: "comm"}, Column{Head: "exposed"}, Column{Head: "memory"}, Column{Head: "idle"})
	total := 0
	for _, r := range a.StepsByRank {
		total += len(r.Steps)
	}
	left := opts.limit(total)
	for _, r := range a.StepsByRank {
		for _, s := range r.Steps[:min(left, len(r.Steps))] {
			left--
			g.Row(fmt.Sprint(r.Rank), Printable(s.Step), Duration(s.Dur), Duration(s.Compute), Duration(s.Comm), Duration(s.Exposed), Duration(s.Memory), Duration(s.Idle))
		}
	}
	p.Grid(g)
	p.more(total-opts.limit(total), "rows")
}
