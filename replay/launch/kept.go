package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// Kept is what a run left in its folder, complete or not.
type Kept struct {
	Dir        string
	Experiment *planpb.Experiment
	Host       string                // where the first worker ran, "" when it did not get that far
	Backends   []*planpb.BackendInfo // as it reported them
	Plans      []KeptPlan            // in the order of Experiment.plans
	// Cut are the workers whose file ends within a record, as that of a killed one
	// may.
	Cut []int
	// Failures are the last words of workers that had any.
	Failures []string
}

// KeptPlan is what is known of one plan.
type KeptPlan struct {
	Name string
	// Iterations are the durations, ns, of those that all workers completed, by
	// their number; Ranks those of each worker alone, from its own start.
	Iterations map[int]int64
	Ranks      map[int][]int64
}

// ReadKept reads the folder of a run, "run-..." below Options.Dir, however it
// ended. Its error wraps fs.ErrNotExist when there is no run.
func ReadKept(dir string) (*Kept, error) {
	data, err := os.ReadFile(filepath.Join(dir, "experiment.pb"))
	if err != nil {
		return nil, fmt.Errorf("read kept run: %w", err)
	}
	k := &Kept{Dir: dir, Experiment: &planpb.Experiment{}}
	if err := proto.Unmarshal(data, k.Experiment); err != nil {
		return nil, fmt.Errorf("read kept run: %s/experiment.pb: %w", dir, err)
	}
	if len(k.Experiment.Plans) == 0 {
		return nil, fmt.Errorf("read kept run: %s/experiment.pb holds no plan", dir)
	}
	n := len(k.Experiment.Plans[0].GetWorkload().GetPrograms())
	all := make([]map[int]*kept, len(k.Experiment.Plans))
	for p := range all {
		all[p] = map[int]*kept{}
	}
	for i := range n {
		if err := k.readWorker(filepath.Join(dir, fmt.Sprintf("result.%d.pb", i)), i, all); err != nil {
			return nil, fmt.Errorf("read kept run: %w", err)
		}
	}
	for p, plan := range k.Experiment.Plans {
		whole := KeptPlan{Name: plan.Name, Iterations: map[int]int64{}, Ranks: map[int][]int64{}}
		for number, it := range all[p] {
			if len(it.ranks) == n {
				whole.Iterations[number], whole.Ranks[number] = it.took, it.ranks
			}
		}
		k.Plans = append(k.Plans, whole)
	}
	return k, nil
}

// kept is an iteration as some workers have written it.
type kept struct {
	took  int64 // from the common start to the end of the last of them
	ranks []int64
}

func (k *Kept) readWorker(path string, worker int, all []map[int]*kept) error {
	for rec, err := range plan.ReadRecords(path) {
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil // it did not get that far
		case errors.Is(err, io.ErrUnexpectedEOF):
			k.Cut = append(k.Cut, worker)
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", path, err)
		}
		if h := rec.GetHeader(); h != nil && worker == 0 {
			k.Host, k.Backends = h.Host, h.Backends
		}
		if f := rec.GetFailure(); f != nil {
			rank := k.Experiment.Plans[0].Workload.Programs[worker].Rank
			k.Failures = append(k.Failures, fmt.Sprintf("rank %d: %s", rank, f.Message))
		}
		it := rec.GetIteration()
		if it == nil {
			continue
		}
		if it.Plan < 0 || int(it.Plan) >= len(all) {
			return fmt.Errorf("%s: plan %d of %d", path, it.Plan, len(all))
		}
		entry := all[it.Plan][int(it.Iteration)]
		if entry == nil {
			entry = &kept{}
			all[it.Plan][int(it.Iteration)] = entry
		}
		offset := k.Experiment.Plans[it.Plan].Workload.Programs[worker].StartOffsetNs
		entry.ranks = append(entry.ranks, it.EndNs-it.StartNs-offset)
		entry.took = max(entry.took, it.EndNs-it.StartNs)
	}
	return nil
}

// complete is how many iterations, from the first on, all workers completed of all
// plans.
func (k *Kept) complete() int {
	for n := 0; ; n++ {
		for _, p := range k.Plans {
			if _, ok := p.Iterations[n]; !ok {
				return n
			}
		}
	}
}
