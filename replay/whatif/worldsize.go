package whatif

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
	"mixdown/replay/tune"
)

var worldSize = Kind{
	Name: "world-size", Value: "RANKS[:GROUP]", Example: "world-size=4096",
	Summary: "the job runs on so many ranks, with more data-parallel replicas that each do as much as now",
	Formula: "operations of groups over replicas take T0 x C(k n)/C(n), C what --table says of a group's size (measured or by its fit), else their bytes on the busiest wire at the same bandwidth; the rest takes what it took",
	Source:  "data-parallel scaling as Lumos (MLSys 2025, arXiv 2504.09307) derives it",
	Cost:    "accuracy: the batch grows with the replicas; memory: none, less where states are sharded over them", NotModeled: "that the slowest of more ranks is slower; latency of more rounds where no --table knows it; links that more machines share",
	Step: true, once: true,
	parse: func(value string) (change, error) {
		ranks, group, _ := strings.Cut(value, ":")
		n, err := strconv.Atoi(ranks)
		if err != nil || n < 1 || n > 1<<30 {
			return nil, fmt.Errorf("%q is no number of ranks", ranks)
		}
		return scaled{n, group}, nil
	},
}

type scaled struct {
	ranks int
	group string // name or description, "": to be found
}

func (c scaled) step(s *Step) error {
	now := int(s.Workload.WorldSize)
	if now < 1 || c.ranks%now != 0 {
		return fmt.Errorf("%w: %d ranks are no multiple of the job's %d", ErrNotApplicable, c.ranks, now)
	}
	k := c.ranks / now
	over, err := c.groups(s)
	if k == 1 && c.group == "" {
		s.note("the job has %d ranks: nothing changes", now)
		return nil
	}
	if err != nil {
		return err
	}
	byTable, byWire := map[*planpb.Communication]bool{}, map[*planpb.Communication]bool{}
	grown := func(m sim.Meeting, t *took) {
		if m.Transfer || !over[m.Communication.Group] {
			return
		}
		before := s.groupSize(m)
		if s.Ratio != nil {
			if ratio, ok := s.Ratio(m, before, k); ok {
				byTable[m.Communication] = true
				t.whole *= ratio
				return
			}
		}
		byWire[m.Communication] = true
		op := plan.Op(m.Communication)
		if before < 2 { // one rank alone moves nothing, so its time tells nothing
			return
		}
		t.whole *= tune.Wire(op, before*k) / tune.Wire(op, before)
	}
	s.changed = append(s.changed, grown)
	var named []string
	for g, group := range s.Workload.Groups {
		if over[int32(g)] {
			named = append(named, strconv.Quote(group.Description+" "+group.Name))
		}
	}
	slices.Sort(named)
	s.note("%d ranks become %d: %d times as many replicas; groups that grow: %s", now, c.ranks, k, strings.Join(slices.Compact(named), ", "))
	if s.Machines != nil {
		s.note("the job has %d times as many machines too, and so have the groups that grow", k)
	}
	s.after = append(s.after, func() {
		s.note("%d operations by the table, %d by their bytes on the busiest wire alone", len(byTable), len(byWire))
	})
	return nil
}

// groupSize is how many ranks an operation's group has in the job.
func (s *Step) groupSize(m sim.Meeting) int {
	if s.Sizes != nil {
		return s.Sizes(m.Communication.Group)
	}
	return len(s.Workload.Groups[m.Communication.Group].Ranks)
}

// groups are those over data-parallel replicas: named, or those whose description
// says so, or all if every group is of all ranks. Groups of all ranks grow with
// them.
func (c scaled) groups(s *Step) (map[int32]bool, error) {
	over := map[int32]bool{}
	found, all := false, true
	var others []string
	used := s.used()
	for g, group := range s.Workload.Groups {
		if !used[int32(g)] {
			continue
		}
		size := len(group.Ranks)
		if s.Sizes != nil {
			size = s.Sizes(int32(g))
		}
		whole := size == int(s.Workload.WorldSize)
		matches := c.group != "" && (group.Name == c.group || group.Description == c.group) || c.group == "" && replicas(group.Description)
		if matches || whole {
			over[int32(g)] = true
		}
		found = found || matches
		if size > 1 && !whole {
			all = false
			others = append(others, strconv.Quote(group.Description+" "+group.Name))
		}
	}
	switch {
	case c.group != "" && !found:
		return nil, fmt.Errorf("%w: no group of the step has the name or description %q", ErrNotApplicable, c.group)
	case !found && !all:
		slices.Sort(others)
		return nil, fmt.Errorf("%w: which groups are over data-parallel replicas is not known: name one as world-size=%d:GROUP (groups: %s)", ErrNotApplicable, c.ranks, strings.Join(slices.Compact(others), ", "))
	}
	return over, nil
}

// used are the groups of which the step has operations.
func (s *Step) used() map[int32]bool {
	used := map[int32]bool{}
	for _, program := range s.Workload.Programs {
		for _, t := range program.Tasks {
			if c := t.GetCommunication(); c != nil && len(c.Transfers) == 0 {
				used[c.Group] = true
			}
		}
	}
	return used
}

// replicas says whether a group's description is one that frameworks give to groups
// over data-parallel replicas: Megatron-LM, DeepSpeed, PyTorch's device meshes.
func replicas(description string) bool {
	d := strings.ToLower(description)
	for _, name := range []string{"data_parallel", "data-parallel", "mesh_dp", "mesh_fsdp", "mesh_replicate", "mesh_shard"} {
		if strings.Contains(d, name) {
			return true
		}
	}
	return d == "dp" || d == "fsdp"
}
