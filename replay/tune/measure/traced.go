package measure

import (
	"slices"

	"mixdown/ingest/comm"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// FromWorkload lists what a traced step contains, each once. Batches and receives
// are measured as sends of their transfers' sizes, uneven gathers and reductions
// as even ones. Of very many sizes of one operation some are taken, evenly spaced.
func FromWorkload(w *planpb.Workload) []Point {
	type key struct {
		group int32
		seq   int64
	}
	largest := map[key]Point{}
	var list []Point
	add := func(p Point) {
		if p, ok := p.Normal(); ok {
			list = append(list, p)
		}
	}
	for _, program := range w.Programs {
		for _, t := range program.Tasks {
			c := t.GetCommunication()
			if c == nil || c.Group < 0 || int(c.Group) >= len(w.Groups) {
				continue
			}
			dtype := plan.DType(c)
			for _, tr := range c.Transfers {
				add(Point{Op: comm.Send, DType: dtype, Bytes: tr.Count * dtype.Size(), Ranks: 2})
			}
			op := plan.Op(c)
			if op.IsP2P() {
				continue
			}
			k := key{c.Group, c.Seq}
			p := Point{Op: op.Even(), DType: dtype, Bytes: plan.Bytes(c), Ranks: len(w.Groups[c.Group].Ranks)}
			if have, ok := largest[k]; ok {
				p.Bytes = max(p.Bytes, have.Bytes)
			}
			largest[k] = p
		}
	}
	for _, p := range largest {
		add(p)
	}
	slices.SortFunc(list, comparePoints)
	return thin(slices.Compact(list))
}

// maxSizes is how many sizes of one operation in groups of one size are measured.
const maxSizes = 24

// thin leaves maxSizes sizes of each operation, the smallest and the largest among
// them. The list is sorted.
func thin(list []Point) []Point {
	var out []Point
	for i := 0; i < len(list); {
		j := i
		for j < len(list) && list[j].Op == list[i].Op && list[j].Ranks == list[i].Ranks {
			j++
		}
		if n := j - i; n <= maxSizes {
			out = append(out, list[i:j]...)
		} else {
			for k := range maxSizes {
				out = append(out, list[i+k*(n-1)/(maxSizes-1)])
			}
		}
		i = j
	}
	return out
}
