package html

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mixdown/analyze/report"
)

// Answer is what a page says first.
type Answer struct {
	Sentence string   `json:"sentence"`
	Figures  []Figure `json:"figures"`
}

// Figure is a number that stands out.
type Figure struct {
	Label string `json:"label"`
	Value string `json:"value"`
	About string `json:"about"` // what it is of, or how far to trust it
	Kind  string `json:"-"`     // its colour: a kind of time, "good", "bad" or ""
}

// Answer is what the page says first: what was measured before what the traces
// say, and that before what was predicted.
func (p *Page) Answer() Answer {
	switch {
	case p.Comparison != nil:
		return comparisonAnswer(p.Comparison)
	case len(p.Replays) > 0:
		return p.Replays[0].answer()
	case len(p.Predictions) > 0 && (p.PredictionFirst || p.Analysis != nil && sharesOf(p.Analysis).Span <= 0): // a trace of the pipeline alone
		return p.Predictions[0].answer()
	case p.Analysis != nil:
		return p.analysisAnswer()
	case len(p.Predictions) > 0:
		return p.Predictions[0].answer()
	case p.Heat != nil:
		return p.Heat.answer()
	}
	return Answer{Sentence: "Nothing was measured."}
}

// shares are the times of all ranks together, ns.
type shares struct {
	report.Time
	wait, transfer, total int64 // of communication; wait and transfer where known
	known                 int64 // the part of total whose waiting is known
}

func sharesOf(a *report.Analysis) shares {
	var s shares
	for _, r := range a.Ranks {
		s.Span += r.Time.Span
		s.Compute += r.Time.Compute
		s.Exposed += r.Time.Exposed
		s.Hidden += r.Time.Hidden
		s.Comm += r.Time.Comm
		s.Memory += r.Time.Memory
		s.Idle += r.Time.Idle
		s.IdleLaunch += r.Time.IdleLaunch
		s.IdleSync += r.Time.IdleSync
		s.IdleOther += r.Time.IdleOther
	}
	for _, c := range a.Communication {
		s.total += c.Total
		if c.Wait != nil && c.Transfer != nil {
			s.wait, s.transfer, s.known = s.wait+*c.Wait, s.transfer+*c.Transfer, s.known+c.Total
		}
	}
	return s
}

// percent is part of whole, "?" when there is no whole.
func percent(part, whole int64) string {
	if whole <= 0 {
		return "?"
	}
	share := 100 * float64(part) / float64(whole)
	switch {
	case share > 0 && share < 0.05:
		return "<0.1 %"
	case share > 0 && share < 0.95:
		return fmt.Sprintf("%.1f %%", share)
	}
	return fmt.Sprintf("%.0f %%", share)
}

// waiting words how much of the communication is waiting, "" when not known.
func (s shares) waiting() string {
	if s.wait+s.transfer <= 0 {
		return ""
	}
	return percent(s.wait, s.wait+s.transfer)
}

// mostly says whether waiting is known of enough of the communication to speak of
// all of it.
func (s shares) mostly() bool { return s.waiting() != "" && 2*s.known >= s.total }

// partly says of how much of the communication the waiting is known.
func (s shares) partly() string {
	if s.total <= 0 || float64(s.known) > 0.995*float64(s.total) {
		return ""
	}
	return " (known of " + percent(s.known, s.total) + " of it)"
}

// unknown says why waiting is no figure of the page.
func (s shares) unknown() string {
	switch {
	case s.total == 0:
		return report.Duration(s.Compute) + " of " + report.Duration(s.Span) + ", all ranks added up"
	case s.waiting() == "":
		return "of no communication is it known how much is waiting"
	}
	return "of " + percent(s.known, s.total) + " of the communication only is it known how much is waiting"
}

func (p *Page) analysisAnswer() Answer {
	a := p.Analysis
	s := sharesOf(a)
	if s.Span <= 0 {
		return Answer{Sentence: "The traces hold no work whose time could be measured."}
	}
	out := Answer{}
	copies := ""
	if alone := s.Span - s.Idle - s.Compute - s.Exposed; 100*float64(alone) >= float64(s.Span) {
		copies = percent(alone, s.Span) + " copies, "
	}
	head := fmt.Sprintf("Of the ranks’ time, %s is computation, %s communication that no computation hides, %sand %s idle",
		percent(s.Compute, s.Span), percent(s.Exposed, s.Span), copies, percent(s.Idle, s.Span))
	if len(a.Communication) == 0 {
		head = fmt.Sprintf("Of the ranks’ time, %s is computation and %s idle; the traces hold no communication", percent(s.Compute, s.Span), percent(s.Idle, s.Span))
	}
	if step := bubbleOf(a); step != nil {
		head += "; the pipeline’s bubble is " + bubbleText(step)
	}
	if s.mostly() {
		head += fmt.Sprintf("; %s of the communication%s is waiting for ranks that come later, the rest transfer", s.waiting(), s.partly())
		if late := worstRank(a); late != nil {
			head += fmt.Sprintf(", and rank %d keeps others waiting longest", late.Rank)
		}
	}
	out.Sentence = head + "."
	out.Figures = append(out.Figures, Figure{
		Label: "exposed communication", Value: percent(s.Exposed, s.Span), Kind: "exposed",
		About: fmt.Sprintf("%s of %s, all ranks added up", report.Duration(s.Exposed), report.Duration(s.Span)),
	})
	if s.mostly() {
		out.Figures = append(out.Figures, Figure{
			Label: "of communication is waiting", Value: s.waiting(), Kind: "wait",
			About: fmt.Sprintf("waiting %s, transfer %s%s", report.Duration(s.wait), report.Duration(s.transfer), s.partly()),
		})
	} else {
		out.Figures = append(out.Figures, Figure{Label: "computation", Value: percent(s.Compute, s.Span), Kind: "compute", About: s.unknown()})
	}
	return p.thirdFigure(out, s)
}

// thirdFigure adds the bubble of a pipeline, else what faster transfers could
// give at most, else the idle time.
func (p *Page) thirdFigure(out Answer, s shares) Answer {
	a := p.Analysis
	if step := bubbleOf(a); step != nil {
		value, about, _ := strings.Cut(bubbleText(step), " of ")
		out.Figures = append(out.Figures, Figure{Label: "pipeline bubble", Value: value, Kind: "idle", About: "of " + about})
		return out
	}
	if c := a.CriticalPath; c != nil && c.Free.Speedup != nil {
		out.Figures = append(out.Figures, Figure{
			Label: "speedup at most, were transfers free", Value: fmt.Sprintf("%.3fx", *c.Free.Speedup),
			About: "no other library can make " + stepName(c.Step) + " faster than that",
		})
		return out
	}
	out.Figures = append(out.Figures, Figure{Label: "idle", Value: percent(s.Idle, s.Span), Kind: "idle", About: report.Duration(s.Idle) + " in which neither computation nor communication ran"})
	return out
}

// bubbleText is the bubble of a step: of the makespan, where the clocks compare.
func bubbleText(s *report.PipelineStep) string {
	if s.Bubble != nil && s.Makespan != nil {
		return fmt.Sprintf("%.1f %% of the makespan of %s", 100**s.Bubble, report.Duration(*s.Makespan))
	}
	return fmt.Sprintf("%.1f %% of the longest rank’s span of %s", 100**s.BubbleLongestSpan, report.Duration(s.LongestSpan))
}

// bubbleOf is the step of median length of the first pipeline, nil when there is
// none whose bubble is known.
func bubbleOf(a *report.Analysis) *report.PipelineStep {
	if len(a.Pipeline) == 0 {
		return nil
	}
	var known []*report.PipelineStep
	for i := range a.Pipeline[0].Steps {
		if s := &a.Pipeline[0].Steps[i]; s.BubbleLongestSpan != nil {
			known = append(known, s)
		}
	}
	if len(known) == 0 {
		return nil
	}
	slices.SortStableFunc(known, func(x, y *report.PipelineStep) int { return cmp.Compare(x.LongestSpan, y.LongestSpan) })
	return known[(len(known)-1)/2]
}

// worstRank is who made others wait longest, nil when nobody did alone.
func worstRank(a *report.Analysis) *report.LateRank {
	if len(a.Stragglers.Ranks) == 0 || a.Stragglers.Ranks[0].Caused <= 0 {
		return nil
	}
	return &a.Stragglers.Ranks[0]
}

func stepName(step string) string {
	if step == "" {
		return "the step"
	}
	return report.Printable(step)
}

// best is the variant that is faster beyond doubt by the most: its data verified
// and its interval above 1. Nil when there is none.
func (r *Replay) best() *Plan {
	var best *Plan
	for i := range r.Variants {
		v := &r.Variants[i]
		if v.Verified && v.CI95[0] > 1 && (best == nil || v.Speedup > best.Speedup) {
			best = v
		}
	}
	return best
}

// where is what the times of a replay are of.
func (r *Replay) where() string {
	switch r.Device {
	case "host":
		return "in host memory, which says nothing about GPUs"
	case "":
		return "on a device that the result does not name"
	}
	return "on " + report.Printable(cmp.Or(r.DeviceName, r.Device))
}

func (r *Replay) answer() Answer {
	var out Answer
	v := r.best()
	switch {
	case v != nil:
		out.Sentence = fmt.Sprintf("%s runs %s %.2f times as fast as the traced plan (%s %.2f to %.2f, n = %d), measured %s.",
			planName(v), stepName(r.Step), v.Speedup, v.interval(), v.CI95[0], v.CI95[1], len(v.Iterations), r.where())
	case len(r.Variants) > 0:
		v = r.fastest()
		out.Sentence = fmt.Sprintf("No alternative is faster than the traced plan beyond doubt: %s comes to %.2f (%s %.2f to %.2f, n = %d), measured %s.",
			planName(v), v.Speedup, v.interval(), v.CI95[0], v.CI95[1], len(v.Iterations), r.where())
	default:
		out.Sentence = fmt.Sprintf("The traced plan was replayed %d times, without an alternative, %s.", len(r.Baseline.Iterations), r.where())
	}
	if v != nil {
		f := Figure{Label: "speedup", Value: fmt.Sprintf("%.2fx", v.Speedup), About: fmt.Sprintf("%s %.3f to %.3f, n = %d", v.interval(), v.CI95[0], v.CI95[1], len(v.Iterations))}
		switch {
		case v.CI95[0] > 1:
			f.Kind = "good"
		case v.CI95[1] < 1:
			f.Kind = "bad"
		}
		out.Figures = append(out.Figures, f)
	} else {
		out.Figures = append(out.Figures, Figure{Label: "step as replayed", Value: report.Duration(r.Baseline.Median), About: fmt.Sprintf("median of %d", len(r.Baseline.Iterations))})
	}
	return r.trust(out)
}

// interval names a plan's interval by what it covers: with few iterations that is
// less than 95 %.
func (p *Plan) interval() string {
	if p.Coverage > 0 && p.Coverage < 0.95 {
		return fmt.Sprintf("%.1f %% interval", 100*p.Coverage)
	}
	return "95 % interval"
}

// trust adds how close the replay came to the trace, and whether data were right.
func (r *Replay) trust(out Answer) Answer {
	if f := r.Baseline.Fidelity; f != nil && f.TraceStep > 0 {
		out.Figures = append(out.Figures, Figure{
			Label: "fidelity", Value: fmt.Sprintf("%.2f", f.Ratio),
			About: fmt.Sprintf("the unchanged plan took %s, the traced step %s", report.Duration(f.ReplayedStep), report.Duration(f.TraceStep)),
		})
	}
	checked := Figure{Label: "data", Value: "verified", About: fmt.Sprintf("%d communications on %d workers", r.Operations, r.Workers), Kind: "good"}
	for _, v := range append(slices.Clone(r.Variants), r.Baseline) {
		if !v.Verified {
			checked.Value, checked.Kind = "not verified", "bad"
		}
	}
	out.Figures = append(out.Figures, checked)
	return out
}

// fastest is the variant of the largest speedup, verified or not.
func (r *Replay) fastest() *Plan {
	i := 0
	for k := range r.Variants {
		if r.Variants[k].Speedup > r.Variants[i].Speedup {
			i = k
		}
	}
	return &r.Variants[i]
}

// planName is what a plan is called: its name, which is its mix or schedule.
func planName(v *Plan) string {
	for _, name := range []string{v.Name, v.Mix, v.Schedule} {
		if strings.TrimSpace(name) != "" {
			return "“" + report.Printable(name) + "”"
		}
	}
	return "a variant"
}

// quickest is the one with the largest predicted speedup, nil when there is none.
func quickest(list []*Order) *Order {
	var best *Order
	for _, o := range list {
		if best == nil || o.Predicted > best.Predicted {
			best = o
		}
	}
	return best
}

// answer is of the orders, else of the mixes.
func (s *Prediction) answer() Answer {
	v := quickest(s.orders())
	if v == nil {
		if v = quickest(s.mixes()); v != nil {
			return s.mixAnswer(v)
		}
		return Answer{Sentence: "The traced step was simulated, and nothing else."}
	}
	out := Answer{Sentence: fmt.Sprintf("%s is predicted to run the step %.2f times as fast as the traced order, with %.2f times its activations on the fullest rank; nothing was run.",
		"“"+report.Printable(v.Name)+"”", v.Predicted, v.Memory)}
	f := Figure{Label: "predicted speedup", Value: fmt.Sprintf("%.2fx", v.Predicted), About: "simulated, of the order " + report.Printable(v.Name)}
	if v.WithinError {
		f.About = "smaller than the error of the simulation"
	}
	out.Figures = append(out.Figures, f, Figure{Label: "activation memory", Value: fmt.Sprintf("%.2fx", v.Memory), About: "of the fullest rank, against the traced order"})
	if s.Baseline != nil && s.Baseline.Fidelity != nil {
		f := s.Baseline.Fidelity
		out.Figures = append(out.Figures, Figure{Label: "fidelity", Value: fmt.Sprintf("%.3f", f.Ratio), About: fmt.Sprintf("the traced order simulated %s, in the trace %s", report.Duration(f.SimulatedStep), report.Duration(f.TraceStep))})
	}
	return out
}

func (s *Prediction) mixAnswer(v *Order) Answer {
	out := Answer{Sentence: fmt.Sprintf("The mix “%s” is predicted to run the step %.2f times as fast as the traced one; nothing was run.", report.Printable(v.Name), v.Predicted)}
	f := Figure{Label: "predicted speedup", Value: fmt.Sprintf("%.2fx", v.Predicted), About: "simulated, from a table of measurements"}
	if v.WithinError {
		f.About = "smaller than the error of the simulation"
	}
	out.Figures = append(out.Figures, f, Figure{Label: "step, predicted", Value: report.Duration(*v.MixStep), About: "with the mix " + report.Printable(v.Mix)})
	if w := s.Workload; w != nil {
		out.Figures = append(out.Figures, Figure{Label: "fidelity", Value: fmt.Sprintf("%.3f", w.Fidelity.Ratio), About: fmt.Sprintf("the traced step simulated %s, in the trace %s", report.Duration(w.Fidelity.SimulatedStep), report.Duration(w.Fidelity.TraceStep))})
	}
	return out
}
