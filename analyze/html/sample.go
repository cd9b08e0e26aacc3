package html

import (
	"cmp"
	"slices"

	"mixdown/analyze/track"
)

// pack deals the rank's slices into lanes, merges short neighbours until they
// weigh no more than budget, and writes them as columns. It returns below which length
// neighbours were merged, 0 for none.
func (m *laneMaker) pack(origin int64, budget, depth int) (TimelineRank, int64) {
	type row struct {
		name   string
		slices []slice
	}
	var rows []row
	total := 0
	for _, t := range m.tracks {
		dealt, left := deal(t.slices, depth)
		m.left += left
		for i, list := range dealt {
			name := ""
			if i == 0 {
				name = t.name
			}
			rows = append(rows, row{name, list})
			total += weigh(list)
		}
	}
	var shorter int64
	for total > budget && shorter < 1<<60 {
		shorter = max(shorter*5/4, 128)
		total = 0
		for i := range rows {
			rows[i].slices = merge(rows[i].slices, shorter)
			total += weigh(rows[i].slices)
		}
	}
	out := TimelineRank{Rank: m.in.Run.Ranks[m.r].Rank, Lanes: []Lane{}}
	for _, r := range rows {
		out.Lanes = append(out.Lanes, m.columns(r.name, r.slices, origin))
	}
	return out, shorter
}

// weigh is how much room slices take in the page: communication takes four times
// that of others.
func weigh(list []slice) int {
	n := len(list)
	for i := range list {
		if list[i].comm >= 0 {
			n += 3
		}
	}
	return n
}

// deal gives each slice the first row that is free when it starts, so that what
// is nested stands below what it is in. What finds none of so many rows is left
// out, unless it is communication: that gets more.
func deal(list []slice, rows int) (out [][]slice, left int) {
	slices.SortStableFunc(list, func(a, b slice) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	const most = 16 // rows of a broken trace in which everything overlaps
	for _, s := range list {
		row := 0
		for ; row < len(out); row++ {
			if last := out[row][len(out[row])-1]; last.end <= s.start {
				break
			}
		}
		if row >= rows && (s.kind != track.Communication || row >= most) {
			left++
			continue
		}
		if row == len(out) {
			out = append(out, nil)
		}
		out[row] = append(out[row], s)
	}
	return out, left
}

// merge draws neighbours of one kind together that are shorter than ns and have
// less than that between them. Times stay those of what they stand for.
func merge(list []slice, ns int64) []slice {
	out := list[:0]
	for _, s := range list {
		if n := len(out); n > 0 {
			last := &out[n-1]
			// A merged slice may grow beyond ns; what joins it is always shorter.
			if last.kind == s.kind && s.end-s.start < ns && s.start-last.end < ns && (last.count > 1 || last.end-last.start < ns) && last.end-last.start < 16*ns {
				if s.end-s.start > last.end-last.start && last.count == 1 {
					last.name = s.name
				}
				last.end, last.comm = s.end, -1
				last.count += s.count
				continue
			}
		}
		out = append(out, s)
	}
	return out
}

// columns packs slices; origin is the time that counts as 0.
func (m *laneMaker) columns(name string, list []slice, origin int64) Lane {
	l := Lane{Name: name, Start: make([]int64, 0, len(list)), Dur: make([]int64, 0, len(list)), Of: make([]int, 0, len(list))}
	before := origin
	for i, s := range list {
		l.Start = append(l.Start, s.start-before)
		before = s.start
		l.Dur = append(l.Dur, max(s.end-s.start, 0))
		l.Of = append(l.Of, s.name)
		if s.count > 1 {
			l.Counts = append(l.Counts, i, s.count)
		}
		if s.comm < 0 {
			continue
		}
		if l.Comm == nil {
			l.Comm = &CommColumns{}
		}
		c, d := l.Comm, m.comm[s.comm]
		c.Slice, c.Match, c.Group, c.Op = append(c.Slice, i), append(c.Match, d.match), append(c.Group, d.group), append(c.Op, d.op)
		c.Bytes, c.Wait, c.Exposed, c.Transfer = append(c.Bytes, d.bytes), append(c.Wait, d.wait), append(c.Exposed, d.exposed), append(c.Transfer, d.transfer)
	}
	return l
}
