package diff

import (
	"fmt"
	"math"
	"strings"

	"mixdown/analyze/breakdown"
	"mixdown/analyze/report"
)

// Shares of the change of a step's time that one thing must explain to be called
// its cause, and to be named at all.
const (
	causeShare = 0.5
	namedShare = 0.1
)

// answer says in a sentence what became of the step, and why.
func (d *Diff) answer() string {
	step := &d.Time.Step
	change, ok := step.change()
	if !ok {
		return fmt.Sprintf("%s: the runs have no common measure of time", d.counts())
	}
	what := "step time"
	if d.Before.Steps == 0 {
		what = "time of the whole trace"
	}
	text := fmt.Sprintf("%s %s -> %s (%s%s)", what, report.Duration(*step.Before), report.Duration(*step.After), percent(step.Relative), d.test(step))
	if step.standsOut(MinStepRelative, 0, MaxP) {
		return text + d.because(change)
	}
	if d.identical() {
		return text + ", and no difference in communication"
	}
	if d.standing() > 0 {
		return fmt.Sprintf("%s, no change that stands out; %s", text, d.counts())
	}
	return text + ", and nothing stands out"
}

// Cause is what explains the change of the step's time, in words; "" when the step
// did not change or nothing explains it.
func (d *Diff) Cause() string {
	change, ok := d.Time.Step.change()
	if !d.Comparable || !ok || d.StepVerdict() == Unchanged {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(d.because(change), ", because "), ", ")
}

// StepVerdict is what became of the time of the slowest rank's step.
func (d *Diff) StepVerdict() Verdict { return d.Time.Step.verdict(MinStepRelative, 0) }

// PartVerdict is what became of a part of the step's time, which m is one of.
func (d *Diff) PartVerdict(m *Metric) Verdict {
	return m.verdict(MinRelative, floors(d, measures{basis: d.Basis}))
}

func (m *Metric) verdict(relative, floor float64) Verdict {
	switch change, _ := m.change(); {
	case !m.standsOut(relative, floor, MaxP):
		return Unchanged
	case change > 0:
		return Grew
	}
	return Shrank
}

// cause is a change of something, ns per rank, that may explain the step's.
type cause struct {
	text string
	ns   float64
}

// because names what explains the change of the step's time: the slowest rank's,
// ns. The parts of a step are known as means over ranks, so it is the mean that
// they explain.
func (d *Diff) because(slowest float64) string {
	change := *d.Time.Step.PerRankChange
	if change*slowest <= 0 {
		return fmt.Sprintf(", though the mean over ranks changed by %s: the slowest ranks differ, not all", signed(change))
	}
	part := func(name string, m *Metric) cause {
		ns := d.perRank(m)
		return cause{name + " " + signed(ns), ns}
	}
	exposed, compute, idle := part("exposed communication", &d.Time.Exposed), part("computation", &d.Time.Compute), part("idle time", &d.Time.Idle)
	var best cause
	consider := func(c cause) {
		if c.ns*change > 0 && math.Abs(c.ns) > math.Abs(best.ns) {
			best = c
		}
	}
	for i := range d.Operations {
		if o := &d.Operations[i]; o.Verdict != Unchanged {
			ns := d.perRank(&o.Exposed)
			consider(cause{o.sentence(signed(ns)), ns})
		}
	}
	if math.Abs(best.ns) < causeShare*math.Abs(change) { // no operation alone: all of them?
		if best.text != "" {
			exposed.text += ", the most of it " + best.text
		}
		consider(exposed)
	}
	consider(compute)
	consider(idle)
	text := ", which no operation, computation or idle time explains alone"
	switch share := best.ns / change; {
	case share >= causeShare:
		text = ", because " + best.text
	case share >= namedShare:
		text = ", the largest part " + best.text
	}
	if against := strongest([]cause{part("exposed communication", &d.Time.Exposed), compute, idle}, -change); math.Abs(against.ns) >= causeShare*math.Abs(change) {
		text += ", against " + against.text
	}
	return text
}

// strongest is the largest cause in the direction of a change.
func strongest(list []cause, change float64) (best cause) {
	for _, c := range list {
		if c.ns*change > 0 && math.Abs(c.ns) > math.Abs(best.ns) {
			best = c
		}
	}
	return best
}

// perRank is the change of a sum over ranks as a mean over all ranks read, ns:
// comparable with the time of a step.
func (d *Diff) perRank(m *Metric) float64 {
	if m.Before == nil || m.After == nil {
		return 0
	}
	return float64(*m.After)/float64(d.After.StepRanks) - float64(*m.Before)/float64(d.Before.StepRanks)
}

// sentence is the operation with the change of its exposed time.
func (o *Operation) sentence(by string) string {
	text := string(o.Op)
	if o.SizeTo != nil {
		text += " " + o.Class()
	}
	if o.Group != nil {
		text += " in " + report.Printable(*o.Group)
	}
	switch o.Verdict {
	case Appeared:
		text = "new " + text
	case Vanished:
		text += " vanished,"
	}
	text += " exposed " + by
	if o.Phase != nil {
		text += " in " + *o.Phase
	}
	return text
}

// Class is the size class of the operation, "?" when not known.
func (o *Operation) Class() string {
	if o.SizeFrom == nil || o.SizeTo == nil {
		return "?"
	}
	return breakdown.SizeClass{From: *o.SizeFrom, To: *o.SizeTo}.String()
}

// standing is how many operations stand out.
func (d *Diff) standing() int {
	n := 0
	for i := range d.Operations {
		if d.Operations[i].Verdict != Unchanged {
			n++
		}
	}
	return n
}

// identical says whether nothing of the communication has any change at all.
func (d *Diff) identical() bool {
	for i := range d.Operations {
		o := &d.Operations[i]
		for _, m := range []*Metric{&o.Count, &o.Bytes, &o.Total, &o.Exposed, &o.Wait, &o.Transfer} {
			if c, ok := m.change(); ok && c != 0 || m.Before == nil != (m.After == nil) {
				return false
			}
		}
		if o.RanksBefore != o.RanksAfter {
			return false
		}
	}
	return true
}

// counts lists how many operations have each verdict: "2 appeared, 1 grew".
func (d *Diff) counts() string {
	n := map[Verdict]int{}
	for i := range d.Operations {
		n[d.Operations[i].Verdict]++
	}
	text := ""
	for _, v := range []Verdict{Appeared, Vanished, Grew, Shrank} {
		if n[v] == 0 {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%d %s", n[v], v)
	}
	if text == "" {
		return fmt.Sprintf("none of %d operations changed", len(d.Operations))
	}
	return fmt.Sprintf("of %d operations %s", len(d.Operations), text)
}

// signed is a change, ns, with its sign.
func signed(ns float64) string {
	n := int64(math.Round(ns))
	if n > 0 {
		return "+" + report.Duration(n)
	}
	return report.Duration(n)
}

func percent(relative *float64) string {
	if relative == nil {
		return "from 0"
	}
	if p := 100 * *relative; math.Abs(p) < 1000 {
		return fmt.Sprintf("%+.1f %%", p)
	}
	return fmt.Sprintf("x%.3g", 1+*relative)
}

// test says what the test of a metric gave.
func (d *Diff) test(m *Metric) string {
	switch {
	case m.P != nil:
		return ", p " + shortP(*m.P)
	case m.Change != nil && *m.Change == 0:
		return ""
	}
	return ", untested"
}

func shortP(p float64) string {
	if p < 0.001 {
		return "<0.001"
	}
	return fmt.Sprintf("%.3f", p)
}
