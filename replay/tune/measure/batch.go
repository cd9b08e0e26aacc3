package measure

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/replay/launch"
	"mixdown/replay/tune"
)

// batch is what one start of the workers measures.
type batch struct {
	group
	jobs []job
	cost float64 // ns, as estimated
}

// group is what workers are started with.
type group struct {
	launcher string
	ranks    int
	settings []string // variables of the environment
}

// What one start measures at most: so much that starting does not count, so
// little that an end by the user or by a fault loses little.
const (
	maxJobs = 48
	maxTime = 6e9 // ns, as estimated
)

// batches cuts jobs into starts: the cheap ones first, so that a budget that is
// too small leaves out the largest sizes, and in random order among those that
// cost about the same. All contenders that can run in
// the same workers are measured on a point in the same start, in turns.
func (c *campaign) batches(jobs []job) []batch {
	type key struct {
		launcher, settings string
		ranks              int
	}
	groups := map[key]group{}
	points := map[key]map[Point][]job{}
	home := c.home()
	for _, j := range jobs {
		settings := c.Variants.Settings(j.Contender)
		launcher, err := launch.LauncherFor([]string{j.Backend})
		if err != nil {
			launcher = ""
		}
		if launcher == "direct" && len(settings) == 0 && home != "" {
			launcher = home
		}
		k := key{launcher, strings.Join(settings, "\n"), j.Ranks}
		if points[k] == nil {
			points[k] = map[Point][]job{}
			groups[k] = group{launcher, j.Ranks, settings}
		}
		points[k][j.Point] = append(points[k][j.Point], j)
	}
	var list []batch
	for k, by := range points {
		var order []Point
		for p := range by {
			order = append(order, p)
		}
		slices.SortFunc(order, comparePoints)
		c.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		slices.SortStableFunc(order, func(a, b Point) int { return cmp.Compare(int(math.Log2(c.guess(a))/2), int(math.Log2(c.guess(b))/2)) })
		b := batch{group: groups[k]}
		for _, p := range order {
			cost := float64(len(by[p])) * c.guess(p)
			if len(b.jobs) > 0 && (len(b.jobs)+len(by[p]) > maxJobs || b.cost+cost > maxTime) {
				list = append(list, b)
				b = batch{group: groups[k]}
			}
			b.jobs, b.cost = append(b.jobs, by[p]...), b.cost+cost
		}
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b batch) int {
		return cmp.Or(cmp.Compare(a.launcher, b.launcher), cmp.Compare(a.ranks, b.ranks), slices.Compare(a.settings, b.settings),
			comparePoints(a.jobs[0].Point, b.jobs[0].Point))
	})
	c.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	each := func(b batch) int { return int(math.Log2(b.cost / float64(len(b.jobs)))) }
	slices.SortStableFunc(list, func(a, b batch) int { return cmp.Compare(each(a), each(b)) })
	return list
}

// home is the launcher in whose workers the backends run that need none, so that
// they run in turns with another; "" when there is no other.
func (c *campaign) home() string {
	for _, who := range c.Contenders {
		if l, err := launch.LauncherFor([]string{who.Backend}); err == nil && l != "direct" && who.Variant == "" {
			return l
		}
	}
	return ""
}

// guess is what all iterations of a point may take on one contender, in ns: from
// the table, else from what memory is known to do.
func (c *campaign) guess(p Point) float64 {
	one := 50e3 + 2*float64(p.Bytes)*float64(max(p.Ranks-1, 1))
	if p.Op == comm.Broadcast || p.Op == comm.Send {
		one = 50e3 + float64(p.Bytes)*float64(p.Ranks)/2
	}
	for _, who := range c.Contenders {
		if e, ok := c.estimate(who, p); ok {
			one = max(one, e)
		}
	}
	return one * float64(repetitions(p)) * (firstIterations + 2) * float64(p.Streams)
}

// estimate is the time of a point that was measured already.
func (c *campaign) estimate(who tune.Contender, p Point) (float64, bool) {
	s := c.state[job{p, who}]
	if s == nil || s.row == nil {
		return 0, false
	}
	return float64(s.row.Time), true
}
