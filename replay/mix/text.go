package mix

import (
	"fmt"
	"io"
	"strings"
)

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Plan %q", r.Plan)
	if r.Mix != "" && r.Mix != r.Plan {
		fmt.Fprintf(&b, " (mix %q)", r.Mix)
	}
	if r.Ranks > 0 {
		fmt.Fprintf(&b, ": %s of %s on %s", countOf(r.Operations, "communication"), countOf(r.Ranks, "rank"), listOr(r.Backends, "no backend"))
	}
	b.WriteByte('\n')
	for _, list := range [][]Finding{r.Errors, r.Warnings} {
		for _, f := range list {
			b.WriteByte('\n')
			f.write(&b)
		}
	}
	if len(r.NotChecked) > 0 {
		b.WriteString("\nNot checked:\n")
		for _, g := range r.NotChecked {
			fmt.Fprintf(&b, "  %s  %s\n", g.Code, g.Why)
		}
	}
	b.WriteByte('\n')
	switch {
	case len(r.Errors) > 0:
		fmt.Fprintf(&b, "This plan must not run: %s, %s.\n", kindsOf(r.Errors, "error"), kindsOf(r.Warnings, "warning"))
	case len(r.Warnings) > 0:
		fmt.Fprintf(&b, "This plan can run: no errors, %s.\n", kindsOf(r.Warnings, "warning"))
	default:
		b.WriteString("This plan can run: no errors, no warnings.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// maxSteps bounds the steps of a circle that text shows.
const maxSteps = 12

func (f *Finding) write(b *strings.Builder) {
	word := "error"
	if f.Code[0] == 'W' {
		word = "warning"
	}
	fmt.Fprintf(b, "%s %s %s: %s", word, f.Code, f.Name, f.Message)
	if f.Count > 1 {
		fmt.Fprintf(b, " (and %d more like it)", f.Count-1)
	}
	b.WriteByte('\n')
	for i, s := range f.Cycle {
		if i == maxSteps {
			fmt.Fprintf(b, "  and %d more steps like these, back to the first\n", len(f.Cycle)-i)
			break
		}
		fmt.Fprintf(b, "  rank %d starts %s\n    only after  %s\n    because     %s\n", s.Rank, s.Then, s.First, s.Why)
	}
	if len(f.Cycle) == 0 {
		for _, o := range f.Operations {
			fmt.Fprintf(b, "  rank %d: %s\n", o.Rank, o)
		}
	} else if !f.Shortest {
		b.WriteString("  (a shorter circle may exist: the plan is too large to look for it everywhere)\n")
	}
	if f.Advice != "" {
		fmt.Fprintf(b, "  do: %s\n", f.Advice)
	}
}

// kindsOf counts kinds of findings.
func kindsOf(list []Finding, what string) string {
	if len(list) == 0 {
		return "no " + what + "s"
	}
	return countOf(len(list), what)
}

func listOr(names []string, none string) string {
	var list []string
	for _, n := range names {
		if n != "" {
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		return none
	}
	return strings.Join(list, ", ")
}
