package html

import (
	"fmt"
	"strings"

	"mixdown/analyze/report"
)

// Question is one of those that people bring, with its short answer.
type Question struct {
	Ask     string `json:"question"`
	Answer  string `json:"answer"`
	Command string `json:"command,omitempty"` // that would say more, "" when there is none
	Section string `json:"-"`                 // the id of the evidence, "" when there is none
}

// Questions answers the six of the design from what the page has; a comparison has
// its own.
func (p *Page) Questions() []Question {
	if p.Comparison != nil {
		return comparisonQuestions(p.Comparison)
	}
	if p.Heat != nil && p.Analysis == nil && len(p.Replays)+len(p.Predictions) == 0 {
		return p.Heat.questions()
	}
	list := []Question{}
	if p.Analysis != nil {
		list = append(list, p.whereTime(), p.slowCollectives())
	}
	return append(list, p.otherBackend(), p.otherOrder(), p.apply(), p.worse())
}

func (p *Page) whereTime() Question {
	q := Question{Ask: "Where does step time go?", Section: "ranks"}
	s := sharesOf(p.Analysis)
	if s.Span <= 0 {
		q.Answer = "The traces hold no work whose time could be measured."
		return q
	}
	q.Answer = fmt.Sprintf("Idle %s, exposed communication %s, computation %s.", percent(s.Idle, s.Span), percent(s.Exposed, s.Span), percent(s.Compute, s.Span))
	if 20*s.Idle > s.Span {
		q.Answer += " " + s.idleCause()
	}
	if len(p.Phases) > 0 && p.Phases[0].Exposed > 0 {
		r := p.Phases[0]
		phase := r.Phase
		if phase == "" {
			phase = "unknown"
		}
		q.Answer += fmt.Sprintf(" Most exposed: %s in group %s, phase %s: %s, summed over ranks.", report.Printable(r.Op), report.Printable(r.Group), phase, report.Duration(r.Exposed))
	}
	return q
}

// idleCause names the largest part of the idle time.
func (s shares) idleCause() string {
	switch most := max(s.IdleLaunch, s.IdleSync, s.IdleOther); {
	case most == 0:
		return ""
	case most == s.IdleLaunch:
		return percent(most, s.Idle) + " of the idle time is late launches: the device had nothing to do yet."
	case most == s.IdleSync:
		return percent(most, s.Idle) + " of the idle time is the host waiting for the device before it launches more."
	default:
		return "For " + percent(most, s.Idle) + " of the idle time the trace names no cause."
	}
}

func (p *Page) slowCollectives() Question {
	q := Question{Ask: "Which collectives are slow, and is it transfer or waiting?", Section: "communication"}
	rows := byExposed(p.Analysis.Communication)
	if len(rows) == 0 {
		q.Answer = "The traces hold no communication."
		return q
	}
	c := rows[0]
	q.Answer = fmt.Sprintf("%s of %s in group %s costs most: %s exposed", report.Printable(string(c.Op)), size(larger(c.InBytes, c.OutBytes)), report.Printable(c.Group), report.Duration(c.Exposed))
	if c.Wait == nil || c.Transfer == nil {
		q.Answer += "; how much of it is waiting is not known."
		return q
	}
	q.Answer += fmt.Sprintf(", %s of its time is waiting", percent(*c.Wait, *c.Wait+*c.Transfer))
	if c.BusBW != nil {
		q.Answer += fmt.Sprintf("; while it transfers it reaches %s GB/s (busbw)", bandwidth(*c.BusBW))
	}
	q.Answer += "."
	if s := sharesOf(p.Analysis); s.mostly() {
		verdict := "waiting"
		if s.transfer > s.wait {
			verdict = "transfer"
		}
		q.Answer += fmt.Sprintf(" Over all communication it is %s: %s waiting, %s transfer.", verdict, report.Duration(s.wait), report.Duration(s.transfer))
	}
	return q
}

func (p *Page) otherBackend() Question {
	q := Question{Ask: "Would another backend help?"}
	for _, r := range p.Replays {
		if len(r.Variants) == 0 {
			continue
		}
		q.Answer, q.Section = r.answer().Sentence, "replay"
		return q
	}
	q.Command = "mixdown replay " + p.inputArgs() + p.standIn() + " --mix '*=openmpi'"
	for _, s := range p.Predictions {
		if v := quickest(s.mixes()); v != nil {
			q.Answer, q.Section = s.mixAnswer(v).Sentence+" A replay measures it:", "orders"
			q.Command = "mixdown replay " + p.inputArgs() + p.standIn() + " --mix " + Quote(v.Mix)
			return q
		}
	}
	if p.Analysis == nil {
		q.Answer = "Not measured here."
		return q
	}
	if len(p.Analysis.Communication) == 0 {
		q.Answer, q.Command = "No: the traces hold no communication.", ""
		return q
	}
	c := p.Analysis.CriticalPath
	switch {
	case c == nil || c.Free.Speedup == nil:
		q.Answer = "Not known from the traces; a replay measures it."
	case *c.Free.Speedup < 1.02:
		q.Answer, q.Section = fmt.Sprintf("Hardly: if all transfers took no time, %s would be %.3f times as fast at most. A replay would prove it:", stepName(c.Step), *c.Free.Speedup), "critical"
	default:
		q.Answer, q.Section = fmt.Sprintf("Up to %.2f times, were transfers free, for %s; a replay measures how much of it a library gives.", *c.Free.Speedup, stepName(c.Step)), "critical"
	}
	return q
}

// standIn is what runs in NCCL's place where there is no GPU.
func (p *Page) standIn() string {
	if p.Analysis != nil && strings.Contains(p.Analysis.Run.Backend, "nccl") {
		return " --map nccl=gloo"
	}
	return ""
}

// larger is the larger of two sizes, nil when neither is known.
func larger(a, b *int64) *int64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

func (p *Page) otherOrder() Question {
	q := Question{Ask: "Would another pipeline order help, and what would it cost in memory?"}
	for _, s := range p.Predictions {
		if v := quickest(s.orders()); v != nil {
			q.Answer, q.Section = s.answer().Sentence, "orders"
			if v.WithinError {
				q.Answer += " That is less than the simulation’s own error: take it as no gain."
			}
			return q
		}
	}
	switch {
	case p.Analysis == nil:
		q.Answer = "Not looked for here."
		q.Command = "mixdown simulate " + p.inputArgs() + " --search"
	case len(p.Analysis.Pipeline) == 0:
		q.Answer = "These traces show no pipeline."
	default:
		q.Answer = "There is a pipeline; nothing was predicted here."
		q.Command = "mixdown simulate " + p.inputArgs() + " --search"
	}
	return q
}

func (p *Page) apply() Question {
	q := Question{Ask: "How do I apply the answer?"}
	for _, r := range p.Replays {
		if v := r.best(); v != nil {
			q.Answer, q.Section = "Use the rules of the fastest verified plan, shown below; measure on your own machines first. What they set of a library, this writes as its own files:", "replay"
			q.Command = "mixdown export --mix " + Quote(v.Mix) + " --to FORMAT"
			if v.Mix == "" {
				q.Answer, q.Command = "Use the order of the fastest verified plan; measure on your own machines first.", ""
			}
			return q
		}
		if len(r.Variants) > 0 {
			q.Answer = "There is nothing to apply: no alternative won."
			return q
		}
	}
	for _, s := range p.Predictions {
		if v := quickest(s.orders()); v != nil && v.Predicted > 1 && !v.WithinError && v.Schedule != "" {
			q.Answer = "Prove the order first; a replay runs it and measures it:"
			q.Command = "mixdown replay " + p.inputArgs() + p.standIn() + " --schedule " + Quote(v.Schedule)
			if v.Apply != "" {
				q.Answer = "Prove the order first: a replay runs it and measures it. The second command then writes it for PyTorch."
				q.Command += "\n" + printable(v.Apply, 400)
			}
			return q
		}
	}
	if p.Analysis != nil {
		if s := sharesOf(p.Analysis); s.mostly() && s.wait > s.transfer {
			q.Answer = "First make ranks arrive together"
			if late := worstRank(p.Analysis); late != nil {
				q.Answer += fmt.Sprintf(": look at what rank %d does before it joins", late.Rank)
			}
			q.Answer, q.Section = q.Answer+". Backends and orders: measure them, then apply the one that won.", "stragglers"
			return q
		}
	}
	q.Answer = "Measure an alternative first; this page will then hold the rules to apply."
	return q
}

func (p *Page) worse() Question {
	return Question{
		Ask:     "Did a change make it worse?",
		Answer:  "One run can’t say. Compare it with the run before:",
		Command: "mixdown diff BEFORE " + p.inputArgs(),
	}
}

// inputArgs are the arguments of the command line that made the page, for others;
// "traces/" when they are not known.
func (p *Page) inputArgs() string {
	if p.Provenance.Args == nil {
		return "traces/"
	}
	var list []string
	for _, a := range p.Provenance.Args {
		list = append(list, Quote(a))
	}
	return cut(strings.Join(list, " "), 200)
}

// Quote writes an argument as a shell takes it.
func Quote(arg string) string {
	safe := arg != "" && !strings.ContainsFunc(arg, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./:=,@%+", r))
	})
	if safe {
		return arg
	}
	return "'" + strings.ReplaceAll(printable(arg, 1000), "'", `'\''`) + "'"
}
