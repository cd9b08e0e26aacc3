package launch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	"mixdown/replay/plan/planpb"
)

// ErrCannotResume: no kept run is of this experiment, on this machine.
var ErrCannotResume = errors.New("cannot resume")

// resume runs what is missing of an earlier run. The plans of each session took
// turns, so that the comparison stays one of iterations measured side by side; the
// data check is made again.
func (w Worker) resume(ctx context.Context, exp *planpb.Experiment, opts Options) (*Results, error) {
	k, err := findKept(opts.Resume, exp, opts.Starter == nil)
	if err != nil {
		return nil, err
	}
	opts.Resume = ""
	done := k.complete()
	rest := proto.Clone(exp).(*planpb.Experiment)
	// At least one is run: whether the data is right, and on which versions, is to
	// be known of this session.
	rest.Settings.Iterations = max(1, exp.Settings.Iterations-int32(done))
	rest.Settings.Seed = exp.Settings.Seed + uint64(done) // other orders of the plans
	results, err := w.Run(ctx, rest, opts)
	if err != nil {
		return nil, err
	}
	if err := sameBackends(k.Backends, results.Backends); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCannotResume, k.Dir, err)
	}
	for p := range results.Plans {
		results.Plans[p].prepend(k.Plans[p], int(exp.Settings.Iterations-rest.Settings.Iterations))
	}
	return results, nil
}

// prepend puts the first n iterations of an earlier run before these.
func (p *PlanResult) prepend(k KeptPlan, n int) {
	earlier, ranks := make([]int64, n), make([][]int64, len(p.Ranks))
	for i := range n {
		earlier[i] = k.Iterations[i]
		for worker, took := range k.Ranks[i] {
			ranks[worker] = append(ranks[worker], took)
		}
	}
	p.Iterations = append(earlier, p.Iterations...)
	for worker := range p.Ranks {
		p.Ranks[worker] = append(ranks[worker], p.Ranks[worker]...)
	}
}

// findKept looks below dir for the run of the experiment that came furthest. When
// there is none it says why the last one does not fit.
func findKept(dir string, exp *planpb.Experiment, here bool) (*Kept, error) {
	found, err := filepath.Glob(filepath.Join(dir, "run-*"))
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("%w: no run is kept in %s", ErrCannotResume, dir)
	}
	var best *Kept
	var why error
	for _, run := range found {
		k, err := ReadKept(run)
		if err == nil {
			err = k.fits(exp, here)
		}
		if err != nil {
			why = fmt.Errorf("%s: %w", run, err)
		} else if best == nil || k.complete() > best.complete() {
			best = k
		}
	}
	if best == nil {
		return nil, fmt.Errorf("%w: %w", ErrCannotResume, why)
	}
	return best, nil
}

// fits says why the run is not of this experiment, and of this machine when all workers
// are to be here. The number of iterations may differ.
func (k *Kept) fits(exp *planpb.Experiment, here bool) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	if here && k.Host != "" && k.Host != host {
		return fmt.Errorf("it ran on host %s, this is %s", k.Host, host)
	}
	a, b := proto.Clone(k.Experiment.Settings).(*planpb.Settings), proto.Clone(exp.Settings).(*planpb.Settings)
	a.Iterations, b.Iterations = 0, 0
	a.Seed, b.Seed = 0, 0
	if !proto.Equal(a, b) {
		return fmt.Errorf("it has other settings: {%v}, now {%v}", a, b)
	}
	if len(k.Experiment.Plans) != len(exp.Plans) {
		return fmt.Errorf("it has %d plans, now there are %d", len(k.Experiment.Plans), len(exp.Plans))
	}
	if old, now := environmentOf(k.Experiment), environmentOf(exp); old != now && old != "" && now != "" {
		return fmt.Errorf("it ran with another environment or other tuning files (%s, now %s)", old, now)
	}
	for p, plan := range exp.Plans {
		old, err := checksum(k.Experiment.Plans[p])
		if err != nil {
			return err
		}
		now, err := checksum(plan)
		if err != nil {
			return err
		}
		if old != now {
			return fmt.Errorf("plan %d, %q, is not the same as its %q (SHA-256 %x, %x)", p, plan.Name, k.Experiment.Plans[p].Name, now[:6], old[:6])
		}
	}
	return nil
}

// checksum is that of a plan, wherever its ranks run.
func checksum(p *planpb.Plan) ([sha256.Size]byte, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(placedPlan(p, nil))
	return sha256.Sum256(data), err
}

// sameBackends says what changed since the earlier run.
func sameBackends(old, now []*planpb.BackendInfo) error {
	versions := map[string]string{}
	for _, b := range old {
		versions[b.Name] = b.Version
	}
	for _, b := range now {
		if v, ok := versions[b.Name]; ok && v != b.Version {
			return fmt.Errorf("%s was version %s, now it is %s", b.Name, v, b.Version)
		}
	}
	return nil
}
