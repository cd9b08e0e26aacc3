// Package plan is the command "mixdown plan".
package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/planning"
	"mixdown/replay/launch"
	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
)

// Options are the dependencies and flags of the command.
type Options struct {
	Streams *cli.Streams
	Plan    planning.Options
	Output  string
	Format  string
}

// NewCmd makes the command; run replaces what it does in tests.
func NewCmd(streams *cli.Streams, run func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: streams}
	if run == nil {
		run = Run
	}
	cmd := &cobra.Command{
		Use:   "plan INPUT... -o PLAN",
		Short: "Write the plan of a step: what every rank does, and which backend runs what",
		Long: `Rebuilds one training step from the traces and decides which backend runs
which operation, as "mixdown replay" does, and writes it to a file: one plan for
each variant, or the traced one without any. The backends need not be able to
run here.

A plan file is a mixdown.plan.v1.Experiment without settings (plan.proto), in
binary; its name ends in .plan by custom. --format json prints it instead, or as
well. "mixdown check" says whether such a plan can run; it reads both.`,
		Example: `  mixdown plan traces/ -o traced.plan
  mixdown plan traces/ --map nccl=gloo --mix 'all_to_all=openmpi,*=gloo' -o mixed.plan
  mixdown plan traces/ --format json | jq '.plans[0].workload.groups'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Plan.Input.Args = args
			return run(cmd.Context(), opts)
		},
	}
	opts.Plan.AddFlags(cmd)
	cli.FormatFlag(cmd, &opts.Format)
	cmd.Flags().StringVarP(&opts.Output, "output", "o", "", "`PLAN` file to write")
	return cmd
}

// Run makes the plans and writes them.
func Run(ctx context.Context, opts *Options) error {
	if err := cli.CheckFormat(opts.Format); err != nil {
		return err
	}
	if opts.Output == "" && opts.Format != cli.JSON {
		return fmt.Errorf("%w: -o PLAN is missing: name the file to write, or print with --format json", cli.ErrUsage)
	}
	made, err := opts.Plan.Make(ctx, opts.Streams, func(name string) error { return known(ctx, name) })
	if err != nil {
		return err
	}
	for _, d := range made.Diagnostics.List() {
		fmt.Fprintln(opts.Streams.Err, d)
	}
	plans := made.Variants
	if len(plans) == 0 {
		plans = []*planpb.Plan{made.Baseline}
	}
	data, err := mix.Encode(plans...)
	if err != nil {
		return err
	}
	if opts.Output != "" {
		if err := write(opts.Output, data); err != nil {
			return fmt.Errorf("write plan: %w", err)
		}
	}
	if opts.Format == cli.JSON {
		return writeJSON(opts, &planpb.Experiment{SchemaVersion: 1, Plans: plans})
	}
	return writeText(opts, made, plans)
}

// known accepts every backend that mixdown has a name for, here or not, and the
// modules beside the worker.
func known(ctx context.Context, name string) error {
	if slices.Contains(launch.KnownBackends(), name) {
		return nil
	}
	worker, err := launch.FindWorker()
	if err != nil {
		return fmt.Errorf("%w %q", launch.ErrUnknownBackend, name)
	}
	if _, err := worker.Check(ctx, name); errors.Is(err, launch.ErrUnknownBackend) {
		return err
	}
	return nil
}

// write puts the file in its place when it is whole.
func write(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it has its own name
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func writeJSON(opts *Options, exp *planpb.Experiment) error {
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(exp)
	if err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	var out bytes.Buffer // protojson varies its blanks on purpose
	if err := json.Indent(&out, data, "", " "); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	out.WriteByte('\n')
	if _, err := out.WriteTo(opts.Streams.Out); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return nil
}

func writeText(opts *Options, made *planning.Plans, plans []*planpb.Plan) error {
	step := made.Workload.Step
	if step == "" {
		step = "the whole trace"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s, %d ranks, %d communications\n", opts.Output, step, len(made.Workload.Programs), communications(made.Workload))
	for _, p := range plans {
		fmt.Fprintf(&b, "  plan %q on", p.Name)
		for i, name := range mix.Backends(p) {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, " %s", name)
		}
		b.WriteByte('\n')
	}
	if made.Stand != made.Traced {
		fmt.Fprintf(&b, "  %s stands in for %s, which the trace used\n", made.Stand, made.Traced)
	}
	_, err := b.WriteTo(opts.Streams.Out)
	return err
}

func communications(w *planpb.Workload) int {
	n := 0
	for _, program := range w.Programs {
		for _, t := range program.Tasks {
			if t.GetCommunication() != nil {
				n++
			}
		}
	}
	return n
}
