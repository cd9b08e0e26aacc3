package auto

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"mixdown/ingest/comm"
	"mixdown/replay/mix"
)

// keepTraced makes the choice of changing nothing.
func (c *chooser) keepTraced(choice *Choice) {
	gain := choice.Speedup - 1
	rule := mix.Rule{Max: math.MaxInt64, Backend: c.opts.Traced}
	choice.Mix = mix.Of(rule)
	choice.Step, choice.Speedup = choice.Traced, 1
	choice.Reasons = []Reason{{rule.String(), fmt.Sprintf("nothing gains more than the noise of %.1f %%: the best other choice would be %.1f %% faster", 100*choice.Noise, 100*gain)}}
	choice.Unknown = c.unknown(func(classKey) string { return c.opts.Traced })
}

// state writes a choice as rules: for each operation its sizes in ranges, then
// what most operations run on for all others.
func (c *chooser) state(choice *Choice, backend map[classKey]string) {
	rest := c.most(backend)
	byOp := map[comm.Op][]classKey{}
	for _, k := range c.order {
		byOp[k.op] = append(byOp[k.op], k)
	}
	var rules []mix.Rule
	for _, op := range comm.Ops() {
		keys := byOp[op]
		slices.SortFunc(keys, func(a, b classKey) int { return cmp.Compare(a.size, b.size) })
		for i := 0; i < len(keys); {
			end := i
			for end+1 < len(keys) && backend[keys[end+1]] == backend[keys[i]] {
				end++
			}
			if backend[keys[i]] != rest {
				r := mix.Rule{Op: op, Max: math.MaxInt64, Backend: backend[keys[i]]}
				if i > 0 {
					r.Min = keys[i].size
				}
				if end+1 < len(keys) {
					r.Max = keys[end+1].size - 1
				}
				rules = append(rules, r)
				choice.Reasons = append(choice.Reasons, Reason{r.String(), c.why(keys[i:end+1], backend[keys[i]], rest)})
			}
			i = end + 1
		}
	}
	last := mix.Rule{Max: math.MaxInt64, Backend: rest}
	rules = append(rules, last)
	choice.Reasons = append(choice.Reasons, Reason{last.String(), c.whyRest(choice, rest)})
	choice.Mix = mix.Of(rules...)
	choice.Unknown = c.unknown(func(k classKey) string { return backend[k] })
}

// most is the backend that most of the communication runs on, the traced one if
// it is as good as another.
func (c *chooser) most(backend map[classKey]string) string {
	counts := map[string]int{}
	for k, b := range backend {
		counts[b] += c.classes[k].count
	}
	best := c.opts.Traced
	for _, b := range c.opts.Backends {
		if counts[b] > counts[best] {
			best = b
		}
	}
	return best
}

func (c *chooser) unknown(backend func(classKey) string) int {
	n := 0
	for _, k := range c.order {
		if !c.knows(k, backend(k)) {
			n += c.classes[k].count
		}
	}
	return n
}

// why says what the operations of a rule gain, by the one that costs most.
func (c *chooser) why(keys []classKey, backend, rest string) string {
	worst := slices.MaxFunc(keys, func(a, b classKey) int {
		return cmp.Compare(c.typical(a, backend).Time*int64(c.classes[a].count), c.typical(b, backend).Time*int64(c.classes[b].count))
	})
	n := c.classes[worst]
	here, there := c.typical(worst, backend), c.typical(worst, rest)
	text := fmt.Sprintf("%s of %d bytes on %d ranks takes %s on %s (%s)", worst.op, worst.size, n.ranks, short(here.Time), backend, here.Words())
	if there.ok {
		text += fmt.Sprintf(", %s on %s", short(there.Time), rest)
	} else {
		text += fmt.Sprintf(", not known on %s", rest)
	}
	return text + fmt.Sprintf("; %d of them in a step", n.count)
}

func (c *chooser) whyRest(choice *Choice, rest string) string {
	switch {
	case choice.Traced > 0:
		return fmt.Sprintf("all the rest; the step is predicted to take %s, %s on %s alone", short(choice.Step), short(choice.Traced), c.opts.Traced)
	default:
		return fmt.Sprintf("all the rest; the step is predicted to take %s, which is not known for %s", short(choice.Step), c.opts.Traced)
	}
}

func short(ns int64) string {
	d := time.Duration(ns)
	switch {
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d >= time.Microsecond:
		return d.Round(100 * time.Nanosecond).String()
	}
	return d.String()
}
