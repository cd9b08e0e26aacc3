package measure

import (
	"math"
	"slices"

	"mixdown/ingest/comm"
	"mixdown/replay/tune"
)

// near is how close two neighbouring sizes are when a crossing between them is
// known well enough.
const near = 1.5

// refine lists the sizes to measure next: half way, in logarithms, between
// neighbours where the winner changes.
func refine(t *tune.Table, known []Point, among []tune.Contender) []Point {
	var list []Point
	keep := func(c tune.Contender) bool { return slices.Contains(among, c) }
	for _, c := range tune.Compare(t, keep) {
		for _, x := range c.Crossings {
			if float64(x.Higher) <= near*float64(max(x.Lower, 1)) {
				continue
			}
			middle := int64(math.Round(math.Sqrt(float64(max(x.Lower, 1)) * float64(x.Higher))))
			p, ok := (Point{c.Op, dtypeOf(known, c.Question), middle, c.Ranks, c.Streams}).Normal()
			if ok && p.Bytes > x.Lower && p.Bytes < x.Higher && !slices.Contains(known, p) {
				list = append(list, p)
			}
		}
	}
	slices.SortFunc(list, comparePoints)
	return slices.Compact(list)
}

// dtypeOf is the element type that a question was measured with.
func dtypeOf(known []Point, q tune.Question) comm.DType {
	for _, p := range known {
		if p.Op == q.Op && p.Ranks == q.Ranks && tune.Class(p.Op, p.DType) == q.Class {
			return p.DType
		}
	}
	return comm.Float32
}
