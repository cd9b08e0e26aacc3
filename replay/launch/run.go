package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/proto"

	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
)

// ErrFailed: the replay failed, timed out, or a worker died.
var ErrFailed = errors.New("replay failed")

// Options of running an experiment. The zero value is ready.
type Options struct {
	// Dir is where the run's files go; "" makes a temporary folder that is
	// removed when the run succeeds.
	Dir string
	// Timeout ends the run when no worker makes progress for so long. 0 means
	// DefaultTimeout.
	Timeout time.Duration
	// Resume is the Dir of an earlier run of the same experiment: the iterations that
	// all workers completed there are not run again. ErrCannotResume when none
	// fits. "" begins anew.
	Resume string
	// Capabilities is what the check of the plans knows of backends; nil means
	// mix.Known.
	Capabilities *mix.Capabilities
	// Checked, when set, is called with what the check of each plan found, by its number
	// in the experiment, before anything is started.
	Checked func(plan int, r *mix.Report)
	// Progress, when set, is called now and then.
	Progress func(Progress)
	// Iteration, when set, is called for every timed iteration of every worker once
	// all is done, a worker's in their order; its error fails the run. Iterations of
	// an earlier run that Resume takes up are not among them.
	Iteration func(worker int, it *planpb.Iteration) error
	// Starter starts the workers; nil starts them on this host.
	Starter Starter
}

// DefaultTimeout is how long workers may make no progress at all.
const DefaultTimeout = 60 * time.Second

// Progress is how far a run has come.
type Progress struct {
	State           State // of the slowest worker
	Iteration, Last int   // of the timed iterations
}

// poll is how often the workers are looked at.
const poll = 20 * time.Millisecond

// settle is how long a killed process may take to be gone.
const settle = 200 * time.Millisecond

// firstGone watches for the first worker whose process is gone without a word;
// -1 when none is within the time to settle.
func (r *running) firstGone() int {
	for deadline := time.Now().Add(settle); ; time.Sleep(time.Millisecond) {
		for i := range r.workers() {
			if r.isGone(i) {
				return i
			}
		}
		if time.Now().After(deadline) {
			return -1
		}
	}
}

// isGone says whether worker i ended without leaving word in the control file.
func (r *running) isGone(i int) bool {
	s := r.crew.Status(i)
	return s.State != NotStarted && s.State < Finished && !lives(r.crew.Process(i)) && r.crew.Status(i).State == s.State
}

// Run executes an experiment: one worker for each program of its plans. A plan
// that can deadlock is refused before anything is started.
func (w Worker) Run(ctx context.Context, exp *planpb.Experiment, opts Options) (*Results, error) {
	var backends []string
	for _, p := range exp.Plans {
		backends = append(backends, mix.Backends(p)...)
	}
	launcher, err := LauncherFor(backends)
	if err != nil {
		return nil, err
	}
	exp = placed(exp, launcher, opts.Starter == nil)
	if opts.Resume != "" {
		return w.resume(ctx, exp, opts)
	}
	for i, p := range exp.Plans {
		r := mix.Inspect(p, mix.CheckOptions{Capabilities: opts.Capabilities})
		if err := r.Err(); err != nil {
			return nil, fmt.Errorf("plan %q: %w", p.Name, err)
		}
		if opts.Checked != nil {
			opts.Checked(i, r)
		}
	}
	dir, err := runDir(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("%w: make the run's folder: %w", ErrFailed, err)
	}
	r := &running{worker: w, exp: exp, dir: dir, launcher: launcher, timeout: opts.Timeout, progress: opts.Progress, each: opts.Iteration, starter: opts.Starter, gone: -1}
	if r.timeout <= 0 {
		r.timeout = DefaultTimeout
	}
	if r.starter == nil {
		r.starter = here{}
	}
	results, err := r.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w\n  files of the run: %s", err, dir)
	}
	if opts.Dir == "" {
		_ = os.RemoveAll(dir)
	}
	return results, nil
}

func runDir(dir string) (string, error) {
	if dir == "" {
		return os.MkdirTemp("", "mixdown-run-")
	}
	dir, err := filepath.Abs(dir) // the workers' launcher may start them elsewhere
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return os.MkdirTemp(dir, "run-")
}

// running is a run in progress.
type running struct {
	worker   Worker
	exp      *planpb.Experiment
	dir      string
	launcher string
	timeout  time.Duration
	progress func(Progress)
	each     func(worker int, it *planpb.Iteration) error
	starter  Starter

	crew Crew
	gone int // the first worker found gone without a word, -1 when none was
}

func (r *running) workers() int { return len(r.exp.Plans[0].Workload.Programs) }

func (r *running) run(ctx context.Context) (*Results, error) {
	data, err := proto.Marshal(r.exp)
	if err != nil {
		return nil, fmt.Errorf("encode experiment: %w", err)
	}
	experiment := filepath.Join(r.dir, "experiment.pb")
	if err := os.WriteFile(experiment, data, 0o644); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	r.crew, err = r.starter.Start(ctx, Job{Worker: r.worker, Launcher: r.launcher, Dir: r.dir, Experiment: experiment, Workers: r.workers(), Timeout: r.timeout})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	defer r.crew.End()
	if err := r.watch(ctx); err != nil {
		return nil, err
	}
	results, err := readResults(r.dir, r.exp, r.each)
	if err != nil {
		return nil, err
	}
	results.Hosts = r.crew.Hosts()
	return results, nil
}

// watch returns when all workers have finished, with an account of every rank
// when one did not.
func (r *running) watch(ctx context.Context) error {
	lastProgress := time.Now()
	var lastSign uint64
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		statuses := r.statuses()
		if r.fault(statuses) != nil {
			// A rank that is killed breaks its peers' connections before it is
			// gone itself: look for it before believing what they say.
			r.gone = r.firstGone()
			statuses = r.statuses()
			return r.fail(r.fault(statuses), statuses)
		}
		if r.finished(statuses) {
			return nil
		}
		if sign := signOfLife(statuses); sign != lastSign {
			lastSign, lastProgress = sign, time.Now()
			r.report(statuses)
		}
		if time.Since(lastProgress) > r.timeout {
			return r.fail(fmt.Errorf("no progress for %v", r.timeout), statuses)
		}
		select {
		case <-ctx.Done():
			return r.fail(ctx.Err(), statuses)
		case <-ticker.C:
		}
	}
}

func (r *running) statuses() []Status {
	list := make([]Status, r.workers())
	for i := range list {
		list[i] = r.crew.Status(i)
	}
	return list
}

func (r *running) finished(statuses []Status) bool { return allFinished(statuses) && r.crew.Done() }

// fault says what went wrong, nil when nothing did. A worker that is gone
// without a word was killed and is the cause; what others say about broken
// connections is the consequence.
func (r *running) fault(statuses []Status) error {
	if r.gone >= 0 {
		s := statuses[r.gone]
		return fmt.Errorf("rank %d died (process %d) while %s%s", r.rank(r.gone), s.PID, s.State, r.crew.Exit(r.gone))
	}
	var failed error
	for i, s := range statuses {
		rank := r.rank(i)
		if lost := r.crew.Lost(i); lost != nil {
			return fmt.Errorf("rank %d on %s is lost, while %s: %w", rank, r.crew.Host(i), s.State, lost)
		}
		switch {
		case s.State == Failed && failed == nil:
			failed = fmt.Errorf("rank %d failed: %s", rank, s.Message)
		case s.State == Terminated && failed == nil:
			failed = fmt.Errorf("rank %d was terminated", rank)
		case r.isGone(i):
			return fmt.Errorf("rank %d died (process %d) while %s%s", rank, s.PID, s.State, r.crew.Exit(i))
		}
	}
	if failed != nil {
		return failed
	}
	return r.crew.Fault(r.rank)
}

func allFinished(statuses []Status) bool {
	for _, s := range statuses {
		if s.State != Finished {
			return false
		}
	}
	return true
}

func (r *running) rank(i int) int32 { return r.exp.Plans[0].Workload.Programs[i].Rank }

func signOfLife(statuses []Status) uint64 {
	var sum uint64
	for _, s := range statuses {
		sum += s.TasksEnded + uint64(s.State)<<40 + uint64(uint32(s.Iteration))<<20
	}
	return sum
}

func (r *running) report(statuses []Status) {
	if r.progress == nil {
		return
	}
	p := Progress{State: statuses[0].State, Iteration: int(statuses[0].Iteration), Last: int(r.exp.Settings.GetIterations())}
	for _, s := range statuses {
		if s.State < p.State {
			p.State, p.Iteration = s.State, int(s.Iteration)
		}
		if s.State == p.State {
			p.Iteration = min(p.Iteration, int(s.Iteration))
		}
	}
	r.progress(p)
}
