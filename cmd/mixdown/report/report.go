// Package report is the command "mixdown report".
package report

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"mixdown/analyze/export"
	"mixdown/analyze/html"
	"mixdown/analyze/report"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/page"
)

// The formats beside text and JSON.
const (
	formatHTML     = "html"
	formatMarkdown = "markdown"
)

// Options are the dependencies and flags of the command.
type Options struct {
	Streams *cli.Streams
	Results []string
	Format  string
	Out     string
	Rows    int
	From    page.From
}

// NewCmd makes the command; run replaces what it does in tests.
func NewCmd(streams *cli.Streams, run func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: streams}
	if run == nil {
		run = Run
	}
	cmd := &cobra.Command{
		Use:   "report RESULT...",
		Short: "A page of results for people: HTML in one file, or Markdown",
		Long: `Puts results on one page that can be forwarded: what "analyze", "replay" and
"simulate" print with --format json, and pictures of pipeline orders that
"simulate" and "schedule" draw with --svg. "mixdown analyze --html FILE" makes
the page from the traces, with their time line, which the JSON does not hold.

The page is one file. It loads nothing, needs no network, and lets nothing run
but its own script, named by hash in its content policy. Names from traces are
shown as text; their control characters are made visible.

  The answer      one sentence and three numbers: what was measured, else what
                  the traces say, else what was predicted
  Questions       six of them, with the command that would say more
  Speedup         each plan with its 95 % interval, the fidelity of the replay,
                  every iteration, the rules of each mix, the libraries
  Orders          who does what when, as traced and in other orders, with the
                  bubbles; memory against time
  Ranks           computation, exposed and hidden communication, copies, idle
  Communication   by group, operation and phase, then by size: what is exposed,
                  what is waiting and what transfer
  Stragglers      who kept others waiting, over all and by step
  Timeline        what each rank did when. Drag or the arrow keys move; Ctrl and
                  the wheel, a pinch, + and - zoom; Enter or a double click zooms
                  to what is marked; N and P mark the next and the one before;
                  lines join what is matched on other ranks. Of more than 250,000
                  events, short neighbours are drawn as one, and the page says so.
  Diagnostics     what had to be repaired, skipped, estimated or left open
  Provenance      program, command line, inputs and their checksums

What is not known is said to be so; it is never shown as 0. The page is light or
dark as the system is, or as its button says, and prints light.

--format json has schema_version, answer (sentence, and figures of label, value,
about) and questions (question, answer, command).`,
		Example: `  mixdown replay traces/ --map nccl=gloo --mix '*=openmpi' --format json > run7.json
  mixdown report run7.json -o run7.html
  mixdown report analysis.json run7.json orders.svg -o run7.html
  mixdown report run7.json --format markdown >> $GITHUB_STEP_SUMMARY`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Results, opts.From = args, page.Process(args)
			return run(cmd.Context(), opts)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.Format, "format", "", "output `FORMAT`: html, markdown, text or json; default by the ending of --output, else html")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{formatHTML, formatMarkdown, cli.Text, cli.JSON}, cobra.ShellCompDirectiveNoFileComp))
	f.StringVarP(&opts.Out, "output", "o", "", "write to `FILE` instead of standard output")
	f.IntVar(&opts.Rows, "rows", report.DefaultRows, "rows of every table in Markdown; negative shows all")
	return cmd
}

// format is the one asked for, or that of the file's ending.
func (o *Options) format() (string, error) {
	switch o.Format {
	case formatHTML, formatMarkdown, cli.Text, cli.JSON:
		return o.Format, nil
	case "":
	default:
		return "", fmt.Errorf("%w: --format %q: known are html, markdown, text, json", cli.ErrUsage, o.Format)
	}
	switch strings.ToLower(filepath.Ext(o.Out)) {
	case ".md", ".markdown":
		return formatMarkdown, nil
	case ".txt":
		return cli.Text, nil
	case ".json":
		return cli.JSON, nil
	}
	return formatHTML, nil
}

// Run reads the results and writes the page.
func Run(_ context.Context, opts *Options) error {
	format, err := opts.format()
	if err != nil {
		return err
	}
	if len(opts.Results) == 0 {
		return fmt.Errorf("%w: no result: name files that --format json wrote", cli.ErrUsage)
	}
	if opts.Out != "" {
		if err := export.CheckFile(opts.Out); err != nil {
			return fmt.Errorf("%w: --output %s: %w", cli.ErrUsage, opts.Out, err)
		}
	}
	p := page.Empty(opts.From)
	for _, name := range opts.Results {
		if err := opts.add(p, name); err != nil {
			return err
		}
	}
	write := func(w io.Writer) error { return opts.write(w, p, format) }
	if opts.Out == "" {
		err = write(opts.Streams.Out)
	} else {
		err = export.WriteFile(opts.Out, write)
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// maxResult bounds a result file, in bytes: they are hostile too.
const maxResult = 1 << 30

// add reads one file, JSON or SVG.
func (o *Options) add(p *html.Page, name string) error {
	r, close, err := o.open(name)
	if err != nil {
		return err
	}
	defer close()
	data, err := io.ReadAll(io.LimitReader(r, maxResult+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > maxResult {
		return fmt.Errorf("read %s: %w: more than %d bytes", name, html.ErrResult, maxResult)
	}
	sum := sha256.Sum256(data)
	in := html.Input{Name: name, About: "picture of orders", SHA256: hex.EncodeToString(sum[:])}
	if head := bytes.TrimSpace(data); bytes.HasPrefix(head, []byte("<")) {
		picture, err := html.NewPicture(name, data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		p.Orders = append(p.Orders, picture)
	} else {
		kind, err := p.AddResult(data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		in.About = "result of mixdown " + kind
	}
	p.Provenance.Inputs = append(p.Provenance.Inputs, in)
	return nil
}

func (o *Options) open(name string) (io.Reader, func(), error) {
	if name == "-" {
		return o.Streams.In, func() {}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", html.ErrResult, err)
	}
	return f, func() { f.Close() }, nil
}

func (o *Options) write(w io.Writer, p *html.Page, format string) error {
	switch format {
	case formatMarkdown:
		return page.WriteMarkdown(w, p, report.TextOptions{Rows: o.Rows})
	case cli.Text:
		return writeText(w, p)
	case cli.JSON:
		enc := json.NewEncoder(w)
		enc.SetIndent("", " ")
		return enc.Encode(struct {
			SchemaVersion int             `json:"schema_version"`
			Answer        html.Answer     `json:"answer"`
			Questions     []html.Question `json:"questions"`
		}{report.SchemaVersion, p.Answer(), p.Questions()})
	}
	return p.Write(w)
}

// writeText writes the answers for a terminal.
func writeText(w io.Writer, p *html.Page) error {
	out := report.NewPage(false)
	a := p.Answer()
	out.Linef("%s", a.Sentence)
	out.Headingf("Figures")
	for _, f := range a.Figures {
		out.Linef("  %s: %s (%s)", f.Label, f.Value, f.About)
	}
	for _, q := range p.Questions() {
		out.Headingf("%s", q.Ask)
		out.Linef("  %s", q.Answer)
		if q.Command != "" {
			out.Linef("  %s", q.Command)
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}
