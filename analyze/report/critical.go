package report

import (
	"fmt"
	"strings"

	"mixdown/analyze/collective"
	"mixdown/analyze/critical"
	"mixdown/ingest/trace"
)

// CriticalPath is what bounds one step of the run, and what the step could gain
// at most. See package critical for the path itself.
type CriticalPath struct {
	Step          string                `json:"step"` // "" for the whole trace
	StepNS        int64                 `json:"step_ns"`
	ClocksAligned bool                  `json:"clocks_aligned"`
	Bound         critical.Bound        `json:"bound"`
	ByKind        []critical.KindTotal  `json:"by_kind"`
	ByRank        []critical.RankTotal  `json:"by_rank"`
	ByClass       []critical.ClassTotal `json:"by_class"`
	Free          critical.Gain         `json:"all_free"`
	FreeByOp      []critical.Gain       `json:"free_by_op"`
}

// Critical finds what bounds a step, by its name or number.
func Critical(run *trace.Run, m *collective.Matching, step string) (*CriticalPath, error) {
	result, _, err := critical.Analyze(run, m, critical.Options{Step: step})
	if err != nil {
		return nil, err
	}
	return summarize(result), nil
}

func summarize(r *critical.Result) *CriticalPath {
	return &CriticalPath{
		Step: r.Step, StepNS: r.StepNS, ClocksAligned: r.ClocksAligned, Bound: r.Bound,
		ByKind: r.ByKind, ByRank: r.ByRank, ByClass: r.ByClass, Free: r.Free, FreeByOp: r.FreeByOp,
	}
}

// shownGains is how many operations the text names.
const shownGains = 4

// writeText says it in a few lines.
func (c *CriticalPath) writeText(p *Page) {
	step := c.Step
	if step == "" {
		step = "the whole trace"
	}
	p.Headingf("What bounds %s, %s from the first rank's start to the last one's end", Printable(step), Duration(c.StepNS))
	p.Linef("  %s", Printable(c.Bound.Text))
	var kinds []string
	for _, k := range c.ByKind {
		kinds = append(kinds, fmt.Sprintf("%s %s", k.Kind, Duration(k.NS)))
	}
	p.List("  on the critical path:", kinds)
	p.Linef("  %s", freeText(c.Free))
	if alone := aloneTexts(c.Free, c.FreeByOp); len(alone) > 0 {
		alone[0] = "(" + alone[0]
		alone[len(alone)-1] += ")"
		p.List("    ", alone)
	}
}

// GainText words the upper bound on what other communication could give.
func GainText(free critical.Gain, byOp []critical.Gain) string {
	text := freeText(free)
	if alone := aloneTexts(free, byOp); len(alone) > 0 {
		text += "\n    (" + strings.Join(alone, ", ") + ")"
	}
	return text
}

// freeText is the bound for all communication together.
func freeText(free critical.Gain) string {
	if free.Speedup == nil {
		return "if no communication took time to transfer, nothing else would be left of the step"
	}
	return fmt.Sprintf("if no communication took time to transfer, the step would be %.3fx faster at most", *free.Speedup)
}

// aloneTexts are the bounds for single operations, which need one for all.
func aloneTexts(free critical.Gain, byOp []critical.Gain) []string {
	if free.Speedup == nil {
		return nil
	}
	var alone []string
	for _, g := range byOp {
		if len(alone) < shownGains && g.GainNS > 0 && g.Op != nil && g.Speedup != nil {
			alone = append(alone, fmt.Sprintf("%s alone %.3fx", *g.Op, *g.Speedup))
		}
	}
	return alone
}
