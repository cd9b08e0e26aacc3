package tune

import (
	"math"

	"mixdown/ingest/comm"
)

// Fit is a line through measurements: alpha + beta x bytes within one group size,
// alpha x steps + beta x bytes on the busiest wire across group sizes. Both are at
// least 0.
type Fit struct {
	Alpha    float64 // ns, of one step
	Beta     float64 // ns per byte
	Residual float64 // root of the mean square of relative errors; 0.1 is 10 %
	N        int     // points
}

// point is a measurement as the fit sees it: time = alpha x steps + beta x bytes.
type point struct{ steps, bytes, time float64 }

// fit finds the line with the least squares of relative errors: the small sizes
// count as much as the large ones.
func fit(points []point) (Fit, bool) {
	f := Fit{N: len(points)}
	if len(points) < 2 {
		return f, false
	}
	var ss, sb, bb, s1, b1 float64 // sums over what is divided by the time
	for _, p := range points {
		s, b := p.steps/p.time, p.bytes/p.time
		ss, sb, bb, s1, b1 = ss+s*s, sb+s*b, bb+b*b, s1+s, b1+b
	}
	det := ss*bb - sb*sb
	if det > 1e-12*ss*bb {
		f.Alpha, f.Beta = (s1*bb-b1*sb)/det, (ss*b1-sb*s1)/det
	}
	switch {
	case det <= 1e-12*ss*bb || f.Beta < 0: // all of one size, or larger ones are faster
		if ss == 0 {
			return f, false
		}
		f.Alpha, f.Beta = s1/ss, 0
	case f.Alpha < 0:
		f.Alpha, f.Beta = 0, b1/bb
	}
	for _, p := range points {
		e := (f.Alpha*p.steps + f.Beta*p.bytes - p.time) / p.time
		f.Residual += e * e
	}
	f.Residual = math.Sqrt(f.Residual / float64(len(points)))
	return f, true
}

// steps is how many times a good algorithm has to wait for a message: the
// logarithm of the group's size.
func steps(ranks int) float64 { return math.Max(1, math.Log2(float64(max(ranks, 1)))) }

// Wire is the share of an operation's size that crosses the busiest wire, as
// bus bandwidth counts it (analyze/collective.Bandwidth).
func Wire(op comm.Op, ranks int) float64 {
	n := float64(max(ranks, 1))
	switch op {
	case comm.AllReduce:
		return 2 * (n - 1) / n
	case comm.AllGather, comm.AllGatherV, comm.ReduceScatter, comm.ReduceScatterV, comm.AllToAll, comm.AllToAllV, comm.Gather, comm.Scatter:
		return (n - 1) / n
	}
	return 1
}
