package pipeline

import "math"

// Idle is why a place did nothing, in ns.
type Idle struct {
	WarmUp  int64 // until its first task
	Drain   int64 // after its last
	Waiting int64 // until what its next task needs of another rank was there
	Sending int64 // the input was there, and its program sent, or waited for another rank to take a result
	Launch  int64 // the input was there, and its program did something else
	Unknown int64 // nothing tells when the input was there

	// Straggler is the part of Waiting that would be there with any order of the
	// tasks: the busiest place has that much more to do.
	Straggler int64
}

// Total is the idle time.
func (i *Idle) Total() int64 {
	return i.WarmUp + i.Drain + i.Waiting + i.Sending + i.Launch + i.Unknown
}

// PlaceTime is how a place spent a step, in ns.
type PlaceTime struct {
	Busy int64 // with tasks; where two overlap, once
	Span int64 // from its first task to the end of its last
	Idle Idle
}

// Bubbles is the time of a step that its places spent idle. Of each place, Busy
// and the total of Idle are the makespan together.
type Bubbles struct {
	// Makespan is from the first task of any place to the end of the last, in ns;
	// Unknown where the clocks of places don't compare. Warm-up and drain are then
	// 0 and left out, and each place is held against its own span.
	Makespan    int64
	LongestSpan int64 // of a place, in ns
	Places      []PlaceTime
	Busiest     int // the place with the most to do; of several the first
}

// Bubbles finds where the time of a step went.
func (s *Step) Bubbles() *Bubbles {
	b := &Bubbles{Makespan: Unknown, Places: make([]PlaceTime, len(s.Tasks))}
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for _, tasks := range s.Tasks {
		for i := range tasks {
			first, last = min(first, tasks[i].Start), max(last, tasks[i].End)
		}
	}
	for place := range s.Tasks {
		t := &b.Places[place]
		*t = spend(s.Tasks[place])
		if t.Busy > b.Places[b.Busiest].Busy {
			b.Busiest = place
		}
		b.LongestSpan = max(b.LongestSpan, t.Span)
		if !s.Comparable || first > last {
			continue
		}
		if b.Makespan = last - first; len(s.Tasks[place]) == 0 {
			t.Idle.WarmUp = b.Makespan
			continue
		}
		begun := s.Tasks[place][0].Start
		t.Idle.WarmUp, t.Idle.Drain = begun-first, last-(begun+t.Span)
	}
	for place := range b.Places {
		t := &b.Places[place]
		t.Idle.Straggler = min(t.Idle.Waiting, b.Places[b.Busiest].Busy-t.Busy)
	}
	return b
}

// spend goes through the tasks of a place, which are by start.
func spend(tasks []Task) (t PlaceTime) {
	if len(tasks) == 0 {
		return t
	}
	until := tasks[0].Start
	for i := range tasks {
		task := &tasks[i]
		if gap := task.Start - until; gap > 0 {
			ready := until
			switch {
			case task.Remote && task.Arrived == Unknown:
				t.Idle.Unknown += gap
				ready = task.Start
			case task.Remote:
				ready = min(max(task.Arrived, until), task.Start)
				t.Idle.Waiting += ready - until
			}
			held := min(max(task.Held, 0), task.Start-ready)
			t.Idle.Sending += held
			t.Idle.Launch += task.Start - ready - held
		}
		if task.End > until {
			t.Busy += task.End - max(task.Start, until)
			until = task.End
		}
	}
	t.Span = until - tasks[0].Start
	return t
}

// Share is the idle share of all places' makespan, the bubble as most papers
// have it. It reports false where there is no makespan.
func (b *Bubbles) Share() (float64, bool) { return b.share(b.Makespan) }

// ShareOfLongest is the idle share where each place is given the longest span of
// any: the bubble of the zero-bubble papers, whose places need not end together.
func (b *Bubbles) ShareOfLongest() (float64, bool) { return b.share(b.LongestSpan) }

func (b *Bubbles) share(each int64) (float64, bool) {
	if each <= 0 {
		return 0, false
	}
	busy := 0.0
	for i := range b.Places {
		busy += float64(b.Places[i].Busy)
	}
	return 1 - busy/(float64(each)*float64(len(b.Places))), true
}
