package report

import (
	"fmt"
	"strings"
	"text/tabwriter"

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
func (a *Analysis) writeBreakdown(b *strings.Builder) {
	if a.phases == nil {
		return
	}
	b.WriteString("\nCommunication by phase (times summed over ranks and steps)\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "group\top\tphase\tcount\ttotal\texposed\thidden\t")
	for _, r := range a.phases {
		phase := r.Phase.String()
		if phase == "" {
			phase = "?"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t\n", Printable(r.GroupLabel()), r.Op, phase, r.Count, Duration(r.Total), Duration(r.Exposed), Duration(r.Hidden))
	}
	t.Flush()
	b.WriteString("\nTime of each step\n")
	t = tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "rank\tstep\tlasts\tcompute\tcomm\texposed\tmemory\tidle\t")
	for _, r := range a.StepsByRank {
		for _, s := range r.Steps {
			fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Rank, Printable(s.Step), Duration(s.Dur), Duration(s.Compute), Duration(s.Comm), Duration(s.Exposed), Duration(s.Memory), Duration(s.Idle))
		}
	}
	t.Flush()
}
