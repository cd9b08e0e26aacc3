package gate

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"mixdown/analyze/export"
	"mixdown/analyze/gate"
	"mixdown/analyze/gate/output"
	"mixdown/cmd/mixdown/cli"
)

// OutputOptions are the flags about where results go.
type OutputOptions struct {
	Format string
	// Outputs are FORMAT=FILE.
	Outputs  []string
	Wide     bool // of text
	Explain  string
	NoGitHub bool
}

func (o *OutputOptions) addFlags(cmd *cobra.Command) {
	known := strings.Join(output.Formats(), ", ")
	f := cmd.Flags()
	f.StringVar(&o.Format, "format", cli.Text, "`FORMAT` of stdout: "+known)
	f.StringArrayVar(&o.Outputs, "output", nil, "`FORMAT=FILE` to write as well; repeatable")
	f.BoolVar(&o.Wide, "wide", false, "show all checks, all columns and whole names in text, in lines of any length")
	f.StringVar(&o.Explain, "explain", "", "instead, show every value and every step of the decision of the checks whose rule or name is `PATTERN` (* for all)")
	f.BoolVar(&o.NoGitHub, "no-github", false, "in GitHub Actions: no annotations on stderr and no step summary")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(output.Formats(), cobra.ShellCompDirectiveNoFileComp))
}

// check refuses what can't be written before anything is read.
func (o *OutputOptions) check() error {
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
	return nil
}

// write writes the result to stdout, to the files and, in GitHub Actions, where
// GitHub shows it.
func (o *OutputOptions) write(streams *cli.Streams, r *gate.Result, getenv func(string) string) error {
	if o.Explain != "" {
		if err := output.Explain(streams.Out, r, o.Explain); err != nil {
			return err
		}
	} else if err := output.Write(streams.Out, output.Format(o.Format), r, output.Options{Wide: o.Wide}); err != nil {
		return err
	}
	annotated := o.Format == string(output.GitHub)
	for _, text := range o.Outputs {
		format, file, _ := strings.Cut(text, "=")
		err := export.WriteFile(file, func(w io.Writer) error {
			return output.Write(w, output.Format(format), r, output.Options{Wide: o.Wide})
		})
		if err != nil {
			return fmt.Errorf("--output %s: %w", text, err)
		}
	}
	if getenv("GITHUB_ACTIONS") != "true" || o.NoGitHub {
		return nil
	}
	if !annotated {
		if err := output.WriteAnnotations(streams.Err, r); err != nil {
			return err
		}
	}
	if file := getenv("GITHUB_STEP_SUMMARY"); file != "" {
		return appendSummary(file, r)
	}
	return nil
}

// stepLimit is what GitHub takes of a step's summary, in bytes, less some room.
const stepLimit = 1<<20 - 4<<10

// appendSummary adds the result to a step's summary, which other commands of the
// step may have begun.
func appendSummary(file string, r *gate.Result) error {
	room := stepLimit
	if info, err := os.Stat(file); err == nil {
		room -= int(min(info.Size(), stepLimit))
	}
	if room < 4<<10 {
		return nil // more would lose what is there
	}
	var b bytes.Buffer
	if err := output.WriteSummary(&b, r, min(room, output.SummaryLimit)); err != nil {
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
