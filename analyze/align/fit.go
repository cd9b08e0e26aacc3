package align

import (
	"math"
	"slices"
)

// What makes a drift believed: standard errors, and ns over the window.
const (
	driftErrors = 3
	driftEffect = 1_000
)

// near is how far from its line, in ns, an end of a right match may lie when
// lines are weighed by the points they explain.
const near = Agreement / 2

// maxPoints and maxLines bound the work of weighing lines: more points and
// lines are sampled evenly.
const (
	maxPoints = 400
	maxLines  = 400
)

// fit finds the offset and drift of a clock from its readings x and what it was
// ahead at each, y; at least one of them. See the package comment for the method.
func fit(x, y []int64) Clock {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case x[a] < x[b]:
			return -1
		case x[a] > x[b]:
			return 1
		}
		return a - b
	})
	first, last := x[order[0]], x[order[len(order)-1]]
	c := Clock{Epoch: first + (last-first)/2, Offset: median(slices.Clone(y))}
	// From here on differences, small enough for float64 to hold exactly.
	p := make(points, len(x))
	for i, k := range order {
		p[i] = point{float64(x[k] - c.Epoch), float64(y[k] - c.Offset)}
	}
	p = p.close(p.best())
	slope, told := p.slope()
	if told {
		c.Drift = int64(math.Round(slope * 1e12))
	} else {
		slope = 0
	}
	c.Offset += int64(math.Round(p.height(slope)))
	return c
}

// points by x, in ns from the middle of the window; y in ns from the median.
type points []point

type point struct{ x, y float64 }

type line struct{ slope, height float64 }

func (l line) miss(p point) float64 { return math.Abs(p.y - l.height - l.slope*p.x) }

// best is the line through most of the points. The two robust ones, level and
// Theil's, are taken unless another one explains more: wrong matches come in
// runs (one lost event shifts those after it) and may be the majority, but they
// scatter while the right ones lie on one line.
func (p points) best() line {
	level := line{0, p.height(0)}
	theil, ok := p.theil()
	best, most := level, p.explains(level)
	if ok {
		if n := p.explains(theil); n > most || n == most && p.missed(theil) < p.missed(level) {
			best, most = theil, n
		}
	}
	if most == len(p) {
		return best
	}
	for _, l := range p.lines() {
		if n := p.explains(l); n > most && n >= MinMatches {
			best, most = l, n
		}
	}
	return best
}

// explains is how many points lie near the line, of those sampled.
func (p points) explains(l line) int {
	n := 0
	for i := 0; i < len(p); i += 1 + len(p)/maxPoints {
		if l.miss(p[i]) <= near {
			n++
		}
	}
	return n
}

// missed is the median distance of the points from the line.
func (p points) missed(l line) float64 {
	list := make([]float64, len(p))
	for i := range p {
		list[i] = l.miss(p[i])
	}
	return medianFloat(list)
}

// height is that of the line of a slope that leaves the least absolute deviation.
func (p points) height(slope float64) float64 {
	list := make([]float64, len(p))
	for i := range p {
		list[i] = p[i].y - slope*p[i].x
	}
	return medianFloat(list)
}

// theil is the line with the median slope of points half the sequence apart.
func (p points) theil() (line, bool) {
	half := len(p) / 2
	var slopes []float64
	for i := 0; i+half < len(p); i++ {
		if s, ok := slopeOf(p[i], p[i+half]); ok {
			slopes = append(slopes, s)
		}
	}
	if len(slopes) < 2 {
		return line{}, false
	}
	slope := medianFloat(slopes)
	return line{slope, p.height(slope)}, true
}

// slopeOf reports false where no clock drifts so.
func slopeOf(a, b point) (float64, bool) {
	s := (b.y - a.y) / (b.x - a.x)
	return s, b.x > a.x && math.Abs(s) <= MaxDrift/1e12
}

// lines are those through points a half, a quarter, an eighth ... of the
// sequence apart, and level ones through each point.
func (p points) lines() []line {
	var list []line
	for i := range p {
		list = append(list, line{0, p[i].y})
	}
	for apart := len(p) / 2; apart > 0; apart /= 2 {
		for i := 0; i+apart < len(p); i++ {
			if s, ok := slopeOf(p[i], p[i+apart]); ok {
				list = append(list, line{s, p[i].y - s*p[i].x})
			}
		}
	}
	var sample []line
	for i := 0; i < len(list); i += 1 + len(list)/maxLines {
		sample = append(sample, list[i])
	}
	return sample
}

// close returns the points that the line explains: within five median
// deviations, or near when it explains at least MinMatches points that way.
func (p points) close(l line) points {
	limit := max(5*p.missed(l), 1_000)
	if p.explains(l) >= MinMatches {
		limit = min(limit, near)
	}
	var list points
	for i := range p {
		if l.miss(p[i]) <= limit {
			list = append(list, p[i])
		}
	}
	return list
}

// slope is that of the points by least squares, and whether they tell it.
func (p points) slope() (float64, bool) {
	n := float64(len(p))
	if len(p) < MinMatches {
		return 0, false
	}
	var mx, my float64
	for _, q := range p {
		mx, my = mx+q.x/n, my+q.y/n
	}
	var xx, xy, rest float64
	for _, q := range p {
		xx += (q.x - mx) * (q.x - mx)
		xy += (q.x - mx) * (q.y - my)
	}
	if xx == 0 {
		return 0, false
	}
	slope := xy / xx
	for _, q := range p {
		d := q.y - my - slope*(q.x-mx)
		rest += d * d
	}
	err := math.Sqrt(rest / (n - 2) / xx)
	size := math.Abs(slope)
	told := size > driftErrors*err && size*(p[len(p)-1].x-p[0].x) > driftEffect && size <= MaxDrift/1e12
	return slope, told
}

// medianFloat is the median of a list that is not empty, which it reorders.
func medianFloat(list []float64) float64 {
	slices.Sort(list)
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}
