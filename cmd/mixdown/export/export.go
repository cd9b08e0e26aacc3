// Package export is the command "mixdown export".
package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mixdown/analyze/export"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/version"
	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/schedule"
	"mixdown/replay/tune"
	"mixdown/replay/tune/exports"
)

// Options are the dependencies and flags of the command.
type Options struct {
	Streams *cli.Streams
	Inputs  []string
	To      string
	Output  string
	Mix     string

	Channels int
	Base     string
	Device   string
	PlanName string
}

// pipeline is the format for schedules.
const pipeline = "torch-pipeline-csv"

// NewCmd makes the command; run replaces what it does in tests.
func NewCmd(streams *cli.Streams, run func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: streams}
	if run == nil {
		run = Run
	}
	var formats strings.Builder
	names := []string{pipeline}
	for _, f := range exports.Formats() {
		fmt.Fprintf(&formats, "  %-18s  %s\n", f.Name, f.About)
		names = append(names, f.Name)
	}
	fmt.Fprintf(&formats, "  %-18s  order of a schedule, as torch.distributed.pipelining loads it\n", pipeline)
	cmd := &cobra.Command{
		Use:   "export INPUT... --to FORMAT",
		Short: "Write files that apply a result: tuning files of libraries, pipeline orders, inputs of other tools",
		Long: `Writes what is known in the form that a library or another tool reads. INPUT is a
table of measurements (of each library the settings that win, with the measured
crossings as limits), a plan, or for ` + pipeline + ` a schedule as
"mixdown schedule" takes it. --mix takes a mix instead of INPUT.

What a library would misread is refused before anything is written. How to apply
the files, and how to see that they took effect, is said on stderr.

FORMAT is one of
` + formats.String(),
		Example: `  mixdown export here.tune --to openmpi-rules-v1 -o rules.txt
  mixdown export here.tune --to mpich --base /usr/lib/x86_64-linux-gnu/libmpich.so -o mpich.json
  mixdown export h100.tune --to nccl-tuner -o nccl_tuner.conf
  mixdown export --mix 'all_reduce@<64KiB=nccl:tree/ll/ch=4,all_reduce=nccl:ring/simple/ch=16' --to nccl-tuner
  mixdown export traced.plan --to param -o param/
  mixdown export breadth-first:ranks=4,microbatches=8,loops=4 --to ` + pipeline,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Inputs = args
			return run(cmd.Context(), opts)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.To, "to", "", "`FORMAT` to write")
	f.StringVarP(&opts.Output, "output", "o", "", "`FILE` to write, or folder where there are several; default stdout")
	f.StringVar(&opts.Mix, "mix", "", "a mix instead of INPUT; backends may have settings, as nccl:ring/ll/ch=8")
	f.IntVar(&opts.Channels, "channels", 0, "NCCL: channels where a variant names none")
	f.StringVar(&opts.Base, "base", "", "MPICH: `FILE` with the tree to edit, generic.json or libmpich.so; default the installed library")
	f.StringVar(&opts.Device, "device", "", "UCC, with --mix: where the buffers are, host or gpu")
	f.StringVar(&opts.PlanName, "plan", "", "of a plan file with several: the `NAME` of the one to export")
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// Run exports.
func Run(_ context.Context, opts *Options) error {
	if err := opts.check(); err != nil {
		return err
	}
	if opts.To == pipeline {
		return opts.schedule()
	}
	in, err := opts.input()
	if err != nil {
		return err
	}
	out, err := exports.Write(opts.To, in)
	if err != nil {
		return err
	}
	if err := opts.write(out); err != nil {
		return err
	}
	opts.tell(out)
	return nil
}

func (o *Options) check() error {
	switch {
	case o.To == "":
		return fmt.Errorf("%w: --to FORMAT is missing: see mixdown export --help for the formats", cli.ErrUsage)
	case o.Mix != "" && len(o.Inputs) > 0:
		return fmt.Errorf("%w: INPUT or --mix, not both", cli.ErrUsage)
	case o.Mix == "" && len(o.Inputs) == 0:
		return fmt.Errorf("%w: no input: name a table, a plan or a schedule, or give --mix", cli.ErrUsage)
	case o.Channels < 0 || o.Channels > 64:
		return fmt.Errorf("%w: --channels %d: expected 1 to 64", cli.ErrUsage, o.Channels)
	case o.Device != "" && o.Device != tune.Host && o.Device != tune.GPU:
		return fmt.Errorf("%w: --device %q: known are host, gpu", cli.ErrUsage, o.Device)
	case o.To == pipeline && (len(o.Inputs) != 1 || o.Mix != ""):
		return fmt.Errorf("%w: --to %s takes one schedule, for example 1f1b:ranks=4,microbatches=8", cli.ErrUsage, pipeline)
	case o.To != pipeline && !slices.ContainsFunc(exports.Formats(), func(f exports.Format) bool { return f.Name == o.To }):
		_, err := exports.Write(o.To, exports.Input{}) // says what is known
		return err
	}
	return nil
}

// schedule writes the order of a schedule. What PyTorch would not load is refused.
func (o *Options) schedule() error {
	spec, err := schedule.Parse(o.Inputs[0])
	if err != nil {
		return err
	}
	order, err := spec.Order()
	if err != nil {
		return err
	}
	order = order.Numbered()
	var b strings.Builder
	if err := order.WriteCSV(&b); err != nil {
		return err
	}
	again, err := schedule.ReadCSV(strings.NewReader(b.String()))
	if err != nil {
		return err
	}
	if _, err := schedule.Evaluate(again, spec.Costs); err != nil {
		return fmt.Errorf("the order can't run: %w", err)
	}
	if again.Copies() > 1 {
		return fmt.Errorf("%s: %w: PyTorch's runtime takes every stage to be on one rank", spec.Name, exports.ErrInexpressible)
	}
	out := &exports.Output{
		Files: []exports.File{{Name: "order.csv", Data: []byte(b.String())}},
		Apply: []string{"schedule._load_csv(\"FILE\", format=\"compute_only\") of a torch.distributed.pipelining schedule of kind PipelineScheduleMulti"},
		Proof: []string{"schedule._dump_csv(\"again.csv\", format=\"compute_only\") writes the same rows"},
	}
	if err := o.write(out); err != nil {
		return err
	}
	o.tell(out)
	return nil
}

// input reads what is exported.
func (o *Options) input() (exports.Input, error) {
	in := exports.Input{Channels: o.Channels, Device: o.Device, Version: version.Number}
	if o.To == "mpich" {
		var err error
		if in.Base, err = o.base(); err != nil {
			return in, err
		}
	}
	if o.Mix != "" {
		m, err := exports.ParseMix(o.Mix)
		in.Mix = &m
		return in, err
	}
	if len(o.Inputs) == 1 {
		data, err := os.ReadFile(o.Inputs[0])
		if err != nil {
			return in, err
		}
		if _, err := tune.Decode(data); err != nil {
			if exp, err := mix.Decode(data); err == nil {
				return o.plan(in, exp)
			}
			return in, fmt.Errorf("%s: neither a table of measurements nor a plan: %w", o.Inputs[0], err)
		}
	}
	in.Table = &tune.Table{}
	for _, name := range o.Inputs {
		t, err := tune.Read(name)
		if err != nil {
			return in, err
		}
		if err := in.Table.Merge(t); err != nil {
			return in, err
		}
	}
	return in, nil
}

// plan takes one plan of a file.
func (o *Options) plan(in exports.Input, exp *planpb.Experiment) (exports.Input, error) {
	if o.PlanName == "" {
		in.Plan = exp.Plans[0]
		return in, nil
	}
	var names []string
	for _, p := range exp.Plans {
		if p.Name == o.PlanName {
			in.Plan = p
			return in, nil
		}
		names = append(names, p.Name)
	}
	return in, fmt.Errorf("%w: --plan %q: the file has %q", cli.ErrUsage, o.PlanName, names)
}

// libraries are where an installed MPICH may be.
var libraries = []string{"/usr/lib/*/libmpich.so*", "/usr/lib/libmpich.so*", "/usr/lib64/mpich/lib/libmpi.so*", "/usr/local/lib/libmpi.so*"}

// base reads the tree to edit.
func (o *Options) base() ([]byte, error) {
	if o.Base != "" {
		return os.ReadFile(o.Base)
	}
	for _, pattern := range libraries {
		found, _ := filepath.Glob(pattern)
		for _, name := range found {
			if data, err := os.ReadFile(name); err == nil && strings.Contains(string(data), "algorithm=MPIR_Allreduce_intra") {
				return data, nil
			}
		}
	}
	return nil, nil // what is missing is said with what it is for
}

// write writes the files: one where it is asked for, several into a folder.
func (o *Options) write(out *exports.Output) error {
	if o.Output == "" {
		if len(out.Files) > 1 {
			return fmt.Errorf("%w: %s is %d files: name a folder with -o", cli.ErrUsage, o.To, len(out.Files))
		}
		_, err := o.Streams.Out.Write(out.Files[0].Data)
		return err
	}
	info, err := os.Stat(o.Output)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	folder := len(out.Files) > 1 || strings.HasSuffix(o.Output, "/") || err == nil && info.IsDir()
	if !folder {
		return writeFile(o.Output, out.Files[0].Data)
	}
	if err := os.MkdirAll(o.Output, 0o755); err != nil {
		return fmt.Errorf("%w: %w", export.ErrTarget, err)
	}
	for _, f := range out.Files {
		if err := writeFile(filepath.Join(o.Output, f.Name), f.Data); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(name string, data []byte) error {
	err := export.WriteFile(name, func(w io.Writer) error { _, err := w.Write(data); return err })
	if err != nil {
		return fmt.Errorf("-o %s: %w", name, err)
	}
	return nil
}

// tell says how to apply what was written, and how to see that it took effect.
func (o *Options) tell(out *exports.Output) {
	w := o.Streams.Err
	for _, warning := range out.Warnings {
		fmt.Fprintf(w, "warning: %v\n", warning)
	}
	file := o.Output
	if file == "" {
		file = out.Files[0].Name
	}
	if abs, err := filepath.Abs(file); err == nil && o.Output != "" {
		file = abs
	}
	for _, a := range out.Apply {
		fmt.Fprintf(w, "apply: %s\n", place(a, file))
	}
	for _, p := range out.Proof {
		fmt.Fprintf(w, "proof: %s\n", place(p, file))
	}
}

// placeholder is a word that stands for what was written; names of variables that
// end like it are none.
var placeholder = regexp.MustCompile(`\b(FILE|DIR)\b`)

func place(text, file string) string {
	return placeholder.ReplaceAllLiteralString(text, file)
}
