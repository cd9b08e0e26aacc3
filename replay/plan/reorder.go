package plan

import (
	"errors"
	"fmt"
	"slices"

	"mixdown/analyze/collective"
	"mixdown/analyze/pipeline"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/schedule"
)

// ErrReorder: the step can't be replayed in another order.
var ErrReorder = errors.New("the pipeline can't be replayed in another order")

// Reordering is the pipelines of a run in another order.
type Reordering struct {
	Pipelines []*pipeline.Pipeline // every rank of the run is in one of them
	Order     schedule.Order       // of each of them
	// Spans is how long each action keeps its place, the gap before it included,
	// ns: by pipeline, place and position in the order. Actions that compute nothing
	// have 0.
	Spans [][][]int64
	// EarlyReductions reduces the gradient of a stage over the replicas as soon as
	// it is complete, instead of when the trace did.
	EarlyReductions bool
}

// Reorder makes the workload of the step that Build would take, with the tasks
// of its pipelines in another order: each keeps its time, messages go where the
// order needs them, in the sizes of the trace. What came before the first task
// and after the last stays as it was.
//
// Communication within a task (of tensor parallelism, say) is a part of the
// task's time and is not run; a diagnostic counts it.
func Reorder(run *trace.Run, match *collective.Matching, opts Options, to Reordering) (*planpb.Workload, *diagnostic.Set, error) {
	w, err := newWorkload(run, match, opts)
	if err != nil {
		return nil, w.diags, err
	}
	if len(w.chosen) == 0 {
		return nil, w.diags, fmt.Errorf("%w: no communication of %s was found on all of its ranks", ErrNothingToReplay, describeStep(w.pb.Step))
	}
	if err := to.check(run); err != nil {
		return nil, w.diags, err
	}
	for _, c := range w.chosen {
		c.Seq <<= partBits
	}
	programs := make([]*planpb.Program, len(run.Ranks))
	offsets := w.startOffsets()
	for i, p := range to.Pipelines {
		step, err := stepNamed(p, w.pb.Step)
		if err != nil {
			return nil, w.diags, err
		}
		o := &ordering{w: w, p: p, step: step, order: to.Order, spans: to.Spans[i], early: to.EarlyReductions}
		if err := o.prepare(); err != nil {
			return nil, w.diags, err
		}
		for place, r := range p.Index {
			if programs[r], err = o.program(place).program(run.Ranks[r].Rank, offsets[r]); err != nil {
				return nil, w.diags, err
			}
		}
	}
	w.pb.Programs = programs
	renumber(w.pb)
	w.pb.TraceStepNs = w.traceStep()
	return w.pb, w.diags, nil
}

// partBits is how far sequence numbers are moved up to make room for the parts
// that a collective may be cut into.
const partBits = 16

// renumber counts the collectives of each group from 0 again, in their order.
func renumber(w *planpb.Workload) {
	seqs := map[int32][]int64{}
	eachCollective(w, func(c *planpb.Communication) { seqs[c.Group] = append(seqs[c.Group], c.Seq) })
	for g := range seqs {
		slices.Sort(seqs[g])
		seqs[g] = slices.Compact(seqs[g])
	}
	eachCollective(w, func(c *planpb.Communication) {
		n, _ := slices.BinarySearch(seqs[c.Group], c.Seq)
		c.Seq = int64(n)
	})
}

func eachCollective(w *planpb.Workload, do func(*planpb.Communication)) {
	for _, program := range w.Programs {
		for _, t := range program.Tasks {
			if c := t.GetCommunication(); c != nil && !Op(c).IsP2P() {
				do(c)
			}
		}
	}
}

// check checks that the pipelines are those of the run and fit the order.
func (to *Reordering) check(run *trace.Run) error {
	seen := make([]bool, len(run.Ranks))
	for _, p := range to.Pipelines {
		if len(p.Index) == 0 || len(p.Ranks) != to.Order.Ranks() {
			return fmt.Errorf("%w: the order is for %d ranks, a pipeline of the trace has %d", ErrReorder, to.Order.Ranks(), len(p.Ranks))
		}
		for _, r := range p.Index {
			seen[r] = true
		}
	}
	if r := slices.Index(seen, false); r >= 0 {
		return fmt.Errorf("%w: rank %d is in no pipeline", ErrReorder, run.Ranks[r].Rank)
	}
	return to.Order.Validate()
}

func stepNamed(p *pipeline.Pipeline, name string) (*pipeline.Step, error) {
	for i := range p.Steps {
		if p.Steps[i].Name == name {
			return &p.Steps[i], nil
		}
	}
	return nil, fmt.Errorf("%w: no pipeline was recognised in %s", ErrReorder, describeStep(name))
}

// message is what one stage hands to the next, on another place.
type message struct {
	from, to   int // places
	activation bool
	action     schedule.Action // that makes it
	number     int64           // among those between the two places
}

// ordering is one pipeline while its programs are built.
type ordering struct {
	w     *workload
	p     *pipeline.Pipeline
	step  *pipeline.Step
	order schedule.Order
	spans [][]int64
	early bool

	place  map[schedule.Action]int // of every task
	by     map[schedule.Action]*message
	counts [2]messageSize // gradient, activation
	group  int32
	edges  map[[2]int][]*message // in the order they are sent
	skip   map[collective.Member]bool
	reduce []*reduction // by place
}

type messageSize struct {
	count int64
	dtype planpb.DType
	known bool
}

// prepare lists the messages of the order.
func (o *ordering) prepare() error {
	o.place, o.by, o.edges = map[schedule.Action]int{}, map[schedule.Action]*message{}, map[[2]int][]*message{}
	o.skip = map[collective.Member]bool{}
	if err := o.takeSizes(); err != nil {
		return err
	}
	for place, row := range o.order {
		for _, a := range row {
			o.place[task(a)] = place
		}
	}
	stages := o.order.Stages()
	for place, row := range o.order {
		for _, a := range row {
			next, activation := int(a.Stage)+1, true
			switch a.Kind {
			case schedule.Forward:
			case schedule.Backward, schedule.Input:
				next, activation = int(a.Stage)-1, false
			default:
				continue
			}
			if next < 0 || next >= stages {
				continue
			}
			to := o.place[task(schedule.Action{Stage: int32(next), Microbatch: a.Microbatch, Kind: a.Kind})]
			if to == place {
				continue
			}
			size := o.counts[indexOf(activation)]
			if !size.known {
				return fmt.Errorf("%w: the trace does not say how large the %s between stages are (record_shapes=True records it)", ErrReorder, content(activation))
			}
			edge := [2]int{place, to}
			m := &message{from: place, to: to, activation: activation, action: a, number: int64(len(o.edges[edge]) + 1)}
			o.edges[edge] = append(o.edges[edge], m)
			o.by[task(a)] = m
		}
	}
	o.takeReductions()
	return nil
}

// task names the work of an action: both forms of a backward make the same
// gradient.
func task(a schedule.Action) schedule.Action {
	if a.Kind == schedule.Input {
		a.Kind = schedule.Backward
	}
	a.Overlap = false
	return a
}

func indexOf(activation bool) int {
	if activation {
		return 1
	}
	return 0
}

func content(activation bool) string {
	if activation {
		return "activations"
	}
	return "gradients"
}

// takeSizes takes the sizes of messages from the recorded ones: all stages hand
// on the same.
func (o *ordering) takeSizes() error {
	differ := false
	groups := 0
	for i := range o.step.Transfers {
		t := &o.step.Transfers[i]
		o.skip[t.Send], o.skip[t.Recv] = true, true
		c := o.w.chosen[t.Send]
		if c == nil {
			continue
		}
		for _, tr := range c.Transfers {
			if !tr.Send {
				continue
			}
			size := &o.counts[indexOf(t.Phase == pipeline.Forward)]
			differ = differ || size.known && size.count != tr.Count
			*size = messageSize{max(size.count, tr.Count), c.Dtype, true}
		}
		o.group, groups = c.Group, groups+1
	}
	if groups == 0 {
		return fmt.Errorf("%w: none of its messages could be matched", ErrReorder)
	}
	if differ {
		o.w.diags.Addf("message-sizes-differ", diagnostic.NoRank, diagnostic.NoOffset,
			"messages between stages differ in size: the re-ordered pipeline sends the largest everywhere")
	}
	for k := range o.counts {
		if !o.counts[k].known {
			o.counts[k] = o.counts[1-k] // a gradient has the size of its activation
		}
	}
	return nil
}
