package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// Codes of the diagnostics of a Result.
const (
	CodeLabelOdd   = "pipeline-label-odd"    // a label like an action that can't be one: ignored
	CodeUnclear    = "pipeline-unclear"      // ranks exchange messages like a pipeline, but which task ran when can't be told
	CodeMissing    = "pipeline-incomplete"   // stages or tasks of a pipeline that are not in the traces
	CodeUntimed    = "pipeline-task-untimed" // a task without work in the trace: left out
	CodeAmbiguous  = "pipeline-ambiguous"    // several replicas, and nothing tells which ranks belong together
	CodeUnnumbered = "pipeline-unnumbered"   // a label without a stage or micro-batch, and no way to count them
)

// Options are what Find can be told beside the run.
type Options struct {
	// Clocks says which ranks' times compare, after align.Apply; nil: all do.
	Clocks *align.Result
}

func (o Options) comparable(a, b int) bool { return o.Clocks == nil || o.Clocks.Comparable(a, b) }

// Result is the pipelines of a run, by their first rank.
type Result struct {
	Pipelines   []*Pipeline
	Diagnostics diagnostic.Set
}

// window is a step on all ranks.
type window struct {
	name   string
	number int
	on     map[int]span // by index into Run.Ranks
}

// Find finds the pipelines of a run. A run without one gives none, and no
// diagnostic. An error means that the run and its matching don't belong together,
// or that events can't be loaded: those of one rank for each core are in memory at
// a time.
func Find(run *trace.Run, match *collective.Matching, opts Options) (*Result, error) {
	if len(match.GroupOf) != len(run.Ranks) {
		return nil, fmt.Errorf("find pipelines: the matching has %d ranks, the run %d", len(match.GroupOf), len(run.Ranks))
	}
	f := &finding{run: run, match: match, opts: opts, res: &Result{}, drafts: map[*Pipeline][]draft{}}
	if err := f.look(); err != nil {
		return nil, err
	}
	f.windows = f.windowsOf(run)
	f.labelled()
	f.unlabelled()
	slices.SortStableFunc(f.res.Pipelines, func(a, b *Pipeline) int { return cmp.Compare(slices.Min(a.Ranks), slices.Min(b.Ranks)) })
	f.addReductions()
	f.addLayers()
	return f.res, nil
}

// finding is the work of one Find.
type finding struct {
	run     *trace.Run
	match   *collective.Matching
	opts    Options
	views   []*view
	extents []span // of all events of each rank
	windows []window
	res     *Result
	drafts  map[*Pipeline][]draft // the steps, as the program ran them
}

// look looks at all ranks, as many at once as there are cores.
func (f *finding) look() error {
	f.views = make([]*view, len(f.run.Ranks))
	f.extents = make([]span, len(f.run.Ranks))
	failures := make([]error, len(f.run.Ranks))
	diags := make([]diagnostic.Set, len(f.run.Ranks))
	var left atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := int(left.Add(1)) - 1; i < len(f.run.Ranks); i = int(left.Add(1)) - 1 {
				if failures[i] = f.run.Ranks[i].Acquire(); failures[i] != nil {
					continue
				}
				f.views[i] = look(f.run.Ranks[i], i, &diags[i])
				f.extents[i] = extent(f.run.Ranks[i])
				f.run.Ranks[i].Release()
			}
		})
	}
	workers.Wait()
	for i := range diags {
		f.res.Diagnostics.Merge(&diags[i])
	}
	return errors.Join(failures...)
}

// windowsOf lists the steps of a run, by number. Ranks without steps, where no
// rank has any, have one for all they have.
func (f *finding) windowsOf(run *trace.Run) []window {
	byNumber := map[int]*window{}
	var numbers []int
	for i, rank := range run.Ranks {
		for _, s := range rank.Steps {
			w := byNumber[s.Number]
			if w == nil {
				w = &window{name: s.Name, number: s.Number, on: map[int]span{}}
				byNumber[s.Number] = w
				numbers = append(numbers, s.Number)
			}
			if _, twice := w.on[i]; !twice {
				w.on[i] = span{s.Start, s.End}
			}
		}
	}
	if len(numbers) == 0 {
		whole := window{on: map[int]span{}}
		for i := range run.Ranks {
			whole.on[i] = f.extents[i]
		}
		return []window{whole}
	}
	slices.Sort(numbers)
	var list []window
	for _, n := range numbers {
		list = append(list, *byNumber[n])
	}
	return list
}

func extent(rank *trace.Rank) span {
	ev := &rank.Events
	if ev.Len() == 0 {
		return span{}
	}
	all := span{ev.TS[0], ev.End(0)}
	for i := range ev.Len() {
		all.start, all.end = min(all.start, ev.TS[i]), max(all.end, ev.End(i))
	}
	all.end++ // what starts with the last event is in it
	return all
}

// members is a pipeline on its way: its ranks and what each ran in each step.
type members struct {
	ranks      []int // by place: index into Run.Ranks
	stagePlace []int
	evidence   []string
	steps      []draft
}

// draft is a step on its way.
type draft struct {
	name   string
	number int
	window window
	works  [][]work // by place
}

// finish makes the pipeline of its members: the times of tasks, who sent what to
// whom, and what is missing.
func (f *finding) finish(m *members) *Pipeline {
	p := &Pipeline{Index: m.ranks, StagePlace: m.stagePlace, Evidence: strings.Join(m.evidence, ", ")}
	held := make([]int, len(m.ranks))
	for _, place := range m.stagePlace {
		if place != Unknown {
			held[place]++
		}
	}
	p.Loops = slices.Max(held)
	for _, r := range m.ranks {
		p.Ranks = append(p.Ranks, f.run.Ranks[r].Rank)
	}
	for _, d := range m.steps {
		for _, works := range d.works {
			for i := range works {
				p.Microbatches = max(p.Microbatches, works[i].microbatch+1)
			}
		}
	}
	for i := range m.steps {
		p.Steps = append(p.Steps, f.step(p, &m.steps[i]))
	}
	f.drafts[p] = m.steps
	f.res.checkComplete(p)
	return p
}

func (f *finding) step(p *Pipeline, d *draft) Step {
	s := Step{Name: d.name, Number: d.number, Comparable: true}
	for place, r := range p.Index {
		v := f.views[r]
		var timed []work
		for i := range d.works[place] {
			w := &d.works[place][i]
			if v.measure(w) {
				timed = append(timed, *w)
				continue
			}
			f.res.Diagnostics.Addf(CodeUntimed, v.rank.Rank, diagnostic.NoOffset, "no work of %d%s%d is in the trace of its rank: it is left out", w.stage, w.phase.Letter(), w.microbatch)
		}
		slices.SortStableFunc(timed, func(a, b work) int { return cmp.Compare(a.time.start, b.time.start) })
		d.works[place] = timed
		s.Tasks = append(s.Tasks, make([]Task, len(timed)))
		for i, w := range timed {
			s.Tasks[place][i] = Task{Phase: w.phase, Stage: w.stage, Microbatch: w.microbatch,
				Start: w.time.start, End: w.time.end, Arrived: Unknown, Remote: p.remote(w.key)}
		}
		on := d.window.on[r]
		s.Start, s.End = append(s.Start, on.start), append(s.End, on.end)
		s.Comparable = s.Comparable && f.opts.comparable(p.Index[0], r)
	}
	f.addTransfers(p, &s, d.works)
	for place := range d.works {
		f.addArrivals(p, &s, place, d.works[place])
	}
	return s
}

// remote says whether a task needs something of another rank.
func (p *Pipeline) remote(k key) bool {
	needs := k.stage - 1
	switch k.phase {
	case Backward, InputGradient:
		needs = k.stage + 1
	case WeightGradient:
		return false
	}
	return needs >= 0 && needs < len(p.StagePlace) && p.StagePlace[needs] != p.StagePlace[k.stage]
}

// checkComplete looks for tasks that other stages or steps have.
func (r *Result) checkComplete(p *Pipeline) {
	for i := range p.Steps {
		s := &p.Steps[i]
		s.Complete = !slices.Contains(p.StagePlace, Unknown)
		for place := range s.Tasks {
			forward, backward := map[key]int{}, map[key]int{}
			backwards := false
			for _, t := range s.Tasks[place] {
				k := key{stage: t.Stage, microbatch: t.Microbatch}
				switch t.Phase {
				case Forward:
					forward[k]++
				case Backward:
					backward[k] += 2
				default:
					backward[k]++
				}
				backwards = backwards || t.Phase != Forward
			}
			lost := 0
			for stage, on := range p.StagePlace {
				for mb := 0; on == place && mb < p.Microbatches; mb++ {
					k := key{stage: stage, microbatch: mb}
					if forward[k] != 1 || backwards && backward[k] != 2 {
						lost++
					}
				}
			}
			if lost > 0 {
				s.Complete = false
				r.Diagnostics.Addf(CodeMissing, p.Ranks[place], diagnostic.NoOffset,
					"%s: %d of the micro-batches of its stages have no forward or no backward in the trace", cmp.Or(s.Name, "the trace"), lost)
			}
		}
	}
}
