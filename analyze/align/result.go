package align

import (
	"math/bits"

	"mixdown/ingest/diagnostic"
)

// Clock is how the clock of one rank relates to that of its part's reference.
type Clock struct {
	Rank int // global

	// Offset is what this clock is ahead, in ns, at Epoch, a time this clock
	// showed. Drift is what it gains, in ns per 1e12 ns (1 ppm = 1e6), within
	// ±MaxDrift. All zero: the clock is used as it is.
	Offset, Drift, Epoch int64

	// Residual is the median distance, in ns, of this rank's ends of matched
	// collectives from the median of all members' ends, after the correction.
	// It means nothing when Matches, the ends used, is 0. Impossible matches do
	// not count.
	Residual int64
	Matches  int

	// Uncertainty bounds the error of Offset, in ns, where it was found from
	// messages, whose times only bound it; 0 where ends of collectives gave it.
	Uncertainty int64

	Component int // index into Result.Components
}

// MaxDrift is the largest drift that is believed, in parts per 1e12: 1000 ppm.
// Crystals keep within 100 ppm, and NTP slews by 500 ppm at most.
const MaxDrift = 1_000_000_000

// DriftPPM is the drift in parts per million, to be shown.
func (c Clock) DriftPPM() float64 { return float64(c.Drift) / 1e6 }

// Correct turns a time that this clock showed into the reference's. It never
// exchanges two times.
func (c Clock) Correct(t int64) int64 {
	t -= c.Offset
	if c.Drift == 0 {
		return t
	}
	return t - parts(t+c.Offset-c.Epoch, c.Drift)
}

// parts is n x drift / 1e12 rounded towards 0. The product has up to 93 bits.
func parts(n, drift int64) int64 {
	negative := (n < 0) != (drift < 0)
	hi, lo := bits.Mul64(magnitude(n), magnitude(drift))
	q, _ := bits.Div64(hi, lo, 1_000_000_000_000) // hi < 2^29, for |drift| <= MaxDrift
	if negative {
		return -int64(q)
	}
	return int64(q)
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

// Identity says whether the clock is used as it is.
func (c Clock) Identity() bool { return c.Offset == 0 && c.Drift == 0 }

// Result says how the clocks of a run relate.
type Result struct {
	Clocks []Clock // by index into Run.Ranks

	// Components are the parts of the run within which times can be compared, as
	// indices into Run.Ranks, the reference first. Connected: there is one at most.
	Components [][]int
	Connected  bool

	// Applied says whether any clock is moved, Reason why or why not.
	Applied bool
	Reason  string

	// Spread is how far apart, in ns, the ends of matched collectives lie as
	// traced, and Remaining after the correction: the median over the collectives
	// of a group, of the group with the largest. Valid with Compared, the number
	// of collectives they are from, above 0.
	Spread, Remaining int64
	Compared          int

	// Impossible are the matched collectives, as indices into the matching's, that
	// one member left, by the corrected clocks, before another one arrived. They
	// are wrong matches, or, where Reason says that clocks could not be told, a
	// wrong clock.
	Impossible []int

	Diagnostics diagnostic.Set
}

// Comparable says whether the corrected times of two ranks, given as indices
// into Run.Ranks, can be compared.
func (r *Result) Comparable(a, b int) bool {
	return r.Clocks[a].Component == r.Clocks[b].Component
}

// Resolution is the smallest difference, in ns, between the times of two
// comparable ranks that means something.
func (r *Result) Resolution(a, b int) int64 {
	if a == b {
		return 0
	}
	x, y := r.Clocks[a], r.Clocks[b]
	return x.Residual + x.Uncertainty + y.Residual + y.Uncertainty
}
