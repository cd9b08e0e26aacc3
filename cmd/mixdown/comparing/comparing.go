// Package comparing has the flags of verbs that compare two runs, about where
// results go: formats on stdout, files, a page, and what GitHub shows of a job.
package comparing

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"mixdown/analyze/export"
	"mixdown/analyze/gate/output"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/page"
)

// Options are the flags about where results go.
type Options struct {
	Format string
	// Outputs are FORMAT=FILE.
	Outputs  []string
	HTML     string // a file, "" for none
	Wide     bool   // of text
	Rows     int    // of the text of a diff
	NoGitHub bool
}

// AddFlags declares the flags that all verbs share.
func (o *Options) AddFlags(cmd *cobra.Command) {
	known := strings.Join(output.Formats(), ", ")
	f := cmd.Flags()
	f.StringVar(&o.Format, "format", cli.Text, "`FORMAT` of stdout: "+known)
	f.StringArrayVar(&o.Outputs, "output", nil, "`FORMAT=FILE` to write as well; repeatable")
	f.StringVar(&o.HTML, "html", "", "write a page for people to `FILE`; see mixdown help report")
	f.BoolVar(&o.NoGitHub, "no-github", false, "in GitHub Actions: no annotations on stderr and no step summary")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(output.Formats(), cobra.ShellCompDirectiveNoFileComp))
}

// Check refuses what can't be written before anything is read.
func (o *Options) Check() error {
	if err := output.Check(output.Format(o.Format)); err != nil {
		return fmt.Errorf("--format: %w", err)
	}
	for _, text := range o.Outputs {
		format, file, ok := strings.Cut(text, "=")
		if !ok || file == "" {
			return fmt.Errorf("%w: --output %q: expected FORMAT=FILE", cli.ErrUsage, text)
		}
		if err := output.Check(output.Format(format)); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
		if err := export.CheckFile(file); err != nil {
			return fmt.Errorf("--output %s: %w", text, err)
		}
	}
	if o.HTML != "" {
		if err := export.CheckFile(o.HTML); err != nil {
			return fmt.Errorf("--html %s: %w", o.HTML, err)
		}
	}
	return nil
}

// Write writes the document to stdout, in the way of show if it is not nil, to the
// files and, in GitHub Actions, where GitHub shows it.
func (o *Options) Write(streams *cli.Streams, d *output.Document, show func(io.Writer) error, from page.From, getenv func(string) string) error {
	opts := output.Options{Wide: o.Wide, Rows: o.Rows}
	if show == nil {
		show = func(w io.Writer) error {
			onScreen := opts
			onScreen.Look = streams.Look
			return output.Write(w, output.Format(o.Format), d, onScreen)
		}
	}
	if err := show(streams.Out); err != nil {
		return err
	}
	for _, text := range o.Outputs {
		format, file, _ := strings.Cut(text, "=")
		if err := export.WriteFile(file, func(w io.Writer) error { return output.Write(w, output.Format(format), d, opts) }); err != nil {
			return fmt.Errorf("--output %s: %w", text, err)
		}
	}
	if o.HTML != "" {
		if err := export.WriteFile(o.HTML, page.Comparison(d, from).Write); err != nil {
			return fmt.Errorf("--html %s: %w", o.HTML, err)
		}
	}
	if getenv("GITHUB_ACTIONS") != "true" || o.NoGitHub {
		return nil
	}
	if o.Format != string(output.GitHub) {
		if err := output.WriteAnnotations(streams.Err, d); err != nil {
			return err
		}
	}
	if file := getenv("GITHUB_STEP_SUMMARY"); file != "" {
		return appendSummary(file, d)
	}
	return nil
}

// stepLimit is what GitHub takes of a step's summary, in bytes, less some room.
const stepLimit = 1<<20 - 4<<10

// appendSummary adds the result to a step's summary, which other commands of the
// step may have begun.
func appendSummary(file string, d *output.Document) error {
	room := stepLimit
	if info, err := os.Stat(file); err == nil {
		room -= int(min(info.Size(), stepLimit))
	}
	if room < 4<<10 {
		return nil // more would lose what is there
	}
	var b bytes.Buffer
	if err := output.WriteSummary(&b, d, min(room, output.SummaryLimit)); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return fmt.Errorf("%w: GITHUB_STEP_SUMMARY: %w", export.ErrTarget, err)
	}
	if _, err := f.Write(b.Bytes()); err != nil {
		f.Close()
		return fmt.Errorf("%w: GITHUB_STEP_SUMMARY: %w", export.ErrTarget, err)
	}
	return f.Close()
}
