package plan

import (
	"errors"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
	"mixdown/replay/plan/planpb"
)

// ErrNothingToReplay: no communication of the chosen step could be matched.
var ErrNothingToReplay = errors.New("nothing to replay")

// Options of building a workload. The zero value is ready.
type Options struct {
	// Step is the name or number of the step to replay, "all" for the whole
	// trace; "" chooses the step of median length.
	Step string
	// Clocks is how far the ranks' clocks can be compared; nil finds it out.
	Clocks *align.Result
	// Simulate keeps what can't run but can be played with the times of the trace:
	// collectives of unknown size or kind. Their counts are 0.
	Simulate bool
}

// workload is a workload being built.
type workload struct {
	run   *trace.Run
	match *collective.Matching
	diags *diagnostic.Set

	windows  []window
	simulate bool
	keeps    bool // while an operation is converted that is kept anyhow
	clocks   *align.Result
	aligned  bool // the ranks' clocks can be compared
	pb       *planpb.Workload
	groupOf  map[int]int32 // group of the matching -> index in pb.Groups
	// chosen holds the communication of the step that is replayed.
	chosen map[collective.Member]*planpb.Communication
}

// Build makes the workload of one step of a run.
func Build(run *trace.Run, match *collective.Matching, opts Options) (*planpb.Workload, *diagnostic.Set, error) {
	w, err := newWorkload(run, match, opts)
	if err != nil {
		return nil, w.diags, err
	}
	diags := w.diags
	if len(w.chosen) == 0 {
		return nil, diags, fmt.Errorf("%w: no communication of %s was found on all of its ranks (see the diagnostics of \"mixdown analyze\")",
			ErrNothingToReplay, describeStep(w.pb.Step))
	}
	offsets := w.startOffsets()
	for r, rank := range run.Ranks {
		var b *builder
		if rank.CPUOnly {
			b = w.hostProgram(r, w.windows[r])
		} else {
			b = w.deviceProgram(r, w.windows[r])
		}
		program, err := b.program(rank.Rank, offsets[r])
		if err != nil {
			return nil, diags, err
		}
		program.TraceNs = w.end(r) - w.windows[r].start
		program.Place = placeOf(rank)
		w.pb.Programs = append(w.pb.Programs, program)
	}
	w.pb.TraceStepNs = w.traceStep()
	return w.pb, diags, nil
}

// placeOf is where a rank ran, as far as its trace tells; nil when it does not.
func placeOf(rank *trace.Rank) *planpb.Place {
	p := &planpb.Place{Host: rank.Host}
	for i := range rank.Operations {
		e := rank.Operations[i].Event
		if e < 0 || e >= rank.Events.Len() || !rank.Events.Category[e].OnDevice() || rank.Events.Device[e] < 0 {
			continue
		}
		p.Device, p.Sms = proto.Int32(rank.Events.Device[e]), int32(rank.SMs)
		break
	}
	if p.Host == "" && p.Device == nil {
		return nil
	}
	return p
}

// newWorkload chooses the step and its communication. The workload is never nil.
func newWorkload(run *trace.Run, match *collective.Matching, opts Options) (*workload, error) {
	w := &workload{
		run: run, match: match, diags: &diagnostic.Set{}, clocks: opts.Clocks, simulate: opts.Simulate,
		pb:      &planpb.Workload{WorldSize: int32(run.WorldSize()), Dependencies: &planpb.Dependencies{}},
		groupOf: map[int]int32{},
		chosen:  map[collective.Member]*planpb.Communication{},
	}
	step, windows, err := chooseStep(run, opts.Step)
	if err != nil {
		return w, err
	}
	w.pb.Step, w.windows = step, windows
	if w.clocks == nil {
		w.clocks = align.Estimate(run, match)
	}
	w.chooseCollectives()
	w.chooseTransfers()
	return w, nil
}

func describeStep(step string) string {
	if step == "" {
		return "the trace"
	}
	return step
}

// communication is what operation i of rank index r became, nil when it is
// left out.
func (w *workload) communication(r, i int) *planpb.Communication {
	return w.chosen[collective.Member{Rank: r, Operation: i}]
}

// inWindow says whether a member was issued within its rank's step.
func (w *workload) inWindow(m collective.Member) bool {
	at := w.run.Ranks[m.Rank].Operations[m.Operation].Issued
	return at >= w.windows[m.Rank].start && at < w.windows[m.Rank].end
}

// group returns the index of a group in the workload, adding it when new.
func (w *workload) group(g int) int32 {
	i, ok := w.groupOf[g]
	if !ok {
		i = int32(len(w.pb.Groups))
		w.groupOf[g] = i
		from := &w.match.Groups[g]
		pb := &planpb.Group{Name: from.Name, Description: from.Description}
		for _, rank := range from.Ranks {
			pb.Ranks = append(pb.Ranks, int32(rank))
		}
		w.pb.Groups = append(w.pb.Groups, pb)
	}
	return i
}

// maxClockResidual is how far apart, in ns, the ends of matched collectives may
// lie before start offsets between ranks mean nothing: the members of a collective
// leave it almost together.
const maxClockResidual = 5_000_000

// minWitnesses is how many matched collectives must not contradict a common clock
// before their ends may lie further apart: ranks that share too few cores leave a
// collective when they get one, not together.
const minWitnesses = 5

// comparable says whether times of different ranks can be compared.
func (w *workload) comparable() bool {
	c := w.clocks
	return len(w.windows) < 2 || c.Connected && (c.Compared == 0 || c.Remaining <= maxClockResidual ||
		!c.Applied && c.Compared >= minWitnesses && len(c.Impossible) == 0)
}

// startOffsets is when each rank entered the step after the first one did; all
// together where the clocks can't be compared well enough to tell.
func (w *workload) startOffsets() []int64 {
	offsets := make([]int64, len(w.windows))
	c := w.clocks
	w.aligned = w.comparable()
	if !w.aligned {
		w.pb.ClocksDiffer = true
		w.diags.Addf("clocks-not-aligned", diagnostic.NoRank, diagnostic.NoOffset,
			"all ranks start the replayed step together: %s (ends of collectives lie %.1f ms apart)", c.Reason, float64(c.Remaining)/1e6)
		return offsets
	}
	first := w.windows[0].start
	for _, win := range w.windows {
		first = min(first, win.start)
	}
	for r, win := range w.windows {
		offsets[r] = win.start - first
	}
	return offsets
}

// end is when a rank's step is over: its program, its device, and what it
// communicated.
func (w *workload) end(r int) int64 {
	end := w.windows[r].end
	for i := range w.run.Ranks[r].Operations {
		if w.communication(r, i) != nil {
			end = max(end, w.run.Ranks[r].Operations[i].End)
		}
	}
	return end
}

// traceStep is the length of the step in the trace, over all ranks.
func (w *workload) traceStep() int64 {
	var first, last int64
	var longest int64
	for r, win := range w.windows {
		end := w.end(r)
		if r == 0 {
			first, last = win.start, end
		}
		first, last = min(first, win.start), max(last, end)
		longest = max(longest, end-win.start)
	}
	if !w.aligned {
		return longest
	}
	return last - first
}

func itoa(n int) string { return strconv.Itoa(n) }
