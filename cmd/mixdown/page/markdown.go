package page

import (
	"fmt"
	"io"
	"strings"

	"mixdown/analyze/html"
	"mixdown/analyze/report"
)

// WriteMarkdown writes the page's answer and tables in the dialect of GitHub, for
// an issue or the summary of a CI job. Names are escaped.
func WriteMarkdown(w io.Writer, p *html.Page, opts report.TextOptions) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n**%s**\n\n", escaped(p.Title), escaped(p.Answer().Sentence))
	row(&b, "", "", "")
	row(&b, "---", "---", "---")
	for _, f := range p.Answer().Figures {
		row(&b, escaped(f.Label), "**"+escaped(f.Value)+"**", escaped(f.About))
	}
	for _, q := range p.Questions() {
		fmt.Fprintf(&b, "\n- **%s** %s", escaped(q.Ask), escaped(q.Answer))
		if q.Command != "" {
			b.WriteString(" " + escaped(q.Command))
		}
	}
	b.WriteString("\n")
	for _, r := range p.Replays {
		markdownReplay(&b, r)
	}
	for _, s := range p.Predictions {
		markdownOrders(&b, s)
	}
	markdownInputs(&b, p)
	if p.Analysis != nil {
		b.WriteString("\n")
		if err := p.Analysis.WriteMarkdown(&b, opts); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func markdownReplay(b *strings.Builder, r *html.Replay) {
	b.WriteString("\n## Measured speedup\n\n")
	row(b, "plan", "step, median", "speedup", "95 % interval", "n", "data", "mix")
	row(b, "---", "---:", "---:", "---:", "---:", "---", "---")
	plan := func(v *html.Plan, speedup, interval string) {
		data := "verified"
		if !v.Verified {
			data = "**not verified**"
		}
		row(b, escaped(v.Name), report.Duration(v.Median), speedup, interval, fmt.Sprint(len(v.Iterations)), data, escaped(v.Mix))
	}
	plan(&r.Baseline, "1", "")
	for i := range r.Variants {
		v := &r.Variants[i]
		plan(v, fmt.Sprintf("%.3f", v.Speedup), fmt.Sprintf("%.3f to %.3f", v.CI95[0], v.CI95[1]))
	}
	if f := r.Baseline.Fidelity; f != nil && f.TraceStep > 0 {
		fmt.Fprintf(b, "\nFidelity %.2f: the unchanged plan took %s, the traced step %s.\n", f.Ratio, report.Duration(f.ReplayedStep), report.Duration(f.TraceStep))
	}
	if r.Device == "host" {
		b.WriteString("\nMeasured in host memory: this says nothing about GPUs.\n")
	}
	markdownFaults(b, r.Diagnostics)
}

func markdownOrders(b *strings.Builder, s *html.Prediction) {
	b.WriteString("\n## Predicted\n\nNothing was run.\n\n")
	row(b, "order or mix", "step", "speedup", "activations", "bubble", "remark")
	row(b, "---", "---:", "---:", "---:", "---:", "---")
	order := func(o *html.Order, speedup, remark string) {
		step, memory, bubble := o.Step, fmt.Sprintf("%.2fx", o.Memory), fmt.Sprintf("%.1f %%", 100*o.Bubble)
		if len(o.WhatIfs) > 0 && o.Memory == 0 {
			memory = "-"
		}
		if o.MixStep != nil {
			step, memory, bubble = *o.MixStep, "", ""
		}
		if o.WithinError {
			remark = "within the simulation's error"
		}
		row(b, escaped(o.Name), report.Duration(step), speedup, memory, bubble, remark)
	}
	if s.Baseline != nil {
		order(s.Baseline, "1", "as traced, simulated")
	}
	for i := range s.Variants {
		order(&s.Variants[i], fmt.Sprintf("%.3f", s.Variants[i].Predicted), "")
	}
	if s.Baseline != nil && s.Baseline.Fidelity != nil {
		f := s.Baseline.Fidelity
		fmt.Fprintf(b, "\nFidelity %.3f: the traced order simulated takes %s, in the trace it took %s.\n", f.Ratio, report.Duration(f.SimulatedStep), report.Duration(f.TraceStep))
	}
	if w := s.Workload; w != nil {
		fmt.Fprintf(b, "\nFidelity %.3f: the traced step simulated takes %s, in the trace it took %s.\n", w.Fidelity.Ratio, report.Duration(w.Fidelity.SimulatedStep), report.Duration(w.Fidelity.TraceStep))
	}
	markdownFaults(b, s.Diagnostics)
}

func markdownFaults(b *strings.Builder, list []report.Diagnostic) {
	for _, d := range list {
		fmt.Fprintf(b, "\n- %s", escaped(d.String()))
	}
	if len(list) > 0 {
		b.WriteString("\n")
	}
}

func markdownInputs(b *strings.Builder, p *html.Page) {
	b.WriteString("\n## Provenance\n\n")
	fmt.Fprintf(b, "- %s\n- %s\n", escaped(p.Provenance.Tool), escaped(p.Provenance.Command))
	for _, in := range p.Provenance.Inputs {
		fmt.Fprintf(b, "- %s, %s", escaped(in.Name), escaped(in.About))
		if in.SHA256 != "" {
			fmt.Fprintf(b, ", SHA-256 %s", escaped(in.SHA256))
		}
		b.WriteString("\n")
	}
}

func row(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// escaped makes text safe in Markdown: no character of it is markup or HTML, and
// no link is made of it.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range report.Printable(s) {
		switch {
		case strings.ContainsRune("<>&@:", r):
			fmt.Fprintf(&b, "&#%d;", r)
		case strings.ContainsRune("\\`*_{}[]()#+!|~$", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return strings.ReplaceAll(b.String(), "www.", "www&#46;")
}
