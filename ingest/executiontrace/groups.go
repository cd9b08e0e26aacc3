package executiontrace

import (
	"slices"

	"mixdown/ingest/chrome"
	"mixdown/ingest/comm"
)

// maxGroup bounds the members of one group and maxGroups their number.
const (
	maxGroup  = 1 << 20
	maxGroups = 1 << 16
	maxRanks  = 1 << 24 // members of all groups together
)

// groupTable collects the process groups of a trace.
type groupTable struct {
	groups    []comm.Group
	byName    map[string]int
	byPointer map[int64]int
	ranks     int
}

// describe reads what torch.distributed said when it started a group: a list
// of all groups so far, as JSON in a string.
func (t *groupTable) describe(description string) {
	chrome.ParseValue([]byte(description)).Each(func(entry chrome.Value) bool {
		var g comm.Group
		var pointer int64
		hasRanks := false
		entry.Fields(func(key []byte, v chrome.Value) bool {
			switch string(key) {
			case "pg_name":
				g.Name = groupName(v)
			case "pg_desc":
				if s := text(v); s != "undefined" {
					g.Description = clip(s)
				}
			case "backend_id":
				pointer, _ = v.Int()
			case "group_size":
				if n, ok := v.Int(); ok && n > 0 && n <= maxGroup {
					g.Size = int(n)
				}
			case "ranks":
				hasRanks = v.Kind() == chrome.Array
				g.Ranks = readRanks(v)
			}
			return true
		})
		if g.Name == "" || len(t.groups) >= maxGroups {
			return true
		}
		switch {
		case len(g.Ranks) == 0 && hasRanks && g.Size > 0: // empty means all
			g.Ranks = strided(0, 1, g.Size)
		case g.Size == 0:
			g.Size = len(g.Ranks)
		case len(g.Ranks) != g.Size: // cut off
			g.Ranks = nil
		}
		i := t.add(g)
		if pointer != 0 {
			if t.byPointer == nil {
				t.byPointer = map[int64]int{}
			}
			t.byPointer[pointer] = i
		}
		return true
	})
}

func readRanks(v chrome.Value) []int {
	var ranks []int
	ok := true
	v.Each(func(e chrome.Value) bool {
		n, isInt := e.Int()
		ok = isInt && n >= 0 && n < 1<<30 && len(ranks) < maxGroup
		ranks = append(ranks, int(n))
		return ok
	})
	if !ok {
		return nil
	}
	return ranks
}

// strided lists the members of a group of evenly spaced ranks.
func strided(start, stride int64, size int) []int {
	if size <= 0 || size > maxGroup || start < 0 || start >= 1<<30 || stride < 0 || stride >= 1<<30 ||
		stride == 0 && size > 1 || start+stride*int64(size) >= 1<<31 {
		return nil
	}
	ranks := make([]int, size)
	for i := range ranks {
		ranks[i] = int(start + stride*int64(i))
	}
	return ranks
}

// add adds g, or what the table lacks of it, and returns its place.
func (t *groupTable) add(g comm.Group) int {
	if t.ranks += len(g.Ranks); t.ranks > maxRanks {
		g.Ranks = nil
	}
	i, ok := t.byName[g.Name]
	if !ok {
		if t.byName == nil {
			t.byName = map[string]int{}
		}
		t.byName[g.Name] = len(t.groups)
		t.groups = append(t.groups, g)
		return len(t.groups) - 1
	}
	have := &t.groups[i]
	if have.Ranks == nil {
		have.Ranks = slices.Clone(g.Ranks)
	}
	if have.Size == 0 {
		have.Size = g.Size
	}
	if have.Description == "" {
		have.Description = g.Description
	}
	return i
}

// resolve returns the group that a node refers to, as far as it is known.
func (t *groupTable) resolve(ref groupRef) comm.Group {
	if ref.name == "" {
		if i, ok := t.byPointer[ref.pointer]; ok && ref.pointer != 0 {
			return t.groups[i]
		}
		return comm.Group{Size: ref.size}
	}
	i, ok := t.byName[ref.name]
	if !ok {
		if len(t.groups) >= maxGroups {
			return comm.Group{Name: ref.name, Description: ref.desc, Size: ref.size}
		}
		i = t.add(comm.Group{Name: ref.name, Description: ref.desc, Size: ref.size})
	}
	g := &t.groups[i]
	if g.Ranks == nil && ref.strided && ref.size > 0 && (g.Size == 0 || g.Size == ref.size) {
		if t.ranks += ref.size; t.ranks <= maxRanks {
			g.Ranks = strided(ref.start, ref.stride, ref.size)
		}
	}
	if g.Size == 0 {
		g.Size = ref.size
	}
	if g.Description == "" {
		g.Description = ref.desc
	}
	return *g
}
