package plan

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"mixdown/analyze/overlap"
)

// turn is a thread that went on when another one had stopped. From and to are
// host streams, times ns.
type turn struct {
	from, to int
	end      int64 // when the one that hands over had stopped
	idle     int64 // since when the other had done nothing; before end
}

const (
	// minIdle is for how long, in ns, a thread has no events when it is idle; what
	// is shorter is the interpreter at work.
	minIdle = 50_000
	// minCall is the shortest idle time, in ns, in which another thread is taken to
	// have worked for the one that is idle, whatever the program does in between.
	minCall = 200_000
	// wakeUp is how soon, in ns, a thread goes on after another one has stopped.
	wakeUp = 50_000
	// byChance is how likely hand-overs may be to be seen where there are none.
	byChance = 0.05
)

// findTurns finds where the host streams wait for each other, of which a trace
// tells nothing but that a thread was idle. Busy is when each works.
//
// A thread that is idle for long while another one, idle before and after, works
// for most of that time has called it and waits for it. And a thread whose idle
// times end, nearly all of them, shortly after another one has stopped waits for
// that one, unless this were to be expected of two that do not know of each other:
// of one that stops often. It says how many the times contradict.
func (h *hosts) findTurns(win window, busy []overlap.Set) (rejected int64) {
	for s := range busy {
		busy[s] = closed(busy[s])
	}
	for to := range busy {
		gaps := gapsOf(busy[to], win)
		for from := range busy {
			if from == to {
				continue
			}
			var other []overlap.Interval
			for _, gap := range gaps {
				first, last, ok := calledIn(gap, busy[from], win)
				if !ok {
					other = append(other, gap)
					continue
				}
				h.turns = append(h.turns,
					turn{from: to, to: from, end: gap.Start, idle: idleBefore(busy[from], first, win)},
					turn{from: from, to: to, end: last, idle: gap.Start})
			}
			gaps = other
		}
		for from := range busy {
			if from == to {
				continue
			}
			var other []overlap.Interval
			var seen []turn
			for _, gap := range gaps {
				if end, ok := stoppedBefore(gap, busy[from]); ok {
					seen = append(seen, turn{from: from, to: to, end: end, idle: gap.Start})
				} else {
					other = append(other, gap)
				}
			}
			if !isRule(len(seen), len(gaps), busy[from], win) {
				rejected += int64(len(seen))
				continue
			}
			h.turns = append(h.turns, seen...)
			gaps = other
		}
	}
	slices.SortStableFunc(h.turns, func(a, b turn) int { return cmp.Compare(a.end, b.end) })
	h.turns = slices.Compact(h.turns)
	return rejected
}

// closed leaves out the times that are too short to be idle.
func closed(s overlap.Set) overlap.Set {
	var list overlap.Set
	for _, iv := range s {
		if n := len(list); n > 0 && iv.Start-list[n-1].End < minIdle {
			list[n-1].End = iv.End
			continue
		}
		list = append(list, iv)
	}
	return list
}

// gapsOf lists the idle times up to each time a thread works.
func gapsOf(busy overlap.Set, win window) []overlap.Interval {
	var gaps []overlap.Interval
	end := win.start
	for _, iv := range busy {
		if iv.Start-end >= minIdle {
			gaps = append(gaps, overlap.Interval{Start: end, End: iv.Start})
		}
		end = iv.End
	}
	return gaps
}

// calledIn says when another thread worked in the idle time of a thread, if it
// seems that it did so for that thread.
func calledIn(gap overlap.Interval, busy overlap.Set, win window) (first, last int64, ok bool) {
	length := gap.End - gap.Start
	if length < minCall || gap.Start == win.start {
		return 0, 0, false
	}
	around := max(length/4, minCall/2)
	k := sort.Search(len(busy), func(k int) bool { return busy[k].End > gap.Start-around })
	n := k + sort.Search(len(busy)-k, func(n int) bool { return busy[k+n].Start >= gap.End+around })
	if k == n || busy[k].Start < gap.Start-rounding || busy[n-1].End > gap.End+rounding {
		return 0, 0, false
	}
	first, last = busy[k].Start, busy[n-1].End
	return first, last, last-first >= length/2
}

// idleBefore is since when a thread was idle that went on at a time.
func idleBefore(busy overlap.Set, at int64, win window) int64 {
	k := sort.Search(len(busy), func(k int) bool { return busy[k].Start >= at })
	if k == 0 {
		return win.start
	}
	return busy[k-1].End
}

// stoppedBefore is when another thread stopped shortly before an idle time ended.
func stoppedBefore(gap overlap.Interval, busy overlap.Set) (int64, bool) {
	k := sort.Search(len(busy), func(k int) bool { return busy[k].End > gap.End+rounding })
	if k == 0 {
		return 0, false
	}
	end := busy[k-1].End
	return end, end > gap.Start && gap.End-end <= wakeUp
}

// isRule says whether so many of the idle times that ended after another thread had
// stopped are more than chance.
func isRule(seen, of int, busy overlap.Set, win window) bool {
	if seen == 0 || 4*seen < 3*of {
		return false
	}
	var after []overlap.Interval
	for _, iv := range busy {
		after = append(after, overlap.Interval{Start: iv.End, End: iv.End + wakeUp})
	}
	chance := float64(overlap.Union(after).Length()) / float64(win.end-win.start)
	return math.Pow(chance, float64(seen)) <= byChance
}
