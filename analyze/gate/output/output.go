package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"mixdown/analyze/gate"
	"mixdown/analyze/report"
)

// What callers can ask for that doesn't exist.
var (
	ErrFormat = errors.New("no such format")
	ErrCheck  = errors.New("no such check")
)

// Format is a way to write a result.
type Format string

// The formats.
const (
	Text       Format = "text"
	JSON       Format = "json"
	Markdown   Format = "markdown"
	JUnit      Format = "junit"
	SARIF      Format = "sarif"
	GitHub     Format = "github"
	Benchfmt   Format = "benchfmt"
	Benchmark  Format = "github-action-benchmark"        // customSmallerIsBetter
	BenchmarkB Format = "github-action-benchmark-bigger" // customBiggerIsBetter
)

// Options are about text. The zero value is ready.
type Options struct {
	// Wide shows whole names, all columns and all checks, in lines of any length.
	Wide bool
	// Rows of the table of operations of a diff; 0 means diff.DefaultRows, negative all.
	Rows int
	// Look of text: columns and characters.
	Look report.Look
}

// formats in the order of help; text has options, so it has no function here.
var formats = []struct {
	format Format
	write  func(io.Writer, *Document) error
}{
	{Text, nil}, {JSON, writeJSON}, {Markdown, writeMarkdown}, {JUnit, writeJUnit}, {SARIF, writeSARIF},
	{GitHub, WriteAnnotations}, {Benchfmt, writeBenchfmt}, {Benchmark, writeSmaller}, {BenchmarkB, writeBigger},
}

// Formats lists all formats.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, string(f.format))
	}
	return names
}

// Check refuses formats that don't exist.
func Check(f Format) error {
	for _, known := range formats {
		if known.format == f {
			return nil
		}
	}
	return fmt.Errorf("%w: %q: known are %s", ErrFormat, f, strings.Join(Formats(), ", "))
}

// Write writes the document.
func Write(w io.Writer, f Format, r *Document, opts Options) error {
	for _, known := range formats {
		if known.format != f {
			continue
		}
		write := known.write
		if write == nil {
			write = func(w io.Writer, d *Document) error { return d.text(w, opts) }
		}
		if err := write(w, r); err != nil {
			return fmt.Errorf("write %s: %w", f, err)
		}
		return nil
	}
	return Check(f)
}

func writeJSON(w io.Writer, r *Document) error { return encode(w, r.value) }

func encode(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// message is what a check says in one or two sentences.
func message(c *gate.Check) string {
	text := c.Reason
	if text == "" {
		text = string(c.Outcome)
	}
	if c.Breached() && c.Limit != "" {
		text += "; the limit is " + c.Limit
	}
	if c.Cause != nil && c.Cause.Text != "" {
		text += "; cause: " + c.Cause.Text
	}
	if c.Waiver != nil {
		text += "; " + *c.Waiver
	}
	return text
}

// advice is the command that shows more, "" when there is none.
func advice(c *gate.Check) string {
	if c.Cause == nil {
		return ""
	}
	return c.Cause.Command
}

// where is what a check is about beside its metric: the values of its labels.
func where(c *gate.Check) string {
	var parts []string
	for _, l := range []gate.Label{gate.ByRank, gate.ByGroup, gate.ByOp, gate.BySize, gate.ByPhase, gate.ByVariant} {
		switch v, ok := c.Labels[l]; {
		case ok && l == gate.ByRank:
			parts = append(parts, "rank "+v)
		case ok:
			parts = append(parts, v)
		}
	}
	return strings.Join(parts, " ")
}

// Told says whether a check is more than a row of a table: what was breached and
// what can't be told.
func Told(c *gate.Check) bool { return c.Breached() || c.Outcome == gate.Inconclusive }

// significance is the p-value for tables.
func significance(c *gate.Check) string {
	p := c.PAdjusted
	if p == nil {
		p = c.P // of a diff, which corrects for nothing
	}
	switch {
	case p == nil:
		return ""
	case *p < 0.0001:
		return "<0.0001"
	}
	return fmt.Sprintf("%.4f", *p)
}

// figures are the cells that tables share: baseline, candidate, change, interval.
func figures(c *gate.Check) (before, after, change, interval string) {
	if c.Baseline != nil && c.Baseline.N > 0 {
		before = c.Unit.Format(c.Baseline.Median)
	}
	if c.Candidate != nil && c.Candidate.N > 0 {
		after = c.Unit.Format(c.Candidate.Median)
	}
	if c.Change != nil {
		change = c.Unit.Signed(*c.Change)
		if c.Relative != nil {
			change = fmt.Sprintf("%+.1f %%", 100**c.Relative)
		}
	}
	if c.Low != nil && c.High != nil {
		if c.Change != nil {
			interval = c.Unit.Signed(*c.Low) + " .. " + c.Unit.Signed(*c.High)
		} else {
			interval = c.Unit.Format(*c.Low) + " .. " + c.Unit.Format(*c.High)
		}
	}
	return before, after, change, interval
}

// steps is how many samples a check had: "10, 12".
func steps(c *gate.Check) string {
	switch {
	case c.Candidate == nil:
		return ""
	case c.Baseline == nil:
		return fmt.Sprint(c.Candidate.N)
	}
	return fmt.Sprintf("%d, %d", c.Baseline.N, c.Candidate.N)
}
