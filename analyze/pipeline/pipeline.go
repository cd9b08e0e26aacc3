package pipeline

import (
	"strconv"

	"mixdown/analyze/collective"
	"mixdown/ingest/comm"
)

// Phase is what a task does.
type Phase uint8

const (
	Forward        Phase = iota
	Backward             // both gradients
	InputGradient        // the part of a backward that the stage before waits for
	WeightGradient       // the part that nobody waits for
)

// String is the phase in words.
func (p Phase) String() string {
	return [...]string{"forward", "backward", "input gradient", "weight gradient"}[p]
}

// Letter is the phase as PyTorch writes it in an action: F, B, I or W.
func (p Phase) Letter() string { return [...]string{"F", "B", "I", "W"}[p] }

// Unknown stands for an index or a time that the trace does not tell.
const Unknown = -1

// Task is one pass of a micro-batch through a stage.
type Task struct {
	Phase      Phase
	Stage      int // in the order the micro-batch passes them, from 0
	Microbatch int

	Start, End int64 // ns, on the clock of the rank

	// Arrived is when what the task needs of another rank was there, ns on the
	// clock of the rank; Unknown where it needs nothing or nothing tells.
	Arrived int64

	// Remote: it needs something of another rank, whether the trace tells when
	// that was there or not.
	Remote bool
	// Held is how long, of the time between Arrived (or the end of the task
	// before, where that is later) and Start, the program of a host was in a call
	// that sends or waited until what it sent was taken, in ns.
	Held int64
}

// Dur is how long the task ran, in ns.
func (t *Task) Dur() int64 { return t.End - t.Start }

// Transfer is what one stage sends to its neighbour on another rank: an
// activation after a forward, a gradient after a backward.
type Transfer struct {
	Phase      Phase // Forward or Backward, of the task that made it
	Stage      int   // of the task that made it
	Microbatch int
	From, To   int // places
	Bytes      int64
	BytesKnown bool
	Send, Recv collective.Member

	Sent int64 // when the sender issued it, ns on its clock; Unknown where nothing tells

	// Posted is when the later of both ends was there and Done when the receiver
	// had it, ns, on the clocks of their ranks. The difference means nothing
	// where clocks can't be compared or Timed is false.
	Posted, Done int64
	Timed        bool
}

// Reduction is a collective over data-parallel replicas, or another one that a
// rank of the pipeline takes part in during the step.
type Reduction struct {
	Place     int
	Operation int // of the rank
	Op        comm.Op
	Group     int // index into the matching's groups
	// Stage is whose gradient is reduced or whose weights are gathered, Unknown
	// where nothing tells.
	Stage      int
	Bytes      int64
	Issued     int64 // ns
	Start, End int64 // ns
	// DataParallel: the group holds ranks of the same place in several pipelines.
	DataParallel bool
}

// Step is one training step of a pipeline.
type Step struct {
	Name       string // for example "ProfilerStep#10", "" for the whole trace
	Number     int
	Start, End []int64  // by place: of the step on the rank, ns
	Tasks      [][]Task // by place, in the order they ran
	Transfers  []Transfer
	Reductions []Reduction

	// Comparable: times of different places compare.
	Comparable bool
	// Complete: every micro-batch passed every stage, as all the others did.
	Complete bool
}

// Pipeline is the ranks that hold one copy of the model's stages.
type Pipeline struct {
	Ranks        []int // by place: global rank
	Index        []int // by place: index into Run.Ranks; nil where there is no run
	StagePlace   []int // by stage: the place that holds it, Unknown where its rank was not read
	Loops        int   // most stages on one place
	Microbatches int   // of each step
	Steps        []Step
	Evidence     string  // what told, in words for people: `labels "PP:..."`
	Layers       *Layers // of each stage; nil where the tasks show none
}

// Stages is the number of stages.
func (p *Pipeline) Stages() int { return len(p.StagePlace) }

// Text is the order of a place in a step as PyTorch writes actions: 0F0 0F1 0B0.
func (s *Step) Text(place int) []string {
	text := make([]string, len(s.Tasks[place]))
	for i := range s.Tasks[place] {
		text[i] = s.Tasks[place][i].String()
	}
	return text
}

// String is the task as an action of PyTorch's notation, for example 0F3.
func (t *Task) String() string {
	return strconv.Itoa(t.Stage) + t.Phase.Letter() + strconv.Itoa(t.Microbatch)
}
