package pipeline

import (
	"strings"
)

// maxPeriod is the longest group of tasks that Compact looks for repetitions of.
const maxPeriod = 8

// Compact is the order of a place for people: what repeats with the next
// micro-batch, or the one before, is written once. "0F0..0F3 (0B0 0F4)..(0B3 0F7)
// 0B4..0B7" is 1F1B.
func (s *Step) Compact(place int) string {
	tasks := s.Tasks[place]
	var out []string
	for i := 0; i < len(tasks); {
		period, times := repetition(tasks[i:])
		if times == 1 {
			out = append(out, tasks[i].String())
			i++
			continue
		}
		n := period * times
		first, last := group(tasks[i:i+period]), group(tasks[i+n-period:i+n])
		out = append(out, first+".."+last)
		i += n
	}
	return strings.Join(out, " ")
}

func group(tasks []Task) string {
	if len(tasks) == 1 {
		return tasks[0].String()
	}
	list := make([]string, len(tasks))
	for i := range tasks {
		list[i] = tasks[i].String()
	}
	return "(" + strings.Join(list, " ") + ")"
}

// repetition finds the group of tasks at the beginning that covers most by
// repeating; of equal ones the shortest. Two times are none: they save nothing.
func repetition(tasks []Task) (period, times int) {
	period, times = 1, 1
	for p := 1; p <= maxPeriod && 3*p <= len(tasks); p++ {
		for _, step := range []int{1, -1} {
			n := 1
			for (n+1)*p <= len(tasks) && follows(tasks[(n-1)*p:n*p], tasks[n*p:(n+1)*p], step) {
				n++
			}
			if n > 2 && n*p > period*times {
				period, times = p, n
			}
		}
	}
	return period, times
}

// follows says whether b is a with each micro-batch moved by step.
func follows(a, b []Task, step int) bool {
	for i := range a {
		if a[i].Phase != b[i].Phase || a[i].Stage != b[i].Stage || a[i].Microbatch+step != b[i].Microbatch {
			return false
		}
	}
	return true
}
