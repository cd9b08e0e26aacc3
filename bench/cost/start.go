package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mixdown/replay/launch"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

const (
	warmup   = 2
	patience = 2 * time.Minute
	// slack is what the library alone gets beyond twice the time that it needed at first.
	slack = 8 * time.Millisecond
)

// start is one start of both sides.
type start struct {
	worker  launch.Worker
	program string // the library alone
	cases   []*benchCase
	rounds  int
	seed    uint64
	threads string

	dir   string
	spans []int64 // of each case, ns
}

func (s *start) ranks() int { return s.cases[0].ranks }

func (s *start) run(ctx context.Context) error {
	var err error
	if s.dir, err = os.MkdirTemp("", "mixdown-cost-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	alone, err := s.startAlone(ctx)
	if err != nil {
		return err
	}
	exp := &planpb.Experiment{SchemaVersion: 1, Settings: &planpb.Settings{
		Iterations: int32(s.rounds), Warmup: warmup, Samples: int64(s.rounds), SpanMode: planpb.SpanMode_SPAN_MODE_SLEEP, Seed: s.seed}}
	for i, c := range s.cases {
		exp.Plans = append(exp.Plans, c.plan(s.spans[i]))
	}
	if _, err := s.worker.Run(ctx, exp, launch.Options{Dir: s.dir, Timeout: patience}); err != nil {
		return err
	}
	if err := alone(); err != nil {
		return err
	}
	return s.read()
}

// startAlone starts the processes that run the library alone and waits until they
// have tried each case. The function it returns waits for their end.
func (s *start) startAlone(ctx context.Context) (func() error, error) {
	var lines strings.Builder
	for _, c := range s.cases {
		fmt.Fprintf(&lines, "%s %d %d %d\n", c.op, c.bytes, c.calls, c.before)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "cases"), []byte(lines.String()), 0o644); err != nil {
		return nil, err
	}
	n := strconv.Itoa(s.ranks())
	args := []string{s.program, "--dir", s.dir, "--warmup", strconv.Itoa(warmup),
		"--iterations", strconv.Itoa(s.rounds), "--seed", strconv.FormatUint(s.seed, 10), "--size", n}
	args = append(args, "--threads", s.threads)
	// The options with which the launcher starts the workers.
	var commands []*exec.Cmd
	switch s.cases[0].library {
	case "openmpi":
		commands = append(commands, exec.CommandContext(ctx, "mpirun.openmpi", append([]string{"-np", n, "--oversubscribe",
			"--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"}, args...)...))
		commands[0].Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	case "mpich":
		commands = append(commands, exec.CommandContext(ctx, "mpirun.mpich", append([]string{"-np", n}, args...)...))
		commands[0].Env = append(os.Environ(), "UCX_TLS=self,sm")
	default:
		for r := range s.ranks() {
			c := exec.CommandContext(ctx, args[0], append(args[1:], "--rank", strconv.Itoa(r))...)
			c.Env = append(os.Environ(), "UCX_TLS=self,sm") // as the module for UCX has it
			commands = append(commands, c)
		}
	}
	ended := make(chan error, len(commands))
	for _, c := range commands {
		var said bytes.Buffer
		c.Stdout, c.Stderr = &said, &said
		c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // mpirun ends its ranks
		c.WaitDelay = 5 * time.Second
		if err := c.Start(); err != nil {
			return nil, err
		}
		go func() {
			err := c.Wait()
			if err != nil {
				err = fmt.Errorf("%s: %w: %s", filepath.Base(s.program), err, said.String())
			}
			ended <- err
		}()
	}
	if err := s.awaitReady(ended); err != nil {
		return nil, err
	}
	return func() error {
		for range commands {
			select {
			case err := <-ended:
				if err != nil {
					return err
				}
			case <-time.After(patience):
				return fmt.Errorf("%s does not end", filepath.Base(s.program))
			}
		}
		return nil
	}, nil
}

// awaitReady reads how long each case takes, from which its span follows.
func (s *start) awaitReady(ended <-chan error) error {
	s.spans = nil
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		data, err := os.ReadFile(filepath.Join(s.dir, "ready"))
		if err == nil {
			for _, field := range strings.Fields(string(data)) {
				ns, err := strconv.ParseInt(field, 10, 64)
				if err != nil {
					return err
				}
				s.spans = append(s.spans, 2*ns+slack.Nanoseconds())
			}
			if len(s.spans) != len(s.cases) {
				return fmt.Errorf("%d times of %d cases", len(s.spans), len(s.cases))
			}
			return nil
		}
		select {
		case err := <-ended:
			return fmt.Errorf("it ended at once: %w", err)
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is not ready after %v", filepath.Base(s.program), patience)
		}
	}
}

// turn is one turn of one side on all ranks.
type turn struct {
	index  int   // of the case
	total  int64 // of all timed calls, summed over the ranks
	median int64 // of single calls, summed over the ranks
	end    int64 // of the last rank
}

// read pairs the times of both sides.
func (s *start) read() error {
	alone, worker := map[int64]*turn{}, map[int64]*turn{}
	for r := range s.ranks() {
		if err := s.readAlone(r, alone); err != nil {
			return err
		}
		if err := s.readWorker(r, worker); err != nil {
			return err
		}
	}
	for begin, w := range worker {
		c := s.cases[w.index]
		a := alone[begin]
		if a != nil && a.index != w.index {
			return errors.New("the two sides are out of step: see native/bench/loop.cpp")
		}
		if a == nil || a.end > begin+s.spans[w.index] {
			c.dropped++
			continue
		}
		n := float64(c.perCall() * s.ranks())
		calls := n * float64(c.calls)
		c.pairs = append(c.pairs, pair{
			start: s.seed,
			alone: float64(a.median) / n, worker: float64(w.median) / n,
			aloneMean: float64(a.total) / calls, workerMean: float64(w.total) / calls,
		})
	}
	return nil
}

func add(turns map[int64]*turn, start int64, index int, begin, end, median int64) {
	t := turns[start]
	if t == nil {
		t = &turn{index: index}
		turns[start] = t
	}
	t.total += end - begin
	t.median += median
	t.end = max(t.end, end)
}

func (s *start) readAlone(rank int, turns map[int64]*turn) error {
	data, err := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("alone.%d", rank)))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		var index int
		var start, begin, end, median int64
		if _, err := fmt.Sscan(line, &index, &start, &begin, &end, &median); err != nil {
			return err
		}
		add(turns, start, index, begin, end, median)
	}
	delete(turns, 0) // turns that came too late
	return nil
}

func (s *start) readWorker(rank int, turns map[int64]*turn) error {
	found, err := filepath.Glob(filepath.Join(s.dir, "run-*", fmt.Sprintf("result.%d.pb", rank)))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%d result files of rank %d: %w", len(found), rank, err)
	}
	for record, err := range plan.ReadRecords(found[0]) {
		if err != nil {
			return err
		}
		if it := record.GetIteration(); it != nil {
			c := s.cases[it.Plan]
			tasks := it.Tasks[c.first():]
			add(turns, it.StartNs, int(it.Plan), tasks[0].StartNs, tasks[len(tasks)-1].EndNs, medianCall(tasks, c.perCall()))
		}
	}
	return nil
}

// medianCall is how long a call takes with all that the worker does before the next
// one: from the beginning of one to the beginning of the next.
func medianCall(tasks []*planpb.TaskTime, perCall int) int64 {
	var all []int64
	for i := 0; i < len(tasks); i += perCall {
		end := tasks[i+perCall-1].EndNs
		if i+perCall < len(tasks) {
			end = tasks[i+perCall].StartNs
		}
		all = append(all, end-tasks[i].StartNs)
	}
	slices.Sort(all)
	return all[len(all)/2]
}
