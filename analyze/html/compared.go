package html

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"mixdown/analyze/gate"
	"mixdown/analyze/gate/output"
	"mixdown/analyze/report"
)

// find is the first check of a metric without labels, nil when there is none.
func find(d *output.Document, m gate.Metric) *gate.Check {
	for i := range d.Checks {
		if c := &d.Checks[i]; c.Metric == m && len(c.Labels) == 0 {
			return c
		}
	}
	return nil
}

// capital makes a sentence of an answer.
func capital(s string) string {
	s = strings.ReplaceAll(s, " -> ", " → ")
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + strings.TrimSuffix(s[n:], ".") + "."
}

// comparisonAnswer is the answer of a gate or a diff with three numbers: the step,
// what no computation hides, and how many checks went which way.
func comparisonAnswer(d *output.Document) Answer {
	out := Answer{Sentence: capital(printable(d.Answer, 900))}
	out.Figures = append(out.Figures, stepFigure(d))
	for _, p := range d.Parts {
		if p.Metric == gate.ExposedComm && p.Before != nil && p.After != nil {
			f := Figure{Label: "exposed communication, a rank", Value: gate.Nanoseconds.Signed(*p.After - *p.Before), Kind: "exposed"}
			f.About = fmt.Sprintf("%s → %s in a step", report.Duration(int64(*p.Before)), report.Duration(int64(*p.After)))
			out.Figures = append(out.Figures, f)
		}
	}
	if len(out.Figures) < 2 && len(d.Checks) > 1 {
		out.Figures = append(out.Figures, Figure{Label: "checks better than before", Value: fmt.Sprint(d.Count(gate.Improved)), About: fmt.Sprintf("of %d", len(d.Checks))})
	}
	out.Figures = append(out.Figures, countFigure(d))
	return out
}

// stepFigure is the change of the step's time.
func stepFigure(d *output.Document) Figure {
	f := Figure{Label: "step time", Value: "?", About: "not known of both runs"}
	c := find(d, gate.Step)
	if c != nil && c.Baseline != nil && c.Candidate != nil && c.Relative != nil {
		f.Value = fmt.Sprintf("%+.1f %%", 100**c.Relative)
		f.About = fmt.Sprintf("%s → %s", report.Duration(int64(c.Baseline.Median)), report.Duration(int64(c.Candidate.Median)))
		if c.Low != nil && c.Baseline.Median != 0 {
			f.About += fmt.Sprintf(", interval %+.1f to %+.1f %%", 100**c.Low/c.Baseline.Median, 100**c.High/c.Baseline.Median)
		}
		f.Kind = map[string]string{"good": "good", "bad": "bad"}[colourOf(c.Outcome)]
		return f
	}
	a, b := middleOf(d.StepsBefore), middleOf(d.StepsAfter)
	switch {
	case a > 0 && b > 0:
		f.Value, f.About = fmt.Sprintf("%+.1f %%", 100*(b-a)/a), fmt.Sprintf("%s → %s; no rule is about it", report.Duration(int64(a)), report.Duration(int64(b)))
	case b > 0:
		f.Value, f.About = report.Duration(int64(b)), fmt.Sprintf("median of %d steps; nothing to compare with", len(d.StepsAfter))
	}
	return f
}

func middleOf(values []float64) float64 {
	if s := output.Median(values); s != nil {
		return *s
	}
	return math.NaN()
}

func countFigure(d *output.Document) Figure {
	bad := d.Count(gate.Regression) + d.Count(gate.Warning) + d.Count(gate.Waived)
	unclear := d.Count(gate.Inconclusive) + d.Count(gate.NotComparable)
	f := Figure{Label: "checks are worse", Value: fmt.Sprintf("%d of %d", bad, len(d.Checks)), About: fmt.Sprintf("%d better, %d within the limits, %d can’t be told", d.Count(gate.Improved), d.Count(gate.Pass), unclear)}
	if d.Verb == "diff" {
		f.About = fmt.Sprintf("%d better, %d without a change that stands out", d.Count(gate.Improved), d.Count(gate.Pass))
	}
	switch {
	case bad > 0:
		f.Kind = "bad"
	case unclear == 0 && len(d.Checks) > 0:
		f.Kind = "good"
	}
	return f
}

// comparisonQuestions are what a reader of a gate or a diff asks.
func comparisonQuestions(d *output.Document) []Question {
	list := []Question{worseQuestion(d), causeQuestion(d)}
	if len(d.Parts) > 0 {
		list = append(list, partQuestion(d))
	}
	return append(list, betterQuestion(d), comparableQuestion(d), sureQuestion(d))
}

func worseQuestion(d *output.Document) Question {
	q := Question{Ask: "Did it get worse?", Section: "checks"}
	switch d.Outcome {
	case gate.Regression:
		q.Answer = fmt.Sprintf("Yes: %d of %d checks passed their limit, beyond chance.", d.Count(gate.Regression), len(d.Checks))
	case gate.NotComparable:
		q.Answer = "Not known: the runs differ in what must be the same."
	case gate.Inconclusive:
		q.Answer = "Not known: the steps vary too much, or are too few, for the limits."
	case gate.Warning:
		q.Answer = "Yes: the step takes longer, by more than noise."
	case gate.Improved:
		q.Answer = "No: the step is faster, by more than noise."
	default:
		q.Answer = "No: no limit was passed."
		if d.Verb == "diff" {
			q.Answer = "The step’s time shows no change that stands out."
		}
		if n := d.Count(gate.Warning) + d.Count(gate.Waived); n > 0 {
			q.Answer += fmt.Sprintf(" Yet %d checks got worse.", n)
		}
	}
	if c := find(d, gate.Step); c != nil && c.Reason != "" {
		q.Answer += " The step: " + printable(c.Reason, 200) + "."
	}
	return q
}

func causeQuestion(d *output.Document) Question {
	q := Question{Ask: "What caused it?", Answer: "There is nothing to explain."}
	for _, c := range ordered(d) {
		if c.Cause == nil || c.Cause.Text == "" {
			continue
		}
		q.Answer, q.Command, q.Section = capital(fmt.Sprintf("%s: %s", report.Printable(c.Name()), printable(c.Cause.Text, 400))), printable(c.Cause.Command, 400), "causes"
		return q
	}
	for _, c := range d.Comparisons {
		if c.Status == gate.Differs {
			q.Answer, q.Section = "The runs did other work; what differs is listed.", "comparable"
		}
	}
	return q
}

func partQuestion(d *output.Document) Question {
	q := Question{Ask: "Where did the step’s time go?", Section: "parts"}
	names := map[gate.Metric]string{gate.Compute: "computation", gate.ExposedComm: "exposed communication", gate.Memory: "copies", gate.Idle: "idle time"}
	var parts []string
	for _, p := range d.Parts {
		name, shown := names[p.Metric]
		if shown && p.Before != nil && p.After != nil && *p.Before+*p.After > 0 {
			parts = append(parts, name+" "+gate.Nanoseconds.Signed(*p.After-*p.Before))
		}
	}
	if parts == nil {
		q.Answer = "Known of one run only."
		return q
	}
	q.Answer = "A rank and step: " + strings.Join(parts, ", ") + "."
	return q
}

func betterQuestion(d *output.Document) Question {
	q := Question{Ask: "What got better?", Answer: "Nothing, as far as the steps can tell.", Section: "checks"}
	var best *gate.Check
	n := 0
	for i := range d.Checks {
		c := &d.Checks[i]
		if c.Outcome != gate.Improved {
			continue
		}
		n++
		if c.Unit == gate.Nanoseconds && c.Metric != gate.Step && c.Change != nil && (best == nil || *c.Change < *best.Change) {
			best = c
		}
	}
	switch {
	case best != nil:
		q.Answer = fmt.Sprintf("%d checks, most of all %s: %s.", n, report.Printable(best.Name()), printable(best.Reason, 300))
	case n > 0:
		q.Answer = fmt.Sprintf("%d checks.", n)
	}
	return q
}

func comparableQuestion(d *output.Document) Question {
	q := Question{Ask: "Can the runs be compared?", Section: "comparable"}
	var differ, unknown []string
	for _, c := range d.Comparisons {
		switch c.Status {
		case gate.Differs:
			differ = append(differ, strings.ReplaceAll(string(c.Item), "_", " "))
		case gate.Unknown:
			unknown = append(unknown, strings.ReplaceAll(string(c.Item), "_", " "))
		}
	}
	switch {
	case len(differ) > 0:
		q.Answer = "No: they differ in " + strings.Join(differ, ", ") + "."
	case d.Outcome == gate.NotComparable:
		q.Answer = "No: " + printable(d.Answer, 300) + "."
	case d.Before == nil:
		q.Answer = "There is no run to compare with: the rules bound values themselves."
	case len(d.Comparisons) > 0:
		q.Answer = "Yes: they agree in all that was held against each other."
		if unknown != nil {
			q.Answer = "As far as is known: " + strings.Join(unknown, ", ") + " of one run or both is not."
		}
	default:
		q.Answer = "Yes."
	}
	if n := len(d.Notes); n > 0 {
		q.Answer += fmt.Sprintf(" Keep in mind: %s", capital(printable(d.Notes[0], 200)))
		if n > 1 {
			q.Answer += fmt.Sprintf(" And %d more.", n-1)
		}
	}
	return q
}

func sureQuestion(d *output.Document) Question {
	q := Question{Ask: "How sure is that?", Section: "steps"}
	if len(d.StepsAfter) < 2 {
		q.Section = "checks"
	}
	if d.Before != nil {
		q.Answer = fmt.Sprintf("%d steps before and %d after are the samples. ", len(d.StepsBefore), len(d.StepsAfter))
	} else {
		q.Answer = fmt.Sprintf("%d steps are the samples. ", len(d.StepsAfter))
	}
	q.Answer += d.Method
	return q
}
