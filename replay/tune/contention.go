package tune

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mixdown/replay/tune/tunepb"
)

// Contention is how many times as long a kernel takes on a device while an operation
// of a contender runs beside it there.
type Contention struct {
	Contender
	Device        string  // GPU
	Factor        float64 // 1: not at all
	CILow, CIHigh float64 // 95 % confidence interval of the factor
	N             int64   // kernels that it was measured from
	Source        string  // "mixdown tune"
}

// maxContention bounds the factor that is believed.
const maxContention = 1000

// Check refuses what can't be a measurement.
func (c *Contention) Check() error {
	switch {
	case c.Backend == "" || strings.ContainsAny(c.Backend, ":,=@ \n") || strings.ContainsAny(c.Variant, ",@\n"):
		return fmt.Errorf("%w: contention of contender %q", ErrRow, c.Contender)
	case c.Device != GPU:
		return fmt.Errorf("%w: contention on device %q: known is gpu", ErrRow, c.Device)
	case !(c.Factor >= 1 && c.Factor <= maxContention) || !(c.CILow >= 0 && c.CILow <= c.Factor) || !(c.CIHigh >= c.Factor):
		return fmt.Errorf("%w: contention of %s: factor %g, interval %g to %g", ErrRow, c.Contender, c.Factor, c.CILow, c.CIHigh)
	case c.N < 1:
		return fmt.Errorf("%w: contention of %s measured from %d kernels", ErrRow, c.Contender, c.N)
	}
	return nil
}

// AddContention adds factors. Of two of the same contender on the same device the one
// measured from more kernels stays, and the later one where both have as many.
func (t *Table) AddContention(list ...Contention) error {
	for _, c := range list {
		if err := c.Check(); err != nil {
			return err
		}
		i, ok := slices.BinarySearchFunc(t.Contentions, c, func(a, b Contention) int {
			return cmp.Or(cmp.Compare(a.Backend, b.Backend), cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.Device, b.Device))
		})
		switch {
		case !ok:
			t.Contentions = slices.Insert(t.Contentions, i, c)
		case c.N >= t.Contentions[i].N:
			t.Contentions[i] = c
		}
	}
	return nil
}

// Contention is what the table knows of a contender on GPUs: with its settings, else
// of the library with its own choice of them; false where it knows neither.
func (t *Table) Contention(of Contender) (Contention, bool) {
	for _, want := range []Contender{of, {Backend: of.Backend}} {
		for _, c := range t.Contentions {
			if c.Contender == want && c.Device == GPU {
				return c, true
			}
		}
	}
	return Contention{}, false
}

func (c *Contention) encode() *tunepb.Contention {
	return &tunepb.Contention{
		Backend: c.Backend, Variant: c.Variant, Device: c.Device, Factor: c.Factor, CiLow: c.CILow, CiHigh: c.CIHigh, N: c.N, Source: c.Source,
	}
}

func decodeContention(x *tunepb.Contention) Contention {
	return Contention{
		Contender: Contender{x.Backend, x.Variant}, Device: x.Device, Factor: x.Factor, CILow: x.CiLow, CIHigh: x.CiHigh, N: x.N, Source: x.Source,
	}
}
