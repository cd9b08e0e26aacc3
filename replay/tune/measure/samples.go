package measure

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// outcome is what the workers wrote about one plan.
type outcome struct {
	// iterations[i] are the times of the operations in the i-th iteration that all
	// ranks finished, ns.
	iterations [][]int64
	checked    int // ranks that compared their data
	errors     []string
}

// record is one iteration of one rank. Its times count from the common start, which
// every host has on a clock of its own.
type record struct {
	ends []int64 // by task
}

// ErrEmulated: the GPU is a stand-in, whose times mean nothing.
var ErrEmulated = errors.New("the GPU is emulated: its times are no measurements")

// readOutcomes reads the result files of a run of programs.
func readOutcomes(dir string, programs []*program) ([]outcome, error) {
	plans := make([]*planpb.Plan, len(programs))
	for i, g := range programs {
		plans[i] = g.plan
	}
	return readRun(dir, plans, func(k int, records []*record) []int64 { return programs[k].times(records) })
}

// readRun reads the result files of a run, whole or not: what a killed run left
// counts as far as all ranks have it. times makes the times of an iteration of a
// plan, none where it is not whole.
func readRun(dir string, plans []*planpb.Plan, times func(plan int, records []*record) []int64) ([]outcome, error) {
	runs, err := filepath.Glob(filepath.Join(dir, "run-*"))
	if err != nil || len(runs) != 1 {
		return nil, fmt.Errorf("%d runs below %s, expected one", len(runs), dir)
	}
	outcomes := make([]outcome, len(plans))
	ranks := len(plans[0].Workload.Programs)
	iterations := make([]map[int32][]*record, len(plans)) // by plan, iteration and rank
	for i := range iterations {
		iterations[i] = map[int32][]*record{}
	}
	emulated := false
	for r := range ranks {
		path := filepath.Join(runs[0], fmt.Sprintf("result.%d.pb", r))
		for rec, err := range plan.ReadRecords(path) {
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, io.ErrUnexpectedEOF) {
				break // as far as it got
			}
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
			switch kind := rec.Kind.(type) {
			case *planpb.Record_Header:
				emulated = emulated || kind.Header.Emulated
			case *planpb.Record_Verification:
				v := kind.Verification
				if v.Plan >= 0 && int(v.Plan) < len(outcomes) {
					o := &outcomes[v.Plan]
					o.checked++
					for _, e := range v.Errors {
						o.errors = append(o.errors, fmt.Sprintf("rank %d: %s", r, e))
					}
				}
			case *planpb.Record_Iteration:
				it := kind.Iteration
				if it.Plan < 0 || int(it.Plan) >= len(outcomes) {
					continue
				}
				tasks := len(plans[it.Plan].Workload.Programs[r].Tasks)
				x := &record{ends: make([]int64, tasks)}
				for _, t := range it.Tasks {
					if t.Task >= 0 && int(t.Task) < tasks {
						x.ends[t.Task] = t.EndNs - it.StartNs
					}
				}
				by := iterations[it.Plan]
				if by[it.Iteration] == nil {
					by[it.Iteration] = make([]*record, ranks)
				}
				by[it.Iteration][r] = x
			}
		}
	}
	if emulated {
		return nil, ErrEmulated
	}
	for k := range plans {
		for i := int32(0); ; i++ {
			records, ok := iterations[k][i]
			if !ok {
				break
			}
			if of := times(k, records); len(of) > 0 {
				outcomes[k].iterations = append(outcomes[k].iterations, of)
			}
		}
	}
	return outcomes, nil
}

// times are those of the steps of an iteration but the first: from the end of the
// step before on its last rank to its own end on its last rank.
func (g *program) times(records []*record) []int64 {
	var times []int64
	for _, steps := range g.steps {
		var first, before int64
		for i, step := range steps {
			end := int64(0)
			for r, task := range step {
				if records[r] == nil || records[r].ends[task] == 0 {
					return nil // not all ranks finished it, or its times were not kept
				}
				end = max(end, records[r].ends[task])
			}
			if i == 0 {
				first = end
			} else if !g.mean {
				times = append(times, max(1, (end-before)/g.parts))
			}
			before = end
		}
		if n := int64(len(steps) - 1); g.mean && n > 0 {
			times = append(times, max(1, (before-first)/n))
		}
	}
	return times
}
