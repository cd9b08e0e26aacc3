package schedule

import (
	"errors"
	"fmt"
	"strings"
)

// ErrSpec: a schedule was asked for in a way that can't be met.
var ErrSpec = errors.New("invalid schedule")

// Traced is the schedule that keeps the order of the trace.
const Traced = "traced"

// maxRanks bounds the pipelines that orders are made for.
const maxRanks = 1 << 13

// Spec is a schedule and what is known of the job that it is for.
type Spec struct {
	Name  string // as it was asked for: a name or alias of Known, or Traced
	Shape        // zeros are not given; Fill completes it from a trace
	Costs Costs  // DefaultCosts where not given
}

// IsTraced says whether the spec keeps the order of the trace.
func (s Spec) IsTraced() bool { return s.Name == Traced }

// Fill is the spec with what it leaves open taken from a job.
func (s Spec) Fill(ranks, microbatches, loops int) Spec {
	set := func(to *int, n int) {
		if *to == 0 {
			*to = n
		}
	}
	set(&s.Ranks, ranks)
	set(&s.Microbatches, microbatches)
	if g, ok := lookup(s.Name); ok && g.loops > 0 {
		loops = g.loops
	}
	set(&s.Loops, loops)
	return s
}

// Order makes the order. The error is ErrSpec, and says what to change.
func (s Spec) Order() (Order, error) {
	if s.IsTraced() {
		return nil, fmt.Errorf("%w: %s is the order of a trace: name another schedule here (known: %s)", ErrSpec, Traced, names())
	}
	g, ok := lookup(s.Name)
	if !ok {
		return nil, fmt.Errorf("%w: unknown name %q (known: %s)", ErrSpec, s.Name, names())
	}
	if err := s.complete(g); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	s.Loops = max(s.Loops, g.loops)
	o, err := g.make(s.Shape)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	return o, nil
}

// complete checks what every generator relies on.
func (s Spec) complete(g generator) error {
	var missing []string
	lacks := func(n int, key string) {
		if n <= 0 {
			missing = append(missing, key)
		}
	}
	lacks(s.Ranks, "ranks")
	lacks(s.Microbatches, "microbatches")
	lacks(max(s.Loops, g.loops), "loops")
	switch {
	case len(missing) > 0:
		example := g.Name + ":ranks=4,microbatches=8"
		if g.loops == 0 {
			example += ",loops=2"
		}
		return fmt.Errorf("%s needs %s (for example %s)", s.Name, strings.Join(missing, ", "), example)
	case g.loops > 0 && s.Loops != 0 && s.Loops != g.loops:
		return fmt.Errorf("%s always has loops=%d, not loops=%d: leave loops out", s.Name, g.loops, s.Loops)
	case g.Name == "depth-first" && s.Loops == 1:
		return fmt.Errorf("%s needs loops=2 or more: with one chunk per rank use 1f1b", s.Name)
	case s.Ranks > maxRanks:
		return fmt.Errorf("ranks=%d: at most %d", s.Ranks, maxRanks)
	}
	perRank := int64(s.Microbatches) * int64(max(s.Loops, g.loops)) * 3
	if s.Microbatches > maxActions || s.Loops > maxActions || perRank > maxActions/int64(s.Ranks) {
		return fmt.Errorf("ranks × microbatches × loops is more than %d: lower one of them", maxActions/3)
	}
	return nil
}
