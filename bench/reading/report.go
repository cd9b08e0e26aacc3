package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"mixdown/bench/measure"
)

// report prints the table of a case.
func report(out io.Writer, c workload, packed []string, commands []*measure.Command) {
	size := int64(0)
	for _, name := range packed {
		if info, err := os.Stat(name); err == nil {
			size += info.Size()
		}
	}
	fmt.Fprintf(out, "\n%s: %s (%d files, %d MB gzipped)\n", c.name, c.about, len(packed), size/1e6)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "command\tmin s\tmedian s\tcpu s\tpeak MB\t\n")
	var bar, barMin time.Duration
	for _, cmd := range commands {
		fmt.Fprintf(w, "%s\t%.3f\t%.3f\t%.3f\t%d\t\n", cmd.Name, slices.Min(cmd.Walls).Seconds(),
			measure.Median(cmd.Walls).Seconds(), measure.Median(cmd.CPUs).Seconds(), cmd.RSS/1e6)
		if cmd.Bar {
			bar += measure.Median(cmd.Walls)
			barMin += slices.Min(cmd.Walls)
		}
	}
	w.Flush()
	own := commands[0]
	if barMin > 0 {
		fmt.Fprintf(out, "mixdown / the sum of the others it is measured against: %.2f by median, %.2f by minimum\n",
			float64(measure.Median(own.Walls))/float64(bar), float64(slices.Min(own.Walls))/float64(barMin))
	}
	fmt.Fprintf(out, "CPUs used: %.2f\n", float64(measure.Median(own.CPUs))/float64(measure.Median(own.Walls)))
}
