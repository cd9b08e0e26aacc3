package pipeline

import (
	"cmp"
	"slices"
	"strings"
)

// Layers is what the tasks of a pipeline show of the model's layers: work that
// repeats within a task.
type Layers struct {
	Count int // of each stage
	// Share is, by phase and stage, which part of a task's time each layer takes, in
	// the order of the model. Phases that did not occur, and those that don't show
	// the layers, have nil.
	Share [4][][]float64
}

// piece is some work within a task.
type piece struct {
	name  string // without numbers: layers are numbered
	start int64
}

// minCovered is how much of a task repeated work must cover to be its layers.
const minCovered = 0.8

// addLayers looks for layers in all pipelines.
func (f *finding) addLayers() {
	for _, p := range f.res.Pipelines {
		p.Layers = f.layers(p)
	}
}

// layers is what the first step of a pipeline shows of the layers, nil where
// stages show none, or not equally many.
func (f *finding) layers(p *Pipeline) *Layers {
	if len(p.Steps) == 0 {
		return nil
	}
	l := &Layers{}
	for k := range l.Share {
		l.Share[k] = make([][]float64, p.Stages())
	}
	counts := make([]int, p.Stages())
	for _, forwards := range []bool{true, false} {
		for place, tasks := range p.Steps[0].Tasks {
			v := f.views[p.Index[place]]
			for phase := range l.Share {
				if (Phase(phase) == Forward) == forwards {
					f.stageLayers(v, tasks, Phase(phase), counts, l)
				}
			}
		}
		if forwards {
			l.Count = counts[0]
			if l.Count < 2 || slices.ContainsFunc(counts, func(n int) bool { return n != l.Count }) {
				return nil
			}
		}
	}
	return l
}

// stageLayers takes the mean shares of the layers of each stage that a place
// holds, in one phase. The forward decides how many there are; a backward runs
// through them from the last to the first.
func (f *finding) stageLayers(v *view, tasks []Task, phase Phase, counts []int, l *Layers) {
	sums := map[int][]float64{}
	seen := map[int]float64{}
	for i := range tasks {
		t := &tasks[i]
		if t.Phase != phase {
			continue
		}
		bounds := repeats(v.within(span{t.Start, t.End}), t.End, counts[t.Stage])
		if len(bounds) < 2 || sums[t.Stage] != nil && len(sums[t.Stage]) != len(bounds) {
			continue
		}
		if sums[t.Stage] == nil {
			sums[t.Stage] = make([]float64, len(bounds))
		}
		seen[t.Stage]++
		for n := range bounds {
			from, to := t.Start, t.End
			if n > 0 {
				from = bounds[n]
			}
			if n+1 < len(bounds) {
				to = bounds[n+1]
			}
			at := n
			if phase != Forward {
				at = len(bounds) - 1 - n
			}
			sums[t.Stage][at] += float64(to-from) / float64(t.Dur())
		}
	}
	for stage, sum := range sums {
		if phase == Forward {
			counts[stage] = len(sum)
		}
		for n := range sum {
			sum[n] /= seen[stage]
		}
		l.Share[phase][stage] = sum
	}
}

// within lists the work of a rank in a time.
func (v *view) within(s span) []piece {
	from, _ := slices.BinarySearchFunc(v.operators, s.start, func(o operator, t int64) int { return cmp.Compare(o.start, t) })
	var list []piece
	for ; from < len(v.operators) && v.operators[from].start < s.end; from++ {
		list = append(list, piece{unnumbered(v.rank.Names.Get(v.operators[from].name)), v.operators[from].start})
	}
	return list
}

func unnumbered(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, name)
}

// repeats is when each layer of a task begins that ends at `end`, nil when it
// shows none. Layers are the shortest sequence of work that repeats and covers
// most of the task; `want` is how many there must be, 0 for any number. Where it
// is known, work that occurs just as often begins a layer too: autograd runs the
// small things between in an order of its own.
func repeats(list []piece, end int64, want int) []int64 {
	if len(list) == 0 {
		return nil
	}
	for period := 1; period <= len(list)/2; period++ {
		first, count := longestRun(list, period)
		if count < 2 || want > 0 && count != want {
			continue
		}
		until := end
		if last := first + count*period; last < len(list) {
			until = list[last].start
		}
		if float64(until-list[first].start) < minCovered*float64(end-list[0].start) {
			continue
		}
		var bounds []int64
		for n := range count {
			bounds = append(bounds, list[first+n*period].start)
		}
		return bounds
	}
	if want < 2 {
		return nil
	}
	at := map[string][]int64{}
	for _, w := range list {
		at[w.name] = append(at[w.name], w.start)
	}
	for _, w := range list {
		if len(at[w.name]) == want {
			return at[w.name]
		}
	}
	return nil
}

// longestRun is the longest stretch of work that repeats with a period: where it
// begins, and how many whole periods it has.
func longestRun(list []piece, period int) (first, count int) {
	begin := 0
	for i := 0; i+period <= len(list); i++ {
		if i+period < len(list) && list[i].name == list[i+period].name {
			continue
		}
		if n := (i - begin + period) / period; n > count && i > begin {
			first, count = begin, n
		}
		begin = i + 1
	}
	return first, count
}
