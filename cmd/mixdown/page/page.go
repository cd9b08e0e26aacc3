// Package page puts what the verbs found on the page of package html: it knows
// the command line, the files and their checksums, and the pictures of pipeline
// orders, which analysis packages don't.
package page

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mixdown/analyze/export"
	"mixdown/analyze/gate"
	"mixdown/analyze/gate/output"
	"mixdown/analyze/html"
	"mixdown/analyze/report"
	"mixdown/cmd/mixdown/input"
	"mixdown/cmd/mixdown/version"
	"mixdown/ingest/remote"
	"mixdown/replay/tune"
)

// From is where a page comes from.
type From struct {
	CommandLine []string // of the process, its name first
	Args        []string // the inputs among them
	Now         time.Time
}

// Process is where the pages of this process come from.
func Process(args []string) From {
	return From{CommandLine: append([]string{"mixdown"}, remote.RedactAll(os.Args[1:])...), Args: remote.RedactAll(args), Now: time.Now()}
}

// provenance is the page's.
func (f From) provenance() html.Provenance {
	p := html.Provenance{Tool: "mixdown " + version.String(), Args: f.Args, Made: f.Now}
	var words []string
	for i, a := range f.CommandLine {
		if i == 0 {
			a = filepath.Base(a)
		}
		words = append(words, html.Quote(a))
	}
	p.Command = strings.Join(words, " ")
	return p
}

// title names a page after its first input.
func title(what string, args []string) string {
	if len(args) == 0 {
		return "mixdown " + what
	}
	text := name(args[0])
	if len(args) > 1 {
		text += fmt.Sprintf(" and %d more", len(args)-1)
	}
	return text + ": mixdown " + what
}

// name is what an input is called in a title: the end of its path.
func name(arg string) string {
	path := filepath.Clean(arg)
	text := filepath.Base(path)
	if dir := filepath.Base(filepath.Dir(path)); dir != "." && dir != string(filepath.Separator) {
		text = dir + "/" + text
	}
	return report.Printable(text)
}

// Analysis is the page of an analysed run.
func Analysis(in *export.Input, from From) (*html.Page, error) {
	p := ofRun(in, from)
	return p, addOrders(p, in.Pipelines)
}

// ofRun is the page of an analysed run without the orders of its pipelines.
func ofRun(in *export.Input, from From) *html.Page {
	p := &html.Page{Title: title("analysis", from.Args), Provenance: from.provenance()}
	p.AddRun(html.Source{Run: in.Run, Match: in.Match, Clocks: in.Clocks, Analysis: in.Analysis}, html.TimelineOptions{})
	for _, r := range in.Run.Ranks {
		p.Provenance.Inputs = append(p.Provenance.Inputs, html.Input{
			Name: r.Source, About: fmt.Sprintf("rank %d, %d events", r.Rank, r.Read), SHA256: in.Checksums[r.Rank],
		})
	}
	return p
}

// Empty is a page to which results are added.
func Empty(from From) *html.Page {
	p := &html.Page{Title: title("report", from.Args), Provenance: from.provenance()}
	p.Provenance.Args = nil // results, not the traces that other commands take
	return p
}

// Comparison is the page of a gate or a diff.
func Comparison(d *output.Document, from From) *html.Page {
	p := &html.Page{Comparison: d, Provenance: from.provenance()}
	p.Title = title(d.Verb, []string{d.After.Source})
	if d.Before != nil {
		p.Title = fmt.Sprintf("%s against %s: mixdown %s", name(d.After.Source), name(d.Before.Source), d.Verb)
		p.Provenance.Inputs = append(p.Provenance.Inputs, html.Input{Name: d.Before.Source, About: "before: " + held(d.Before)})
	}
	p.Provenance.Inputs = append(p.Provenance.Inputs, html.Input{Name: d.After.Source, About: "after: " + held(d.After)})
	return p
}

// held is what a run holds.
func held(s *gate.Side) string {
	return fmt.Sprintf("%d of %d ranks, %d steps", s.Facts.RanksRead, s.Facts.WorldSize, s.Steps)
}

// Result is what a verb found of a run.
type Result struct {
	Verb  string
	Value any // has the fields of the verb's JSON
	// Job is the run, whose analysis stands beside the result; nil leaves it out.
	Job *input.Job
	// Checksums of the run's traces, by rank.
	Checksums map[int]string
	// Table is the tuning table that plans were chosen or predicted from, nil without
	// one, and TableFile its name.
	Table     *tune.Table
	TableFile string
	// Picture is an SVG of the orders that the result is of, nil when it has none.
	Picture []byte
}

// WriteResult writes the page of a result to a file.
func WriteResult(path string, r Result, from From) error {
	p := &html.Page{Provenance: from.provenance()}
	if r.Job != nil {
		in, err := analyse(r.Job)
		if err != nil {
			return err
		}
		in.Checksums = r.Checksums
		p = ofRun(in, from)
	}
	p.Title, p.PredictionFirst = title(r.Verb, from.Args), r.Verb == "simulate"
	data, err := json.Marshal(r.Value)
	if err != nil {
		return err
	}
	if _, err := p.AddResult(data); err != nil {
		return err
	}
	if r.Table != nil {
		p.Heat = Heat(r.Table, tune.Compare(r.Table, nil), r.TableFile)
		p.Provenance.Inputs = append(p.Provenance.Inputs, html.Input{Name: r.TableFile, About: "table of measurements"})
	}
	if r.Picture != nil {
		picture, err := html.NewPicture("orders", r.Picture)
		if err != nil {
			return err
		}
		p.Orders = append(p.Orders, picture)
	}
	return export.WriteFile(path, p.Write)
}

// analyse analyses a run for its page.
func analyse(job *input.Job) (*export.Input, error) {
	in := &export.Input{Run: job.Run, Match: job.Match, Clocks: job.Clocks}
	opts := report.Options{Clocks: job.Clocks, Critical: len(job.Run.Ranks) > 1, Pipelines: job.Found, NameSchedule: input.NameSchedule}
	if job.Found != nil {
		in.Pipelines = job.Found.Pipelines
	}
	var err error
	in.Analysis, err = report.Analyze(job.Run, job.Match, opts)
	return in, err
}
