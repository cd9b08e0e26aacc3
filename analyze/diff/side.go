package diff

import (
	"cmp"
	"slices"
	"strings"

	"mixdown/analyze/align"
	"mixdown/analyze/breakdown"
	"mixdown/analyze/collective"
	"mixdown/analyze/report"
	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// Input is one of the runs to compare, with its communication matched and its
// clocks aligned.
type Input struct {
	Name   string // for people
	Run    *trace.Run
	Match  *collective.Matching
	Clocks *align.Result
}

// key is what operations are told apart by; what is not a key of the comparison
// has its zero value.
type key struct {
	role  string
	op    comm.Op
	size  breakdown.SizeClass
	phase trace.Phase
}

func (k key) compare(other key) int {
	return cmp.Or(
		strings.Compare(k.role, other.role), cmp.Compare(k.op, other.op), cmp.Compare(k.size.From, other.size.From),
		cmp.Compare(k.size.To, other.size.To), cmp.Compare(k.phase, other.phase),
	)
}

// Summary is what Compare needs of a run. It holds nothing of the run itself, so
// that two large runs need not be in memory at once.
type Summary struct {
	Side
	data  *breakdown.Breakdown
	roles roles
	// sample[step] is the number of a step's sample, -1 when it is none. Without
	// steps everything is sample 0.
	sample    []int
	samples   int
	partial   int  // steps that some ranks lack
	inferred  bool // steps were found in the communication
	knows     knowledge
	commsLogs bool // the comms logger has left its name in the traces
}

// knowledge says of which keys a run knows anything.
type knowledge struct{ group, size, phase bool }

// Summarize goes through the events of a run.
func Summarize(in Input) *Summary {
	s := &Summary{data: breakdown.Analyze(in.Run, in.Match, in.Clocks)}
	s.roles = rolesOf(in.Match.Groups, in.Run.WorldSize())
	s.Side = Side{
		Name: in.Name, WorldSize: in.Run.WorldSize(), RanksRead: len(in.Run.Ranks), RanksMissing: in.Run.Missing(),
		ClocksComparable: in.Clocks.Connected,
	}
	for _, rank := range in.Run.Ranks {
		device := "gpu"
		if rank.CPUOnly {
			device = "cpu"
		}
		switch s.Device {
		case "", device:
			s.Device = device
		default:
			s.Device = "both"
		}
		s.Backend = cmp.Or(s.Backend, rank.Distributed.Backend)
	}
	s.chooseSteps()
	for i := range s.data.Rows {
		r := &s.data.Rows[i]
		if s.sampleOf(r) < 0 {
			s.Outside += r.Count
			continue
		}
		s.Operations += r.Count
		s.knows.group = s.knows.group || s.roles.of[r.Group] != unknownRole
		s.knows.size = s.knows.size || r.Size.Known()
		s.knows.phase = s.knows.phase || r.Phase != trace.UnknownPhase
	}
	s.Blocking, s.commsLogs = blocking(in.Run)
	var diags diagnostic.Set
	diags.Merge(&in.Run.Diagnostics)
	diags.Merge(&in.Match.Diagnostics)
	diags.Merge(&in.Clocks.Diagnostics)
	s.Diagnostics = report.Diagnostics(&diags)
	return s
}

// chooseSteps takes the steps that all ranks have, and where no step is so the
// steps that most have.
func (s *Summary) chooseSteps() {
	most := 0
	for _, step := range s.data.Steps {
		most = max(most, step.Ranks)
		// The reader's name for a repeated sequence of communication.
		s.inferred = s.inferred || strings.HasPrefix(step.Name, "cycle ")
	}
	s.StepRanks = s.RanksRead
	if most > 0 {
		s.StepRanks = most
	}
	s.sample = make([]int, len(s.data.Steps))
	for i, step := range s.data.Steps {
		s.sample[i] = -1
		if step.Ranks == most {
			s.sample[i] = s.Steps
			s.Steps++
		}
		if step.Ranks < s.RanksRead {
			s.partial++
		}
	}
	s.samples = max(s.Steps, 1)
}

// sampleOf is the sample that a row belongs to, -1 when to none.
func (s *Summary) sampleOf(r *breakdown.Row) int {
	switch {
	case s.Steps == 0:
		return 0
	case r.Key.Step == breakdown.Outside:
		return -1
	}
	return s.sample[r.Key.Step]
}

// series is the communication of one key in one run.
type series struct {
	ranks int               // that took part
	steps []*breakdown.Sums // by sample; nil where there was none
}

// tabulate adds up the operations by key and sample, of keys those that both
// runs know.
func (s *Summary) tabulate(both knowledge) map[key]*series {
	keyOf := func(r *breakdown.Row) key {
		k := key{op: r.Op}
		if both.group {
			k.role = s.roles.of[r.Group]
		}
		if both.size {
			k.size = r.Size
		}
		if both.phase {
			k.phase = r.Phase
		}
		return k
	}
	type place struct {
		key
		sample int
	}
	out := map[key]*series{}
	for k, sums := range breakdown.Sum(s.data.Rows, func(r *breakdown.Row) (key, bool) { return keyOf(r), s.sampleOf(r) >= 0 }) {
		out[k] = &series{ranks: sums.Ranks, steps: make([]*breakdown.Sums, s.samples)}
	}
	for p, sums := range breakdown.Sum(s.data.Rows, func(r *breakdown.Row) (place, bool) {
		n := s.sampleOf(r)
		return place{keyOf(r), n}, n >= 0
	}) {
		out[p.key].steps[p.sample] = sums
	}
	return out
}

// times returns, by sample, the times of all ranks added up, and the longest and
// the sum of the ranks' steps, ns.
func (s *Summary) times() (sums []breakdown.Times, longest, total []int64) {
	sums, longest, total = make([]breakdown.Times, s.samples), make([]int64, s.samples), make([]int64, s.samples)
	for i := range s.data.Ranks {
		r := &s.data.Ranks[i]
		if s.Steps == 0 {
			all := r.Total()
			sums[0].Add(all)
			longest[0] = max(longest[0], all.Span)
			total[0] += all.Span
			continue
		}
		for _, step := range r.Steps {
			if n := s.sample[step.Step]; n >= 0 {
				sums[n].Add(step.Times)
				longest[n] = max(longest[n], step.Dur)
				total[n] += step.Dur
			}
		}
	}
	return sums, longest, total
}

// ops lists the operations that the run has, each once.
func ops(table map[key]*series) []comm.Op {
	seen := map[comm.Op]bool{}
	for k := range table {
		seen[k.op] = true
	}
	list := make([]comm.Op, 0, len(seen))
	for op := range seen {
		list = append(list, op)
	}
	slices.Sort(list)
	return list
}
