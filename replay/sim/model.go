package sim

import (
	"errors"
	"fmt"
	"slices"

	"mixdown/analyze/pipeline"
	"mixdown/replay/schedule"
)

// ErrNoPipeline: the traces have no pipeline, where one is needed.
var ErrNoPipeline = errors.New("no pipeline")

// ErrNoStep: the pipeline has no complete step to take durations from.
var ErrNoStep = errors.New("no complete step of the pipeline")

// Model is what the recorded steps of a pipeline say tasks, messages and the rest
// cost. All times are ns.
type Model struct {
	Places, Stages, Loops, Microbatches int

	// Steps are the recorded steps it is made of, indices into Pipeline.Steps.
	Steps []int
	// Measured is the mean length of those steps, from the first place's start to
	// the last one's end; Makespan that of their tasks.
	Measured, Makespan int64

	// Sends is how the program is taken to send when it runs another order:
	// Running, unless only Blocking explains the recorded steps.
	Sends Sends

	// SplitKnown: the trace tells the two parts of a backward apart, so that
	// zero-bubble orders need no assumption. BackwardKnown: it has whole ones.
	SplitKnown, BackwardKnown bool

	task [4][]float64 // by phase and [stage·M+mb], mean over the steps; 0 where the phase does not occur
	// layers is how many layers each stage was seen to have, 1 where the trace does
	// not tell or stages differ; layerShare, by phase and layer of the whole model,
	// which part of its stage's time a layer takes.
	layers     int
	layerShare [4][]float64

	gaps       [sends][]gapTable
	hops       map[[2]int][2]Hop // by edge: gradient, activation
	hop        [2]Hop            // of edges not seen
	head       []int64
	tail       int64
	stagePlace []int
	order      schedule.Order // recorded, of the first step

	// reduce is the data-parallel communication of each stage's gradient;
	// reduceInTail how much of the tail it is, at most.
	reduce       []float64
	reduceInTail int64

	bytes   [2]int64 // of messages, the largest: gradient, activation; 0 not known
	pace    []float64
	changes []func(from, to int, activation bool, h Hop) Hop
}

// Calibrate takes a model from steps of a pipeline; nil means all of them.
func Calibrate(p *pipeline.Pipeline, steps []int) (*Model, error) {
	if steps == nil {
		for i := range p.Steps {
			steps = append(steps, i)
		}
	}
	steps = slices.DeleteFunc(slices.Clone(steps), func(i int) bool { return !complete(p, &p.Steps[i]) })
	if len(steps) == 0 {
		return nil, fmt.Errorf("%w: each needs every micro-batch forward and backward on all %d stages", ErrNoStep, p.Stages())
	}
	m := &Model{
		Places: len(p.Ranks), Stages: p.Stages(), Loops: p.Loops, Microbatches: p.Microbatches, stagePlace: p.StagePlace,
		Steps: steps, order: Order(&p.Steps[steps[0]]),
	}
	m.takeTasks(p)
	m.takeLayers(p)
	m.takeHops(p)
	m.takeGaps(p)
	m.takeEnds(p)
	m.takeSends()
	return m, nil
}

// explains is how much better one way of sending must describe the recorded steps
// than another, as a share of their length, to be taken for the program's.
const explains = 0.05

func (m *Model) takeSends() {
	running, err := m.fidelity(Options{Sends: Running})
	blocking, err2 := m.fidelity(Options{Sends: Blocking})
	if err2 == nil && (err != nil || running.off() > blocking.off()+explains) {
		m.Sends = Blocking
	}
}

// Order is the recorded order of a step.
func Order(s *pipeline.Step) schedule.Order {
	order := make(schedule.Order, len(s.Tasks))
	for place, tasks := range s.Tasks {
		for i := range tasks {
			t := &tasks[i]
			order[place] = append(order[place], schedule.Action{
				Stage: int32(t.Stage), Microbatch: int32(t.Microbatch), Kind: schedule.Kind(t.Phase),
			})
		}
	}
	return order
}

// complete says whether a step holds all of its tasks.
func complete(p *pipeline.Pipeline, s *pipeline.Step) bool {
	for _, tasks := range s.Tasks {
		if len(tasks) == 0 {
			return false
		}
	}
	o := Order(s)
	return o.Stages() == p.Stages() && o.Microbatches() == p.Microbatches && o.Validate() == nil
}

// Recorded is the order that ran, of the first of the model's steps.
func (m *Model) Recorded() schedule.Order { return m.order }

func (m *Model) takeTasks(p *pipeline.Pipeline) {
	for k := range m.task {
		m.task[k] = make([]float64, m.Stages*m.Microbatches)
	}
	share := 1 / float64(len(m.Steps))
	for _, i := range m.Steps {
		for _, tasks := range p.Steps[i].Tasks {
			for t := range tasks {
				m.task[tasks[t].Phase][tasks[t].Stage*m.Microbatches+tasks[t].Microbatch] += share * float64(tasks[t].Dur())
				switch tasks[t].Phase {
				case pipeline.Backward:
					m.BackwardKnown = true
				case pipeline.InputGradient:
					m.SplitKnown = true
				}
			}
		}
	}
}

// takeHops takes the time of messages, the median for each edge and direction.
func (m *Model) takeHops(p *pipeline.Pipeline) {
	samples := map[[2]int]*[2][]int64{}
	large := [2]bool{}
	var all [2][]int64
	for _, i := range m.Steps {
		s := &p.Steps[i]
		ends := taskEnds(s)
		for n := range s.Transfers {
			t := &s.Transfers[n]
			if !t.Timed {
				continue
			}
			edge := [2]int{t.From, t.To}
			if samples[edge] == nil {
				samples[edge] = &[2][]int64{}
			}
			k := direction(t.Phase == pipeline.Forward)
			took := t.Done - t.Posted
			// The sender needs a while from the end of the task to its send.
			if made, ok := ends[key{t.Phase, t.Stage, t.Microbatch}]; ok && t.Sent != pipeline.Unknown && t.Sent > made && t.Sent >= t.Posted {
				took += t.Sent - made
			}
			took = max(took, 0)
			samples[edge][k] = append(samples[edge][k], took)
			all[k] = append(all[k], took)
			large[k] = large[k] || t.BytesKnown && t.Bytes >= occupies
			if t.BytesKnown {
				m.bytes[k] = max(m.bytes[k], t.Bytes)
			}
		}
	}
	m.hops = map[[2]int][2]Hop{}
	for edge, s := range samples {
		m.hops[edge] = [2]Hop{hopOf(s[0], large[0]), hopOf(s[1], large[1])}
	}
	m.hop = [2]Hop{hopOf(all[0], large[0]), hopOf(all[1], large[1])}
}

// occupies is from how many bytes on a message is taken to keep its way busy for
// all of its time; smaller ones are latency.
const occupies = 64 << 10

func hopOf(took []int64, large bool) Hop {
	if len(took) == 0 {
		return Hop{}
	}
	slices.Sort(took)
	median := took[len(took)/2]
	if large {
		return Hop{Occupied: median}
	}
	return Hop{Latency: median}
}

func direction(activation bool) int {
	if activation {
		return 1
	}
	return 0
}

// key names a task.
type key struct {
	phase             pipeline.Phase
	stage, microbatch int
}

// keyOf names a task. The input gradient counts as the backward: it is what makes
// the message.
func keyOf(t *pipeline.Task) key {
	if t.Phase == pipeline.InputGradient {
		return key{pipeline.Backward, t.Stage, t.Microbatch}
	}
	return key{t.Phase, t.Stage, t.Microbatch}
}

// taskEnds is when each task of a step ended.
func taskEnds(s *pipeline.Step) map[key]int64 {
	ends := map[key]int64{}
	for _, tasks := range s.Tasks {
		for i := range tasks {
			ends[keyOf(&tasks[i])] = tasks[i].End
		}
	}
	return ends
}
