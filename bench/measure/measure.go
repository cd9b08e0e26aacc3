// Package measure times whole commands for the benchmarks: wall clock, CPU time and
// peak memory.
package measure

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// Command is something to measure.
type Command struct {
	Name string
	Args []string // the program first
	Bar  bool     // part of what mixdown is compared with
	Once bool     // too slow for every round

	Walls, CPUs []time.Duration // of every run
	RSS         int64           // peak resident memory over all runs, bytes
}

// Run runs the command once. Its output is thrown away. The peak memory that the
// system reports of a child begins with that of its parent, which therefore must
// have done nothing large.
func (c *Command) Run() error {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	var messages bytes.Buffer
	cmd.Stderr = &messages
	begin := time.Now()
	err := cmd.Run()
	wall := time.Since(begin)
	if err != nil {
		return fmt.Errorf("%s: %w: %s", c.Name, err, messages.String())
	}
	c.Walls = append(c.Walls, wall)
	c.CPUs = append(c.CPUs, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.RSS = max(c.RSS, usage.Maxrss<<10)
	}
	return nil
}

// Median returns the median of durations, the upper one of two.
func Median(list []time.Duration) time.Duration {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}
