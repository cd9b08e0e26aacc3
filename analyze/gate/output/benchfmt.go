package output

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"mixdown/analyze/gate"
	"mixdown/analyze/report"
)

// writeBenchfmt writes the values of both runs in the Go benchmark format
// (golang.org/design/14313-benchmark-format), one line for each step, with the run
// as configuration: benchstat -col run compares them.
func writeBenchfmt(w io.Writer, r *Document) error {
	var b bytes.Buffer
	b.WriteString("tool: mixdown\n")
	for _, side := range []struct {
		run    string
		sample func(*gate.Check) *gate.Sample
		info   *gate.Side
	}{
		{"baseline", func(c *gate.Check) *gate.Sample { return c.Baseline }, r.Before},
		{"candidate", func(c *gate.Check) *gate.Sample { return c.Candidate }, r.After},
	} {
		if side.info == nil {
			continue
		}
		// More configuration than the run would make benchstat show two tables.
		fmt.Fprintf(&b, "\n# %s\nrun: %s\n", report.Printable(SideText(side.info)), side.run)
		written := map[string]bool{} // rules may share a metric
		for i := range r.Checks {
			c := &r.Checks[i]
			s, name := side.sample(c), benchName(c)
			if s == nil || written[name] {
				continue
			}
			written[name] = true
			for _, v := range s.Values {
				fmt.Fprintf(&b, "%s 1 %s\n", name, measure(c.Unit, v))
			}
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// benchName is a benchmark's name: its labels are sub-names, /key=value.
func benchName(c *gate.Check) string {
	var b strings.Builder
	b.WriteString("BenchmarkMixdown/metric=" + string(c.Metric))
	for _, l := range []gate.Label{gate.ByRank, gate.ByGroup, gate.ByOp, gate.BySize, gate.ByPhase, gate.ByVariant} {
		if v, ok := c.Labels[l]; ok {
			fmt.Fprintf(&b, "/%s=%s", l, word(v))
		}
	}
	return b.String()
}

// word makes one word without a slash of a name.
func word(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '/' || c == '-' || unicode.IsSpace(c) || !unicode.IsPrint(c) {
			return '_' // a dash and a number at the end would be taken for GOMAXPROCS
		}
		return c
	}, name)
}

// measure is a value with a unit that benchstat knows how to scale.
func measure(u gate.Unit, v float64) string {
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	switch u {
	case gate.Nanoseconds:
		return number(v) + " ns/op"
	case gate.ByteCount:
		return number(v) + " B/op"
	case gate.GBPerSecond:
		return number(v*1e3) + " MB/s"
	case gate.Pieces:
		return number(v) + " pieces/op"
	}
	return number(v) + " ratio"
}
