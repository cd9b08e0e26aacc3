package imports

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"mixdown/ingest/comm"
	"mixdown/ingest/commslog"
	"mixdown/replay/tune"
)

// readDeepSpeed reads DeepSpeed's communication logger: the last table, else the
// verbose lines. Its averages leave out the highest and the lowest tenth. Groups are
// not in the log: all calls are taken to be of the whole job, which a diagnostic
// says.
func readDeepSpeed(x *reading) error {
	log, err := commslog.Read(bytes.NewReader(x.data), x.name, commslog.Options{})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	x.result.Diagnostics.Merge(&log.Diagnostics)
	if n := len(log.Tables); n > 0 {
		return x.deepSpeedTable(&log.Tables[n-1])
	}
	return x.deepSpeedCalls(log.Calls)
}

func (x *reading) deepSpeedTable(t *commslog.Table) error {
	if err := x.ranksKnown(t.WorldSize, 0); err != nil {
		return err
	}
	for _, r := range t.Rows {
		if !x.usable(r.Op, r.Name, r.Offset) || !r.HasTimes {
			continue
		}
		m := measured{op: r.Op, ns: r.AvgNS, n: r.Count, statistic: tune.TrimmedMean, offset: r.Offset}
		if err := x.deepSpeed(m, r.SizeLo, r.SizeHi); err != nil {
			return err
		}
	}
	return nil
}

// usable says whether an operation is a collective that is known.
func (x *reading) usable(op comm.Op, name string, offset int64) bool {
	if op == comm.Unknown || op == comm.Batch || op == comm.Recv {
		x.note(CodeUnknownOp, offset, "%s", name)
		return false
	}
	return true
}

func (x *reading) deepSpeed(m measured, lo, hi int64) error {
	m.size = lo + (hi-lo)/2
	if hi > lo {
		m.sizeError = hi - m.size
		x.note(CodeSize, m.offset, "%s of %d to %d bytes", m.op, lo, hi)
	}
	if !m.op.IsP2P() {
		x.note(CodeGroup, m.offset, "%s: taken to be of all %d ranks", m.op, x.Ranks)
	} else {
		m.ranks = 2
	}
	if hasParts(m.op) && deepSpeedSize(m.op, 1, 2) == 2 {
		m.sizeError *= int64(max(x.Ranks, 1))
	}
	return x.add(m, deepSpeedSize)
}

// deepSpeedCalls takes the median of equal calls.
func (x *reading) deepSpeedCalls(calls []commslog.Call) error {
	type place struct {
		op     comm.Op
		lo, hi int64
	}
	times := map[place][]int64{}
	first := map[place]int64{}
	for _, c := range calls {
		if !x.usable(c.Op, c.Name, c.Offset) || c.DurNS <= 0 {
			continue
		}
		p := place{c.Op, c.SizeLo, c.SizeHi}
		if times[p] == nil {
			first[p] = c.Offset
		}
		times[p] = append(times[p], c.DurNS)
	}
	places := slices.SortedFunc(maps.Keys(times), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi))
	})
	for _, p := range places {
		list := times[p]
		slices.Sort(list)
		m := measured{op: p.op, ns: (list[(len(list)-1)/2] + list[len(list)/2]) / 2, min: list[0], n: int64(len(list)), statistic: tune.Median, offset: first[p]}
		if err := x.deepSpeed(m, p.lo, p.hi); err != nil {
			return err
		}
	}
	return nil
}
