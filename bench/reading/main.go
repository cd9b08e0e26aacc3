// Command reading measures how fast "mixdown analyze" reads large traces, side
// by side with the least that anybody could do: inflating the file with igzip
// and walking over it with simdjson. It prints a table of times and of their
// ratios; ratios, unlike times, can be compared between machines.
//
// The traces are made from real ones, repeated and shifted in time, and kept in
// a cache folder.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"mixdown/bench/measure"
)

type options struct {
	mixdown, corpus, cache string
	walk                   string
	rounds                 int
	cases                  string
	make                   bool
}

func main() {
	var o options
	flag.StringVar(&o.mixdown, "mixdown", "bin/mixdown", "the `program` to measure")
	flag.StringVar(&o.corpus, "corpus", os.Getenv("MIXDOWN_CORPUS"), "`folder` of real traces")
	flag.StringVar(&o.cache, "cache", "build/bench", "`folder` for large traces and helpers")
	flag.StringVar(&o.walk, "walk", "bench/simdjson/walk.cpp", "`source` of the simdjson walk")
	flag.IntVar(&o.rounds, "rounds", 7, "how often each command runs")
	flag.StringVar(&o.cases, "cases", "", "comma list of `names` of traces to measure; all when empty")
	flag.BoolVar(&o.make, "make", false, "make the traces and measure nothing")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "reading:", err)
		os.Exit(1)
	}
}

// workload is a large trace and how it is made.
type workload struct {
	name, about string
	from        string // in the corpus
	repeat      int
	files       int // more than one: as many ranks
}

var cases = []workload{
	{"big", "whole microseconds, compresses well", "hta/negative_queue_length_values_check/rank0.json.gz", 16, 1},
	{"half", "half of it: cost must halve", "hta/negative_queue_length_values_check/rank0.json.gz", 8, 1},
	{"float", "times with fractions, compresses less", "hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", 27, 1},
	{"rocm", "MI300, times with fractions", "tracelens/mi300/resnet_act_checkpoint.json.gz", 24, 1},
	{"eight", "eight files: must use all CPUs", "hta/negative_queue_length_values_check/rank0.json.gz", 4, 8},
}

func run(o options) error {
	if o.corpus == "" {
		fmt.Println("no real traces to make large ones of: MIXDOWN_CORPUS is not set")
		return nil
	}
	if err := os.MkdirAll(o.cache, 0o755); err != nil {
		return err
	}
	walk, err := buildWalk(o)
	if err != nil && !o.make {
		fmt.Printf("no simdjson walk: %v (Debian: libsimdjson-dev, g++)\n", err)
	}
	igzip, err := exec.LookPath("igzip")
	if err != nil && !o.make {
		fmt.Println("no igzip in PATH (Debian: isal)")
	}
	for _, c := range cases {
		if o.cases != "" && !strings.Contains(","+o.cases+",", ","+c.name+",") {
			continue
		}
		if o.make {
			if _, _, err := makeTraces(o, c); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			continue
		}
		if err := makeApart(c); err != nil {
			return err
		}
		packed, plain, err := makeTraces(o, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		commands := []*measure.Command{{Name: "mixdown analyze", Args: append([]string{o.mixdown, "analyze", "--ranks-from", `rank(\d+)`}, packed...)}}
		if c.files == 1 && igzip != "" {
			commands = append(commands, &measure.Command{Name: "igzip -dc", Args: []string{igzip, "-dc", packed[0]}, Bar: true})
		}
		if c.files == 1 && walk != "" {
			commands = append(commands, &measure.Command{Name: "simdjson walk", Args: []string{walk, plain}, Bar: true})
		}
		if hta := filepath.Join(o.cache, "hta/venv/bin/python"); c.name == "half" && exists(hta) {
			commands = append(commands, &measure.Command{Name: "HTA", Args: []string{hta, "-c", htaScript, filepath.Dir(plain)}, Once: true})
		}
		for round := range o.rounds {
			for _, cmd := range commands {
				if cmd.Once && round > 0 {
					continue
				}
				if err := cmd.Run(); err != nil {
					return err
				}
			}
		}
		report(os.Stdout, c, packed, commands)
	}
	return nil
}

// htaScript loads a folder of traces with Holistic Trace Analysis, where
// bench/hta/run.sh has made a virtual environment with it.
const htaScript = `import sys
from hta.trace_analysis import TraceAnalysis
TraceAnalysis(trace_dir=sys.argv[1]).get_temporal_breakdown(visualize=False)`

// makeApart makes the traces of a workload in a process of its own: the peak
// memory that the system reports of a child begins with that of its parent.
func makeApart(c workload) error {
	args := []string{"-make", "-cases", c.name}
	flag.Visit(func(f *flag.Flag) {
		if f.Name != "cases" {
			args = append(args, "-"+f.Name+"="+f.Value.String())
		}
	})
	cmd := exec.Command(os.Args[0], args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// buildWalk compiles the simdjson walk.
func buildWalk(o options) (string, error) {
	if o.make {
		return "", nil
	}
	bin := filepath.Join(o.cache, "walk")
	out, err := exec.Command("g++", "-O2", "-o", bin, o.walk, "-lsimdjson").CombinedOutput()
	if err != nil {
		first, _, _ := strings.Cut(string(out), "\n")
		return "", fmt.Errorf("%w: %s", err, first)
	}
	return bin, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
