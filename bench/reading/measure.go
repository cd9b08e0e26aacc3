package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"
)

// command is something to measure.
type command struct {
	name string
	args []string
	bar  bool // part of what mixdown is compared with
	once bool // too slow for every round

	walls, cpus []time.Duration
	rss         int64 // peak, bytes
}

// run runs the command once. Its output is thrown away.
func (c *command) run() error {
	cmd := exec.Command(c.args[0], c.args[1:]...)
	var messages bytes.Buffer
	cmd.Stderr = &messages
	begin := time.Now()
	err := cmd.Run()
	wall := time.Since(begin)
	if err != nil {
		return fmt.Errorf("%s: %w: %s", c.name, err, messages.String())
	}
	c.walls = append(c.walls, wall)
	c.cpus = append(c.cpus, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.rss = max(c.rss, usage.Maxrss<<10)
	}
	return nil
}

func median(list []time.Duration) time.Duration {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// report prints the table of a case.
func report(out io.Writer, c workload, packed []string, commands []*command) {
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
		fmt.Fprintf(w, "%s\t%.3f\t%.3f\t%.3f\t%d\t\n", cmd.name, slices.Min(cmd.walls).Seconds(),
			median(cmd.walls).Seconds(), median(cmd.cpus).Seconds(), cmd.rss/1e6)
		if cmd.bar {
			bar += median(cmd.walls)
			barMin += slices.Min(cmd.walls)
		}
	}
	w.Flush()
	own := commands[0]
	if barMin > 0 {
		fmt.Fprintf(out, "mixdown / the sum of the others it is measured against: %.2f by median, %.2f by minimum\n",
			float64(median(own.walls))/float64(bar), float64(slices.Min(own.walls))/float64(barMin))
	}
	fmt.Fprintf(out, "CPUs used: %.2f\n", float64(median(own.cpus))/float64(median(own.walls)))
}
