package collective

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// Group is a process group of the run.
type Group struct {
	Name, Description string
	Ranks             []int // global, in group order; nil when unknown
	// Inferred: the traces do not say who the members are; every rank has one
	// unnamed group only, and the ranks' sequences of operations agree.
	Inferred bool
	Size     int // members, 0 when unknown
}

// Label is the group's name for people and tables.
func (g *Group) Label() string {
	switch {
	case g.Name != "" && g.Description != "" && g.Description != g.Name:
		return g.Name + " (" + g.Description + ")"
	case g.Name != "":
		return g.Name
	case g.Inferred:
		return "all ranks"
	case g.Ranks != nil:
		return fmt.Sprint("ranks ", g.Ranks)
	}
	return "unknown"
}

// grouping maps the groups of each rank to groups of the run.
type grouping struct {
	groups []Group
	// of[rank index][group of that rank] is an index into groups.
	of [][]int
}

// groupRun merges the groups of all ranks: two are the same when name and
// members are.
func groupRun(run *trace.Run, diags *diagnostic.Set) grouping {
	g := grouping{of: make([][]int, len(run.Ranks))}
	index := map[string]int{}
	add := func(key string, group Group) int {
		i, ok := index[key]
		if !ok {
			i = len(g.groups)
			index[key] = i
			g.groups = append(g.groups, group)
		}
		return i
	}
	world := inferWorld(run)
	for r, rank := range run.Ranks {
		for _, local := range rank.Groups {
			switch {
			case local.Ranks != nil:
				key := local.Name + "\x00" + ranksKey(local.Ranks)
				if local.Name == "" { // the members are known, the name is not
					key += local.Stream
				}
				g.of[r] = append(g.of[r], add(key, Group{
					Name: local.Name, Description: local.Description, Ranks: local.Ranks, Size: len(local.Ranks),
				}))
			case world != nil:
				diags.Addf("group-inferred", diagnostic.NoRank, diagnostic.NoOffset,
					"the traces name no process group; one communicator a rank with the same sequence of operations: taken as the group of all %d ranks", len(world))
				g.of[r] = append(g.of[r], add("world", Group{Ranks: world, Inferred: true, Size: len(world)}))
			default:
				diags.Addf("group-unknown", rank.Rank, diagnostic.NoOffset,
					"members of group %q are not in the trace; what depends on them is left out", local.Name)
				key := fmt.Sprintf("%d\x00%s\x00%s", rank.Rank, local.Name, local.Stream)
				g.of[r] = append(g.of[r], add(key, Group{Name: local.Name, Description: local.Description, Size: local.Size}))
			}
		}
	}
	return g
}

func ranksKey(ranks []int) string {
	var b strings.Builder
	for _, r := range ranks {
		b.WriteString(strconv.Itoa(r))
		b.WriteByte(',')
	}
	return b.String()
}

// inferWorld returns the ranks of the whole job when that is the only group the
// traces allow: all ranks were read, each has exactly one group, nothing says
// who its members are, and all ranks issued the same operations in the same
// order. Else nil.
func inferWorld(run *trace.Run) []int {
	if len(run.Ranks) < 2 || len(run.Missing()) > 0 {
		return nil
	}
	var first []comm.Operation
	for i, rank := range run.Ranks {
		if len(rank.Groups) != 1 || rank.Groups[0].Ranks != nil {
			return nil
		}
		if i == 0 {
			first = rank.Operations
			continue
		}
		if !slices.EqualFunc(first, rank.Operations, func(a, b comm.Operation) bool {
			return signatureOf(&a) == signatureOf(&b) && !a.Op.IsP2P()
		}) {
			return nil
		}
	}
	ranks := make([]int, len(run.Ranks))
	for i := range ranks {
		ranks[i] = run.Ranks[i].Rank
	}
	return ranks
}
