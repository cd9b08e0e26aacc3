package sim

import "mixdown/replay/schedule"

// Sends is how a program sends and receives.
type Sends uint8

const (
	// Running sends don't hold the sender, and receives are posted ahead: PyTorch's
	// runtime of multi-stage schedules, Megatron-LM with overlap.
	Running Sends = iota
	// Blocking programs ask for the message of their next task, not for more, and
	// don't go on until what they sent last has been received: PyTorch's
	// Schedule1F1B, DeepSpeed's engine, Megatron-LM without overlap. What goes around
	// the end of a loop, from the last place to the first, is always asked for.
	Blocking

	sends = 2
)

// String is how --sends names it.
func (s Sends) String() string { return [sends]string{"running", "blocking"}[s] }

// ParseSends reads what String writes.
func ParseSends(text string) (Sends, bool) {
	for s := range Sends(sends) {
		if s.String() == text {
			return s, true
		}
	}
	return 0, false
}

// Options of playing an order.
type Options struct {
	Sends Sends
}

// Hop is the time of a message from one place to another, ns.
type Hop struct {
	Occupied int64 // in which no other message goes the same way
	Latency  int64 // in which one may
}

// noTask stands for the kind of the task before the first.
const noTask = 4

// gapTable is the mean gap before a task in ns, by the kind of the task before
// (4: none), the kind of the task, and whether it had to wait for a message.
type gapTable [5][4][2]int64

// perStage is a time for each stage, ns; stages beyond take none.
type perStage []int64

func (p perStage) of(stage int32) int64 {
	if int(stage) < len(p) {
		return p[stage]
	}
	return 0
}

// Costs is what an order of a certain shape costs. Model.Costs makes them.
type Costs struct {
	stages, microbatches int
	task                 [4][]int64        // by kind and [stage·M+mb], ns
	gaps                 [sends][]gapTable // by place
	hops                 func(from, to int, activation bool) Hop
	pace                 []float64 // by place: times that its tasks take longer
	local                bool      // backwards need nothing of the next stage

	Head []int64 // by place: from the start of the step to where its first task could begin, ns
	Tail int64   // from the end of the last task, and of the last reduction, to the end of the step, ns

	Reduce perStage // reduction of a stage's gradient over the replicas, ns
	Gather perStage // gathering a stage's weights, ns
	Move   perStage // moving what a stage keeps of a micro-batch to another memory, or back, ns
}

// Task is how long an action computes, ns.
func (c *Costs) Task(a schedule.Action) int64 {
	return c.task[a.Kind][int(a.Stage)*c.microbatches+int(a.Microbatch)]
}

// at is how long an action computes on a place, ns.
func (c *Costs) at(place int, a schedule.Action) int64 {
	if place < len(c.pace) && c.pace[place] > 0 {
		return atMost(c.pace[place] * float64(c.Task(a)))
	}
	return c.Task(a)
}

// Hop is the time of a message.
func (c *Costs) Hop(from, to int, activation bool) Hop {
	if c.hops == nil {
		return Hop{}
	}
	return c.hops(from, to, activation)
}

// gap is the time a place needs before a task when nothing is left to wait for.
func (c *Costs) gap(opts Options, place, before int, kind schedule.Kind, waited bool) int64 {
	gaps := c.gaps[opts.Sends]
	if place >= len(gaps) {
		return 0
	}
	w := 0
	if waited {
		w = 1
	}
	return gaps[place][before][kind][w]
}

// head is the first moment of each place.
func (c *Costs) head(places int) []int64 {
	head := make([]int64, places)
	copy(head, c.Head)
	return head
}
