package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mixdown/analyze/collective"
	"mixdown/analyze/diff"
	"mixdown/analyze/report"
	"mixdown/ingest/trace"
)

// factsOf describes a run.
func factsOf(in Input) Facts {
	world := in.Run.WorldSize()
	f := Facts{WorldSize: world, RanksRead: len(in.Run.Ranks), GPU: in.GPU, Versions: in.Versions, Layout: []Layout{}}
	if f.Versions == nil {
		f.Versions = map[string]string{}
	}
	for _, rank := range in.Run.Ranks {
		device := "gpu"
		if rank.CPUOnly {
			device = "cpu"
		}
		switch f.Device {
		case "", device:
			f.Device = device
		default:
			f.Device = "both"
		}
		f.Backend = cmp.Or(f.Backend, rank.Distributed.Backend)
	}
	f.Layout = layoutOf(in.Match, world)
	return f
}

// layoutOf counts the groups in use by role and size. Groups that no operation
// names do nothing, and profilers of different versions list or omit them.
func layoutOf(m *collective.Matching, world int) []Layout {
	used := map[int]bool{}
	for r := range m.GroupOf {
		for _, g := range m.GroupOf[r] {
			used[g] = true
		}
	}
	count := map[Layout]int{}
	for i := range m.Groups {
		if used[i] {
			count[Layout{Role: diff.RoleOf(&m.Groups[i], world), Size: m.Groups[i].Size}]++
		}
	}
	list := []Layout{}
	for l, n := range count {
		l.Groups = n
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b Layout) int { return cmp.Or(strings.Compare(a.Role, b.Role), cmp.Compare(a.Size, b.Size)) })
	return list
}

// String is the layout in words.
func (l Layout) String() string {
	if l.Groups == 1 {
		return fmt.Sprintf("%s of %d", report.Printable(l.Role), l.Size)
	}
	return fmt.Sprintf("%d x %s of %d", l.Groups, report.Printable(l.Role), l.Size)
}

// Machine is what the traces of a run say of the machines: the names of their GPUs, ""
// when not said, and versions, of the first rank that names any.
func Machine(run *trace.Run) (gpu string, versions map[string]string) {
	var names []string
	for _, r := range run.Ranks {
		if r.GPU != "" && !slices.Contains(names, r.GPU) {
			names = append(names, r.GPU)
		}
		if versions == nil {
			versions = r.Versions
		}
	}
	slices.Sort(names)
	return strings.Join(names, "; "), versions
}
