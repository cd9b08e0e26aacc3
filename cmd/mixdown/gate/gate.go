// Package gate is the command "mixdown gate".
package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"mixdown/analyze/gate"
	"mixdown/analyze/gate/output"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/comparing"
	"mixdown/cmd/mixdown/input"
	"mixdown/cmd/mixdown/page"
)

// Options are the dependencies and flags of the command.
type Options struct {
	Streams *cli.Streams
	// Now decides which waivers hold; Getenv tells whether GitHub runs the gate.
	Now    func() time.Time
	Getenv func(string) string

	// Input is how runs are read; its arguments are not used.
	Input               input.Options
	Baseline, Candidate string
	Policy              string
	Rules               []string
	Output              comparing.Options
	Explain             string
	AllowInconclusive   bool
	DryRun              bool
}

// NewCmd makes the command and those below it; run replaces what the gate itself
// does in tests.
func NewCmd(streams *cli.Streams, run func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: streams, Now: time.Now, Getenv: os.Getenv}
	if run == nil {
		run = Run
	}
	cmd := &cobra.Command{
		Use:   "gate",
		Short: "Fail when a run is worse than a baseline: rules, statistics and outputs for CI",
		Long: `Holds a run against a baseline by the rules of a policy and ends with an exit
code that CI understands: 0 within the limits, 1 a regression, 4 the runs are not
comparable or their steps can't tell.

Steps are the samples. A rule such as "exposed_comm[group=dp] +5% and +2ms" is
breached when the change reaches both limits and a Mann-Whitney U test, corrected
for all rules, says that it is no chance. Every breach names its cause and the
command that shows it.

The baseline and the candidate are each a folder, file or quoted glob of traces, a
dataset, a record of "mixdown gate baseline save", or the result of "mixdown replay
--format json". "mixdown help gates" explains policies, metrics and outputs.`,
		Example: `  mixdown gate init --baseline main/ -o gate.yaml
  mixdown gate baseline save main/ -o base.json
  mixdown gate --baseline base.json --candidate branch/ --policy gate.yaml
  mixdown gate --baseline main/ --candidate branch/ --rule 'step +5% and +2ms'
  mixdown gate --baseline base.json --candidate branch/ --policy gate.yaml --output junit=gate.xml --output sarif=gate.sarif
  mixdown gate --candidate replay.json --rule 'speedup[variant=*] >= 1.1' --rule 'fidelity within 0.2'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), opts) },
	}
	opts.Input.AddFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&opts.Baseline, "baseline", "", "`RUN` to compare with")
	f.StringVar(&opts.Candidate, "candidate", "", "`RUN` to judge")
	f.StringVar(&opts.Policy, "policy", "", "`FILE` with the rules")
	f.StringArrayVar(&opts.Rules, "rule", nil, "a `RULE` beside those of the policy, or without one; repeatable")
	f.BoolVar(&opts.AllowInconclusive, "allow-inconclusive", false, "exit with 0 where the code would be 4")
	f.BoolVar(&opts.DryRun, "dry-run", false, "write everything, and exit with 0 whatever the outcome")
	opts.Output.AddFlags(cmd)
	f.BoolVar(&opts.Output.Wide, "wide", false, "show all checks, all columns and whole names in text, in lines of any length")
	f.StringVar(&opts.Explain, "explain", "", "instead, show every value and every step of the decision of the checks whose rule or name is `PATTERN` (* for all)")
	cmd.AddCommand(newInitCmd(streams, nil), newBaselineCmd(streams))
	return cmd
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%w: unknown argument %q for %q: name runs with --baseline and --candidate", cli.ErrUsage, args[0], cmd.CommandPath())
	}
	return nil
}

// Run gates the candidate and writes the result everywhere it is wanted. The error
// is gate.ErrRegression or gate.ErrInconclusive when the gate does not pass.
func Run(ctx context.Context, opts *Options) error {
	if opts.Candidate == "" {
		return fmt.Errorf("%w: --candidate is missing: name the run to judge", cli.ErrUsage)
	}
	if opts.Input.ExecutionTraces != "" {
		return fmt.Errorf("%w: --execution-traces: they are of one run: give each run's to mixdown ingest and gate the datasets", cli.ErrUsage)
	}
	if err := opts.Output.Check(); err != nil {
		return err
	}
	policy, err := opts.policy()
	if err != nil {
		return err
	}
	var baseline *gate.Record
	var strict []error
	load := func(flag, arg string) (*gate.Record, error) {
		r, refused, err := loadRecord(ctx, opts.Streams, opts.Input, []string{arg})
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		if refused != nil {
			strict = append(strict, fmt.Errorf("--%s: %w", flag, refused))
		}
		return r, nil
	}
	if opts.Baseline != "" {
		if baseline, err = load("baseline", opts.Baseline); err != nil {
			return err
		}
	}
	candidate, err := load("candidate", opts.Candidate)
	if err != nil {
		return err
	}
	result, err := gate.Evaluate(baseline, candidate, policy, opts.Now())
	if errors.Is(err, gate.ErrNoBaseline) {
		return fmt.Errorf("%w: name it with --baseline", err)
	}
	if err != nil {
		return err
	}
	if err := opts.write(result, baseline, candidate, policy.Samples.Warmup); err != nil {
		return err
	}
	if len(strict) > 0 {
		return errors.Join(strict...)
	}
	err = result.Err()
	if opts.DryRun && err != nil || opts.AllowInconclusive && (errors.Is(err, gate.ErrInconclusive) || errors.Is(err, gate.ErrNotComparable)) {
		fmt.Fprintf(opts.Streams.Err, "mixdown: %v (allowed)\n", err)
		return nil
	}
	return err
}

// write writes the result everywhere.
func (o *Options) write(r *gate.Result, baseline, candidate *gate.Record, warmup int) error {
	d := output.OfGate(r)
	d.AddRecords(baseline, candidate, warmup)
	var show func(io.Writer) error
	if o.Explain != "" {
		show = func(w io.Writer) error { return output.Explain(w, d, o.Explain) }
	}
	return o.Output.Write(o.Streams, d, show, page.Process([]string{o.Candidate}), o.Getenv)
}

// policy reads the policy and the rules of the command line.
func (o *Options) policy() (*gate.Policy, error) {
	if o.Policy == "" && len(o.Rules) == 0 {
		return nil, fmt.Errorf("%w: no rules: give --policy FILE (\"mixdown gate init\" writes one) or --rule", cli.ErrUsage)
	}
	p := gate.DefaultPolicy()
	if o.Policy != "" {
		f, err := os.Open(o.Policy)
		if err != nil {
			return nil, fmt.Errorf("%w: --policy: %w", cli.ErrUsage, err)
		}
		defer f.Close()
		if p, err = gate.ReadPolicy(f, o.Policy); err != nil {
			return nil, err
		}
	}
	for _, text := range o.Rules {
		if err := p.Add(text); err != nil {
			return nil, fmt.Errorf("--rule: %w", err)
		}
	}
	return p, nil
}
