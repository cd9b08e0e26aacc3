package schedule

import (
	"slices"
	"strings"
)

// Description is what a user needs to know to choose a schedule.
type Description struct {
	Name    string
	Aliases []string
	Summary string   // one line
	Source  string   // whose order it is
	Keys    []string // what a spec may set, in the order of help
	Example string
}

// Known describes every schedule, simple ones first.
func Known() []Description {
	var list []Description
	for _, g := range generators() {
		d := g.Description
		d.Keys = g.keys()
		if d.Example == "" {
			d.Example = d.Name + ":ranks=4,microbatches=8"
		}
		list = append(list, d)
	}
	return list
}

// generator is a schedule and what its specs may say.
type generator struct {
	Description
	loops       int      // chunks per rank; 0: the user says
	own         []string // keys besides the common ones
	splits      bool     // has weight gradients of their own
	forwardOnly bool
	make        func(Shape) (Order, error)
}

// keys lists what a spec may set.
func (g generator) keys() []string {
	keys := []string{"ranks", "microbatches", "loops"}
	keys = append(keys, g.own...)
	keys = append(keys, "forward")
	if !g.forwardOnly {
		keys = append(keys, "backward")
	}
	if g.splits {
		keys = append(keys, "weight")
	}
	return append(keys, "hop")
}

// lookup finds a schedule by its name or alias.
func lookup(name string) (generator, bool) {
	for _, g := range generators() {
		if g.Name == name || slices.Contains(g.Aliases, name) {
			return g, true
		}
	}
	return generator{}, false
}

// names lists the schedules for a message.
func names() string {
	list := []string{Traced}
	for _, g := range generators() {
		list = append(list, g.Name)
		list = append(list, g.Aliases...)
	}
	return strings.Join(list, " ")
}

func generators() []generator {
	return []generator{
		{
			Description: Description{
				Name:    "gpipe",
				Summary: "all forwards, then all backwards",
				Source:  "PyTorch ScheduleGPipe",
			},
			loops: 1, make: gpipe,
		}, {
			Description: Description{
				Name:    "1f1b",
				Summary: "backwards as early as possible: bubble of gpipe, memory of p micro-batches",
				Source:  "Megatron-LM, DeepSpeed, PyTorch Schedule1F1B",
			},
			loops: 1, make: oneFOneB,
		}, {
			Description: Description{
				Name:    "eager-1f1b",
				Summary: "1f1b with twice the forwards ahead: hides hops, holds twice as much",
				Source:  "arXiv 2211.05322, Alpa",
			},
			loops: 1, make: eagerOneFOneB,
		}, {
			Description: Description{
				Name:    "depth-first",
				Aliases: []string{"interleaved"},
				Summary: "several chunks per rank in a loop, groups of micro-batches through all of them",
				Source:  "Megatron-LM interleaved",
				Example: "depth-first:ranks=4,microbatches=8,loops=2",
			},
			own: []string{"group"}, make: depthFirst,
		}, {
			Description: Description{
				Name:    "breadth-first",
				Summary: "several chunks per rank in a loop, all micro-batches through each: any number of them, hides hops and gradient reductions, holds everything",
				Source:  "arXiv 2211.05953, Fast-LLM, PyTorch ScheduleLoopedBFS",
				Example: "breadth-first:ranks=4,microbatches=8,loops=4,forward=1,backward=2",
			},
			own: []string{"backward-order", "placement"}, make: breadthFirst,
		}, {
			Description: Description{
				Name:    "hybrid",
				Summary: "breadth-first in several rounds: holds less, pays the bubble in each",
				Source:  "Fast-LLM",
				Example: "hybrid:ranks=4,microbatches=8,loops=2,rounds=2",
			},
			own: []string{"rounds", "backward-order", "placement"}, make: hybrid,
		}, {
			Description: Description{
				Name:    "zb-h1",
				Aliases: []string{"zb1p"},
				Summary: "1f1b with weight gradients put off into the cool-down",
				Source:  "sail-sg zero bubble",
			},
			loops: 1, splits: true, make: zeroBubbleH1,
		}, {
			Description: Description{
				Name:    "zb-h2",
				Aliases: []string{"zb2p"},
				Summary: "zb-h1 with more forwards ahead: ranks hardly idle between their first and last action",
				Source:  "sail-sg zero bubble",
			},
			loops: 1, splits: true, make: zeroBubbleH2,
		}, {
			Description: Description{
				Name:    "interleaved-zero-bubble",
				Aliases: []string{"interleaved-zb"},
				Summary: "depth-first with fewer forwards ahead and weight gradients put off into the cool-down",
				Source:  "PyTorch ScheduleInterleavedZeroBubble",
				Example: "interleaved-zero-bubble:ranks=4,microbatches=8,loops=2",
			},
			own: []string{"group"}, splits: true, make: interleavedZeroBubble,
		}, {
			Description: Description{
				Name:    "zbv",
				Summary: "two chunks per rank in a V, weight gradients apart: zb-h2's bubble, 1f1b's memory",
				Source:  "sail-sg zero bubble, PyTorch ScheduleZBVZeroBubble",
			},
			loops: 2, splits: true, make: zbv,
		}, {
			Description: Description{
				Name:    "dualpipev",
				Summary: "two chunks per rank in a V, forwards paired with backwards",
				Source:  "deepseek-ai DualPipe, PyTorch ScheduleDualPipeV",
			},
			loops: 2, splits: true, make: dualPipeV,
		}, {
			Description: Description{
				Name:    "dualpipe",
				Summary: "two pipelines in opposite directions, forwards paired with backwards, weights held twice",
				Source:  "deepseek-ai DualPipe",
			},
			loops: 2, splits: true, make: dualPipe,
		}, {
			Description: Description{
				Name:    "chimera",
				Summary: "two pipelines in opposite directions, weights held twice",
				Source:  "Chimera's placement, greedy order",
			},
			loops: 2, make: chimera,
		}, {
			Description: Description{
				Name:    "bitpipe",
				Summary: "two V-shaped pipelines in opposite directions, weights held twice",
				Source:  "arXiv 2410.19367's placement, greedy order",
			},
			loops: 4, make: bitPipe,
		}, {
			Description: Description{
				Name:    "inference",
				Aliases: []string{"forward-only"},
				Summary: "forwards alone",
				Source:  "DeepSpeed InferenceSchedule",
				Example: "inference:ranks=4,microbatches=8,loops=1",
			},
			forwardOnly: true, make: inference,
		},
	}
}
