package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Parse reads a schedule as the command line takes it: a name of Known, and
// after a colon what is known of the job and of the durations.
//
//	breadth-first:ranks=4,microbatches=8,loops=4,forward=1,backward=2
//
// ranks, microbatches and loops may be left open for Spec.Fill. backward is the
// full backward of one chunk; weight the part of it that makes the weights'
// gradient, by default half. Durations are whole numbers, decimals or fractions
// in any unit. The error is ErrSpec.
func Parse(text string) (Spec, error) {
	s, err := parse(strings.TrimSpace(text))
	if err != nil {
		return Spec{}, fmt.Errorf("%w %q: %w", ErrSpec, shorten(text), err)
	}
	return s, nil
}

// shorten keeps hostile text out of messages.
func shorten(text string) string {
	if len(text) > 200 {
		return strings.ToValidUTF8(text[:200], "") + "..."
	}
	return text
}

func parse(text string) (Spec, error) {
	name, settings, colon := strings.Cut(text, ":")
	s := Spec{Name: strings.ToLower(strings.TrimSpace(name)), Costs: DefaultCosts()}
	if s.Name == Traced {
		if colon {
			return s, errors.New("traced takes no settings")
		}
		return s, nil
	}
	g, ok := lookup(s.Name)
	if !ok {
		return s, fmt.Errorf("unknown name %q (known: %s)", shorten(name), names())
	}
	given := map[string]bool{}
	if colon {
		for setting := range strings.SplitSeq(settings, ",") {
			key, value, ok := strings.Cut(setting, "=")
			key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
			if !ok || key == "" || value == "" {
				return s, fmt.Errorf("setting %q: expected KEY=VALUE (keys of %s: %s)", shorten(setting), s.Name, strings.Join(g.keys(), " "))
			}
			if !slices.Contains(g.keys(), key) {
				return s, fmt.Errorf("%s has no setting %q (known: %s)", s.Name, shorten(key), strings.Join(g.keys(), " "))
			}
			if given[key] {
				return s, fmt.Errorf("%s is set twice", key)
			}
			given[key] = true
			if err := s.set(key, value); err != nil {
				return s, fmt.Errorf("%s=%s: %w", key, shorten(value), err)
			}
		}
	}
	if !given["weight"] {
		s.Costs.Weight = s.Costs.Backward.Mul(Ratio(1, 2))
	}
	if g.loops > 0 && s.Loops != 0 && s.Loops != g.loops {
		return s, fmt.Errorf("%s always has loops=%d, not loops=%d: leave loops out", s.Name, g.loops, s.Loops)
	}
	return s, s.Costs.check()
}

// set reads one setting.
func (s *Spec) set(key, value string) (err error) {
	switch key {
	case "ranks":
		s.Ranks, err = parseCount(value)
	case "microbatches":
		s.Microbatches, err = parseCount(value)
	case "loops":
		s.Loops, err = parseCount(value)
	case "group":
		s.Group, err = parseCount(value)
	case "rounds":
		s.Rounds, err = parseCount(value)
	case "backward-order":
		s.BackwardOrder, err = oneOf(value, FIFO, LIFO)
	case "placement":
		s.Placement, err = oneOf(value, Loop, V)
	case "forward":
		s.Costs.Forward, err = ParseRational(value)
	case "backward":
		s.Costs.Backward, err = ParseRational(value)
	case "weight":
		s.Costs.Weight, err = ParseRational(value)
	case "hop":
		s.Costs.Hop, err = ParseRational(value)
	}
	return err
}

func parseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxIndex {
		return 0, fmt.Errorf("expected a whole number from 1 to %d", maxIndex)
	}
	return n, nil
}

func oneOf[T fmt.Stringer](text string, choices ...T) (T, error) {
	var names []string
	for _, c := range choices {
		if strings.EqualFold(c.String(), text) {
			return c, nil
		}
		names = append(names, c.String())
	}
	var none T
	return none, fmt.Errorf("expected %s", strings.Join(names, " or "))
}

// String is the spec as Parse reads it, with only what differs from the
// defaults.
func (s Spec) String() string {
	var settings []string
	add := func(key, value string) { settings = append(settings, key+"="+value) }
	for _, c := range []struct {
		key string
		n   int
	}{{"ranks", s.Ranks}, {"microbatches", s.Microbatches}, {"loops", s.Loops}, {"group", s.Group}, {"rounds", s.Rounds}} {
		if c.n != 0 {
			add(c.key, strconv.Itoa(c.n))
		}
	}
	if s.BackwardOrder != FIFO {
		add("backward-order", s.BackwardOrder.String())
	}
	if s.Placement != Loop {
		add("placement", s.Placement.String())
	}
	usual := DefaultCosts()
	if !s.Costs.Forward.Equal(usual.Forward) {
		add("forward", s.Costs.Forward.String())
	}
	if !s.Costs.Backward.Equal(usual.Backward) {
		add("backward", s.Costs.Backward.String())
	}
	if !s.Costs.Weight.Equal(s.Costs.Backward.Mul(Ratio(1, 2))) {
		add("weight", s.Costs.Weight.String())
	}
	if s.Costs.Hop.Sign() != 0 {
		add("hop", s.Costs.Hop.String())
	}
	if len(settings) == 0 {
		return s.Name
	}
	return s.Name + ":" + strings.Join(settings, ",")
}
