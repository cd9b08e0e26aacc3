package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
)

// verdict on a case.
type verdict string

const (
	met      verdict = "met"
	over     verdict = "OVER"
	notClear verdict = "not clear"
)

// estimate is a median with a 95 % confidence interval, from order statistics.
type estimate struct{ median, low, high float64 }

func estimateOf(values []float64) estimate {
	if len(values) == 0 {
		return estimate{math.NaN(), math.Inf(-1), math.Inf(1)}
	}
	slices.Sort(values)
	n := float64(len(values))
	reach := 0.98 * math.Sqrt(n)
	low, high := int(math.Floor(n/2-reach)), int(math.Ceil(n/2+reach))
	e := estimate{values[len(values)/2], math.Inf(-1), math.Inf(1)}
	if low >= 0 && high < len(values) {
		e.low, e.high = values[low], values[high]
	}
	return e
}

func (c *benchCase) of(f func(pair) float64) estimate {
	values := make([]float64, len(c.pairs))
	for i, p := range c.pairs {
		values[i] = f(p)
	}
	return estimateOf(values)
}

// added is what the worker adds to an operation, us.
func (c *benchCase) added() estimate {
	return c.of(func(p pair) float64 { return (p.worker - p.alone) / 1e3 })
}

func (c *benchCase) ratio() estimate {
	return c.of(func(p pair) float64 { return p.worker / p.alone })
}

func (c *benchCase) large() bool { return c.bytes >= largeBytes }

// verdict holds the median of the pairs' differences against the limit. A median
// beyond it counts when the interval is beyond it too, and in each start by itself:
// where the system happens to put the memory of a process makes up to a tenth of
// what a large operation takes, as long as the process lives.
func (c *benchCase) verdict() verdict {
	of, limit := func(p pair) float64 { return (p.worker - p.alone) / 1e3 }, limitUs
	if c.large() {
		of, limit = func(p pair) float64 { return p.worker / p.alone }, limitRatio
	}
	e := c.of(of)
	switch {
	case e.median <= limit:
		return met
	case e.low > limit && c.leastStart(of) > limit:
		return over
	}
	return notClear
}

// leastStart is the smallest median of a start.
func (c *benchCase) leastStart(of func(pair) float64) float64 {
	starts := map[uint64][]float64{}
	for _, p := range c.pairs {
		starts[p.start] = append(starts[p.start], of(p))
	}
	least := math.Inf(1)
	for _, values := range starts {
		least = min(least, estimateOf(values).median)
	}
	return least
}

// printCases prints the cases of one library on one number of ranks.
func printCases(out io.Writer, cases []*benchCase) {
	fmt.Fprintf(out, "\n%s, %d ranks: one operation, medians; limits: %.0f us below %d bytes, %.0f %% from there on\n",
		cases[0].library, cases[0].ranks, limitUs, largeBytes, 100*(limitRatio-1))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "op\tbytes\talone us\tworker us\tadded us\tadded %\tmean added us\t95 % CI\tpairs\tdropped\tlimit\t\n")
	for _, c := range cases {
		alone, worker := c.of(func(p pair) float64 { return p.alone / 1e3 }), c.of(func(p pair) float64 { return p.worker / 1e3 })
		ratio, added := c.ratio(), c.added()
		interval := fmt.Sprintf("%.2f..%.2f us", added.low, added.high)
		if c.large() {
			interval = fmt.Sprintf("%.1f..%.1f %%", 100*(ratio.low-1), 100*(ratio.high-1))
		}
		mean := c.of(func(p pair) float64 { return (p.workerMean - p.aloneMean) / 1e3 })
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%.2f\t%.2f\t%.1f\t%.2f\t%s\t%d\t%d\t%s\t\n", c.op, c.bytes, alone.median, worker.median,
			added.median, 100*(ratio.median-1), mean.median, interval, len(c.pairs), c.dropped, c.verdict())
	}
	w.Flush()
}
