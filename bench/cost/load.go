package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"mixdown/replay/launch"
	"mixdown/replay/plan/planpb"
)

// Offsets in the control file: replay/plan/control.md.
const (
	page       = 4096
	stateAt    = 8
	connecting = 2
	finished   = 6
)

// measureLoad measures how long the workers take from their start until they connect:
// to read, check and compile a plan of loadOps operations on each rank, one stream of
// collectives and messages. Each reads and checks the programs of all ranks.
func measureLoad(ctx context.Context, worker launch.Worker, ranks int) (bool, error) {
	const tries = 3
	c := &benchCase{library: "gloo", ranks: ranks, op: "all_reduce", bytes: 1024, calls: loadOps / 2}
	p := c.plan(0)
	for _, t := range p.Workload.Programs {
		more := &program{library: c.library, pb: t, seq: int64(loadOps/2 + 1)}
		for range loadOps / 4 {
			more.call("send_recv", 64)
		}
	}
	exp := &planpb.Experiment{SchemaVersion: 1, Plans: []*planpb.Plan{p},
		Settings: &planpb.Settings{Iterations: 1, SpanMode: planpb.SpanMode_SPAN_MODE_SLEEP}}
	var times []time.Duration
	for range tries {
		took, err := loadOnce(ctx, worker, exp, ranks)
		if err != nil {
			return false, err
		}
		times = append(times, took)
	}
	slices.Sort(times)
	median, limit := times[len(times)/2], fmt.Sprintf("limit %v", limitLoad)
	if ranks > runtime.NumCPU() {
		limit = "no limit where ranks share cores"
	}
	fmt.Printf("a plan of %d operations on each of %d ranks is loaded in %v (best of %d: %v); %s\n",
		loadOps, ranks, median.Round(time.Millisecond), tries, times[0].Round(time.Millisecond), limit)
	return median <= limitLoad || ranks > runtime.NumCPU(), nil
}

func loadOnce(ctx context.Context, worker launch.Worker, exp *planpb.Experiment, ranks int) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "mixdown-load-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	took := make(chan time.Duration, 1)
	go func() {
		took <- watchLoad(ctx, dir, ranks)
		cancel() // to run it would take far longer
	}()
	_, err = worker.Run(ctx, exp, launch.Options{Dir: dir, Timeout: patience})
	select {
	case t := <-took:
		if t <= 0 {
			return 0, fmt.Errorf("the large plan was not loaded: %w", err)
		}
		return t, nil
	default:
		return 0, fmt.Errorf("the large plan was not loaded: %w", err)
	}
}

// watchLoad returns how long it took from the end of writing the experiment, right
// before the workers are started, until all of them had it loaded. What delays this
// process makes it longer, never shorter.
func watchLoad(ctx context.Context, dir string, ranks int) time.Duration {
	slot := make([]byte, 16)
	for loaded := 0; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		found, _ := filepath.Glob(filepath.Join(dir, "run-*"))
		if len(found) == 0 {
			continue
		}
		written, err := os.Stat(filepath.Join(found[0], "experiment.pb"))
		if err != nil {
			continue
		}
		f, err := os.Open(filepath.Join(found[0], "control"))
		if err != nil {
			continue
		}
		for loaded < ranks {
			if _, err := f.ReadAt(slot, int64(page*(loaded+1))); err != nil {
				break
			}
			if state := binary.NativeEndian.Uint32(slot[stateAt:]); state < connecting || state > finished {
				break
			}
			loaded++
		}
		f.Close()
		if loaded == ranks {
			return time.Since(written.ModTime())
		}
	}
	return 0
}
