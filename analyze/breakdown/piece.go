package breakdown

import (
	"cmp"
	"slices"

	"mixdown/analyze/overlap"
)

// piece is a time, ns, that belongs to one segment.
type piece struct {
	start, end int64
	segment    int
}

// settle makes pieces that do not overlap of pieces that may: a moment belongs
// to the piece that began first. It reorders the list.
func settle(list []piece) []piece {
	slices.SortFunc(list, func(a, b piece) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.segment, b.segment))
	})
	out := list[:0] // never longer than what was read
	end := int64(-1 << 63)
	for _, p := range list {
		p.start = max(p.start, end)
		if p.end <= p.start {
			continue
		}
		end = p.end
		if n := len(out); n > 0 && out[n-1].end == p.start && out[n-1].segment == p.segment {
			out[n-1].end = p.end
			continue
		}
		out = append(out, p)
	}
	return out
}

// set is all the time of pieces that do not overlap.
func set(list []piece) overlap.Set {
	var s overlap.Set
	for _, p := range list {
		if n := len(s); n > 0 && s[n-1].End == p.start {
			s[n-1].End = p.end
			continue
		}
		s = append(s, overlap.Interval{Start: p.start, End: p.end})
	}
	return s
}

// without returns the pieces less the moments of other.
func without(list []piece, other overlap.Set) []piece {
	var rest []piece
	k := 0
	for _, p := range list {
		for k < len(other) && other[k].End <= p.start {
			k++
		}
		start := p.start
		for j := k; j < len(other) && other[j].Start < p.end; j++ {
			if other[j].Start > start {
				rest = append(rest, piece{start, other[j].Start, p.segment})
			}
			start = max(start, other[j].End)
		}
		if start < p.end {
			rest = append(rest, piece{start, p.end, p.segment})
		}
	}
	return rest
}

// cutAt deals a set out to windows, which start at the given times.
func cutAt(s overlap.Set, windows []piece) []piece {
	var out []piece
	w := 0
	for _, iv := range s {
		for start := iv.Start; start < iv.End; {
			for w+1 < len(windows) && windows[w].end <= start {
				w++
			}
			end := iv.End
			if w+1 < len(windows) {
				end = min(end, windows[w].end)
			}
			out = append(out, piece{start, end, windows[w].segment})
			start = end
		}
	}
	return out
}

// lengths adds up the pieces of each segment.
func lengths(list []piece, segments int) []int64 {
	sums := make([]int64, segments)
	for _, p := range list {
		sums[p.segment] += p.end - p.start
	}
	return sums
}
