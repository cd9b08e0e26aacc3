package slowdown

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"mixdown/ingest/trace"
)

// ErrNotMeasured is for those who need a factor where Result.Known is false.
var ErrNotMeasured = errors.New("how much communication slows kernels can't be told from these traces")

// Result is what a run shows.
type Result struct {
	// Factor is how many times as long a kernel takes beside communication, Low and
	// High its 95 % interval. They mean something where Known is true.
	Factor, Low, High float64
	Known             bool
	Why               string // not known, in words for people; "" where it is

	Kernels int   // that began beside communication and were compared
	Alone   int   // that they were compared with
	Classes int   // of both
	Beside  int64 // ns that communication ran beside those kernels, all together
}

// Limits below which nothing is claimed.
const (
	minEach    = 3     // kernels of a class, beside communication and alone
	minKernels = 20    // beside communication, in all
	minClasses = 3     // kernels of one rank alone may have a reason of their own
	maxSpread  = 0.2   // of a class's kernels alone: range of the middle half over the median
	minFactor  = 1.01  // less is less than what clocks and rounding tell
	maxShare   = 0.999 // of time that can be lost: a factor of 1000
)

// Limits of what is looked at: as much more says little more.
const (
	maxRanks   = 16
	maxClasses = 300 // those with most time beside communication
	maxEach    = 256 // kernels of a class, on each side; fewer where there are many classes
	minKept    = 32
	maxKept    = 8_000 // kernels on each side, all classes together
	resamples  = 400
)

// Measure compares the kernels of a run. The events of its ranks are loaded one
// rank at a time.
func Measure(run *trace.Run) (*Result, error) {
	var classes []class
	devices := 0
	n := min(len(run.Ranks), maxRanks)
	for i := range n {
		rank := run.Ranks[i*len(run.Ranks)/n]
		if rank.CPUOnly {
			continue
		}
		devices++
		if err := rank.Acquire(); err != nil {
			return nil, fmt.Errorf("kernels of rank %d: %w", rank.Rank, err)
		}
		classes = append(classes, heaviest(classesOf(rank))...)
		rank.Release()
	}
	classes = heaviest(classes)
	for i := range classes {
		most := min(max(maxKept/len(classes), minKept), maxEach)
		classes[i].beside, classes[i].alone = thinned(classes[i].beside, most), thinned(classes[i].alone, most)
	}
	r := &Result{Factor: 1, Low: 1, High: 1, Classes: len(classes)}
	for i := range classes {
		r.Kernels += len(classes[i].beside)
		r.Alone += len(classes[i].alone)
		r.Beside += classes[i].weight
	}
	switch {
	case devices == 0:
		r.Why = "no rank has a device"
	case r.Kernels < minKernels || r.Classes < minClasses:
		r.Why = fmt.Sprintf("too few kernels ran both beside communication and without it: %d of %d kinds", r.Kernels, r.Classes)
	default:
		r.estimate(classes)
	}
	return r, nil
}

// class is kernels of a rank that do the same.
type class struct {
	beside, alone []observation
	weight        int64 // ns that communication ran beside all that began beside it
}

// heaviest are the classes with most time beside communication.
func heaviest(classes []class) []class {
	slices.SortStableFunc(classes, func(a, b class) int { return cmp.Compare(b.weight, a.weight) })
	return classes[:min(len(classes), maxClasses)]
}

// observation is one kernel: how long it took and how much of that communication
// ran beside, ns.
type observation struct{ dur, beside int64 }

// estimate finds the share of time that is lost, and its interval.
func (r *Result) estimate(classes []class) {
	var e estimator
	share := 0.0
	for range 4 { // what began alone may have met communication later: little, so this settles at once
		share = clamp(e.all(classes, share, nil))
	}
	rng := rand.New(rand.NewPCG(uint64(len(classes)), 95))
	shares := make([]float64, resamples)
	for i := range shares {
		shares[i] = clamp(e.all(classes, share, rng))
	}
	slices.Sort(shares)
	r.Factor, r.Low, r.High = 1/(1-share), 1/(1-shares[resamples/40]), 1/(1-shares[resamples-1-resamples/40])
	r.Low, r.High = min(r.Low, r.Factor), max(r.High, r.Factor)
	switch {
	case shares[resamples/200] > 0 && r.Factor >= minFactor:
		r.Known = true
	case r.High < 1:
		r.Why = fmt.Sprintf("kernels beside communication take %.3f times as long as others of their name and grid (95 %% interval %.3f to %.3f): they do other work", r.Factor, r.Low, r.High)
	default:
		r.Why = fmt.Sprintf("kernels beside communication take %.3f times as long as others (95 %% interval %.3f to %.3f): that is within chance", r.Factor, r.Low, r.High)
	}
}

func clamp(share float64) float64 { return min(max(share, -maxShare), maxShare) }

// estimator has room for what it sorts.
type estimator struct {
	each, kinds []weighted
	alone       []float64
}

type weighted struct{ value, weight float64 }

// all is the share of the run, of kernels and classes as they are or, with rng, of
// as many drawn from them. Kernels that began alone are taken to have lost `share` of
// the time that communication ran beside them.
func (e *estimator) all(classes []class, share float64, rng *rand.Rand) float64 {
	draw := func(i, n int) int {
		if rng == nil {
			return i
		}
		return rng.IntN(n)
	}
	e.kinds = e.kinds[:0]
	for i := range classes {
		c := &classes[draw(i, len(classes))]
		e.alone, e.each = e.alone[:0], e.each[:0]
		for k := range c.alone {
			o := c.alone[draw(k, len(c.alone))]
			e.alone = append(e.alone, float64(o.dur)-share*float64(o.beside))
		}
		slices.Sort(e.alone)
		d := (e.alone[(len(e.alone)-1)/2] + e.alone[len(e.alone)/2]) / 2
		for k := range c.beside {
			o := c.beside[draw(k, len(c.beside))]
			e.each = append(e.each, weighted{(float64(o.dur) - d) / float64(o.beside), float64(o.beside)})
		}
		e.kinds = append(e.kinds, weighted{median(e.each), float64(c.weight)})
	}
	return median(e.kinds)
}

// median is the weighted median. It reorders the list, which has one entry or more.
func median(list []weighted) float64 {
	slices.SortFunc(list, func(a, b weighted) int { return cmp.Compare(a.value, b.value) })
	var all, sum float64
	for _, w := range list {
		all += w.weight
	}
	for i, w := range list {
		sum += w.weight
		if sum > all/2 || i == len(list)-1 {
			return w.value
		}
		if sum == all/2 {
			return (w.value + list[i+1].value) / 2
		}
	}
	return math.NaN()
}
