package overlap

import (
	"cmp"
	"slices"
)

// Interval is [Start, End) in ns.
type Interval struct{ Start, End int64 }

// Set is a set of moments: intervals by start that do not touch each other.
type Set []Interval

// Union makes a set of intervals in any order, which it may reorder.
func Union(list []Interval) Set {
	slices.SortFunc(list, func(a, b Interval) int { return cmp.Compare(a.Start, b.Start) })
	var s Set
	for _, iv := range list {
		s = s.join(iv)
	}
	return s
}

// join adds an interval that starts no earlier than the last one of s.
func (s Set) join(iv Interval) Set {
	if iv.End <= iv.Start {
		return s
	}
	if n := len(s); n > 0 && iv.Start <= s[n-1].End {
		s[n-1].End = max(s[n-1].End, iv.End)
		return s
	}
	return append(s, iv)
}

// Length is the total length in ns.
func (s Set) Length() int64 {
	var total int64
	for _, iv := range s {
		total += iv.End - iv.Start
	}
	return total
}

// Subtract returns the moments of s that are not in other.
func (s Set) Subtract(other Set) Set {
	var rest Set
	k := 0
	if len(s) > 0 { // a short s need not look at all of other
		k, _ = slices.BinarySearchFunc(other, s[0].Start+1, func(iv Interval, t int64) int { return cmp.Compare(iv.End, t) })
	}
	for _, iv := range s {
		for k < len(other) && other[k].End <= iv.Start {
			k++
		}
		start := iv.Start
		for j := k; j < len(other) && other[j].Start < iv.End; j++ {
			if other[j].Start > start {
				rest = append(rest, Interval{start, other[j].Start})
			}
			start = max(start, other[j].End)
		}
		if start < iv.End {
			rest = append(rest, Interval{start, iv.End})
		}
	}
	return rest
}

// Plus returns the moments of s and of other.
func (s Set) Plus(other Set) Set {
	both := make(Set, 0, len(s)+len(other))
	for len(s) > 0 && len(other) > 0 {
		from := &s
		if other[0].Start < s[0].Start {
			from = &other
		}
		both = both.join((*from)[0])
		*from = (*from)[1:]
	}
	for _, iv := range s {
		both = both.join(iv)
	}
	for _, iv := range other {
		both = both.join(iv)
	}
	return both
}
