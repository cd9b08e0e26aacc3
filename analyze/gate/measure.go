package gate

import (
	"cmp"
	"math"
	"slices"

	"mixdown/analyze/align"
	"mixdown/analyze/breakdown"
	"mixdown/analyze/collective"
	"mixdown/analyze/diff"
	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// Input is a run, with its communication matched and its clocks aligned.
type Input struct {
	Source string // as the user named it
	Run    *trace.Run
	Match  *collective.Matching
	Clocks *align.Result
	// GPU and Versions are what the traces say of the machine; see Facts.
	GPU      string
	Versions map[string]string
}

// Measure takes the values of every step of a run. The record holds nothing of
// the run itself.
func Measure(in Input) *Record {
	b := breakdown.Analyze(in.Run, in.Match, in.Clocks)
	r := &Record{
		SchemaVersion: RecordVersion, Kind: recordKind, Source: in.Source, Facts: factsOf(in),
		Steps: []string{}, Ranks: []Times{}, Operations: []Operation{},
	}
	sample := r.chooseSteps(b)
	n := len(r.Steps)
	r.addTimes(b, sample, n)
	r.addOperations(in, b, sample, n)
	return r
}

// chooseSteps takes the steps that most ranks have and says which sample each
// step is, -1 for none. With steps that all ranks have those are the most.
func (r *Record) chooseSteps(b *breakdown.Breakdown) []int {
	most := 0
	for _, s := range b.Steps {
		most = max(most, s.Ranks)
	}
	sample := make([]int, len(b.Steps))
	for i, s := range b.Steps {
		sample[i] = -1
		if s.Ranks == most {
			sample[i] = len(r.Steps)
			r.Steps = append(r.Steps, s.Name)
		}
	}
	return sample
}

func newTimes(rank, n int) Times {
	list := func() []int64 { return make([]int64, n) }
	return Times{Rank: rank, Step: list(), Compute: list(), Comm: list(), Exposed: list(), Hidden: list(), Memory: list(), Idle: list()}
}

// severalRanks is the rank of times that are of more than one.
const severalRanks = -1

// addTimes fills the times of every rank, their means and their maxima.
func (r *Record) addTimes(b *breakdown.Breakdown, sample []int, n int) {
	mean, most := newTimes(severalRanks, n), newTimes(severalRanks, n)
	ranks := make([]int64, n)
	for i := range b.Ranks {
		t, has := newTimes(b.Ranks[i].Rank, n), 0
		for _, s := range b.Ranks[i].Steps {
			at := sample[s.Step]
			if at < 0 {
				continue
			}
			has++
			ranks[at]++
			for _, v := range []struct {
				own, mean, most []int64
				value           int64
			}{
				{t.Step, nil, most.Step, s.Dur}, {t.Compute, mean.Compute, most.Compute, s.Compute},
				{t.Comm, mean.Comm, most.Comm, s.Comm}, {t.Exposed, mean.Exposed, most.Exposed, s.Exposed},
				{t.Hidden, mean.Hidden, most.Hidden, s.Hidden}, {t.Memory, mean.Memory, most.Memory, s.Memory},
				{t.Idle, mean.Idle, most.Idle, s.Idle},
			} {
				v.own[at] = v.value
				v.most[at] = max(v.most[at], v.value)
				if v.mean != nil {
					v.mean[at] += v.value
				}
			}
		}
		if has == n && n > 0 {
			r.Ranks = append(r.Ranks, t)
		}
	}
	for _, list := range [][]int64{mean.Compute, mean.Comm, mean.Exposed, mean.Hidden, mean.Memory, mean.Idle} {
		for at := range list {
			list[at] /= max(ranks[at], 1)
		}
	}
	copy(mean.Step, most.Step)
	r.Mean, r.Max = &mean, &most
}

// place is what an operation is known by, in one step or in all.
type place struct {
	role  string
	op    comm.Op
	size  breakdown.SizeClass
	phase trace.Phase
}

type sampled struct {
	place
	sample int
}

// addOperations adds the communication of the steps up.
func (r *Record) addOperations(in Input, b *breakdown.Breakdown, sample []int, n int) {
	roles := make([]string, len(b.Groups))
	for i := range b.Groups {
		roles[i] = diff.RoleOf(&b.Groups[i], in.Run.WorldSize())
	}
	at := func(row *breakdown.Row) int {
		if row.Key.Step < 0 {
			return -1
		}
		return sample[row.Key.Step]
	}
	of := func(row *breakdown.Row) place { return place{roles[row.Group], row.Op, row.Size, row.Phase} }
	all := breakdown.Sum(b.Rows, func(row *breakdown.Row) (place, bool) { return of(row), at(row) >= 0 })
	bus := map[sampled]float64{}
	for i := range b.Rows {
		if row := &b.Rows[i]; at(row) >= 0 {
			bus[sampled{of(row), at(row)}] += float64(row.Bytes) * busFactor(row.Op, b.Groups[row.Group].Size)
		}
	}
	steps := breakdown.Sum(b.Rows, func(row *breakdown.Row) (sampled, bool) { return sampled{of(row), at(row)}, at(row) >= 0 })
	for p, sum := range all {
		o := Operation{Group: p.role, Op: string(p.op), Size: p.size.String(), Phase: p.phase.String(), Ranks: sum.Ranks}
		for i := range n {
			s := steps[sampled{p, i}]
			if s == nil {
				s = &breakdown.Sums{}
			}
			o.Count = append(o.Count, int64(s.Count))
			o.Comm, o.Exposed, o.Hidden = append(o.Comm, s.Total), append(o.Exposed, s.Exposed), append(o.Hidden, s.Hidden)
			if sum.BytesKnown {
				o.Bytes = append(o.Bytes, s.Bytes)
				o.BusBytes = append(o.BusBytes, int64(math.Round(bus[sampled{p, i}])))
			}
			if sum.TimesKnown {
				o.Wait, o.Transfer = append(o.Wait, s.Wait), append(o.Transfer, s.Transfer)
			}
		}
		r.Operations = append(r.Operations, o)
	}
	slices.SortFunc(r.Operations, func(a, b Operation) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Size, b.Size), cmp.Compare(a.Phase, b.Phase))
	})
}

// busFactor is bus over algorithm bandwidth, 1 where the group's size is unknown.
func busFactor(op comm.Op, ranks int) float64 {
	algorithm, bus, ok := collective.Bandwidth(op, 1, 1, ranks, 1)
	if !ok {
		return 1
	}
	return bus / algorithm
}
