package tune_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mixdown/replay/tune"
)

func contention(backend, variant string, factor float64, n int64) tune.Contention {
	return tune.Contention{
		Contender: tune.Contender{Backend: backend, Variant: variant}, Device: tune.GPU, Factor: factor, CILow: factor - 0.1, CIHigh: factor + 0.2, N: n, Source: "mixdown tune",
	}
}

// A table keeps what communication makes of kernels, one factor for each contender:
// that which was measured from more kernels.
func TestContentions(t *testing.T) {
	x, more := table(t, row("gloo", 8, 100)), &tune.Table{}
	if err := x.AddContention(contention("rccl", "", 1.5, 30), contention("nccl", "ring", 1.2, 20), contention("nccl", "", 1.3, 20)); err != nil {
		t.Fatal(err)
	}
	if err := more.AddContention(contention("rccl", "", 1.6, 20), contention("nccl", "", 1.4, 25)); err != nil {
		t.Fatal(err)
	}
	if err := x.Merge(more); err != nil {
		t.Fatal(err)
	}
	data, err := x.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := tune.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	want := []tune.Contention{contention("nccl", "", 1.4, 25), contention("nccl", "ring", 1.2, 20), contention("rccl", "", 1.5, 30)}
	if diff := cmp.Diff(want, again.Contentions); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for text, want := range map[string]float64{"nccl": 1.4, "nccl:ring": 1.2, "nccl:tree": 1.4, "rccl": 1.5, "gloo": 0} {
		if c, ok := again.Contention(tune.ParseContender(text)); c.Factor != want || ok != (want > 0) {
			t.Errorf("%s: %+v, %v", text, c, ok)
		}
	}
}

func TestImpossibleContentionsAreRefused(t *testing.T) {
	for name, change := range map[string]func(*tune.Contention){
		"no backend": func(c *tune.Contention) { c.Backend = "" }, "a name that a mix can't have": func(c *tune.Contention) { c.Backend = "a b" },
		"host": func(c *tune.Contention) { c.Device = tune.Host }, "faster beside communication": func(c *tune.Contention) { c.Factor, c.CILow = 0.9, 0.8 },
		"no number": func(c *tune.Contention) { c.Factor = math.NaN() }, "endless": func(c *tune.Contention) { c.Factor, c.CIHigh = math.Inf(1), math.Inf(1) },
		"outside of its interval": func(c *tune.Contention) { c.CILow = 2 }, "interval of no number": func(c *tune.Contention) { c.CIHigh = math.NaN() },
		"from nothing": func(c *tune.Contention) { c.N = 0 },
	} {
		c := contention("nccl", "", 1.3, 20)
		change(&c)
		if err := (&tune.Table{}).AddContention(c); !errors.Is(err, tune.ErrRow) {
			t.Errorf("%s: %v, want ErrRow", name, err)
		}
		data, err := (&tune.Table{Contentions: []tune.Contention{c}}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tune.Decode(data); !errors.Is(err, tune.ErrNotTable) {
			t.Errorf("%s, in a file: %v, want ErrNotTable", name, err)
		}
	}
}
