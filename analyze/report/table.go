package report

import (
	"cmp"
	"slices"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/analyze/overlap"
	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// table gathers the rows of the communication table.
type table struct {
	byKey      map[rowKey]*row
	comparable bool         // all clocks can be compared
	impossible map[int]bool // collectives whose match is wrong
}

func newTable(clocks *align.Result) *table {
	t := &table{byKey: map[rowKey]*row{}, comparable: clocks.Connected, impossible: map[int]bool{}}
	for _, i := range clocks.Impossible {
		t.impossible[i] = true
	}
	return t
}

// rowKey is what the operations of one row have in common.
type rowKey struct {
	group   int // index into Matching.Groups
	op      comm.Op
	dtype   comm.DType
	in, out int64 // bytes
	sized   bool
}

// row is a row while it grows.
type row struct {
	Communication
	group          *collective.Group
	wait, transfer int64
	unmatched      bool // an operation of the row has no match: its wait is not known
}

// add tabulates the operations of rank index r.
func (t *table) add(run *trace.Run, m *collective.Matching, r int, activity overlap.Activity) {
	rank := run.Ranks[r]
	for i := range rank.Operations {
		op := &rank.Operations[i]
		k := rowKey{group: m.GroupOf[r][op.Group], op: op.Op, sized: op.SizeKnown}
		c, matched := m.Of(collective.Member{Rank: r, Operation: i})
		if matched {
			k.op = c.Op
		}
		if op.SizeKnown {
			k.dtype, k.in, k.out = op.DType, op.InBytes(), op.OutBytes()
		}
		row := t.byKey[k]
		if row == nil {
			row = newRow(k, &m.Groups[k.group])
			t.byKey[k] = row
		}
		row.Count++
		var own []overlap.Interval
		for _, e := range op.Events {
			own = append(own, overlap.Interval{Start: rank.Events.TS[e], End: rank.Events.End(e)})
		}
		busy := overlap.Union(own)
		row.Total += busy.Length()
		row.Exposed += busy.Subtract(activity.Compute).Length()
		if k.op == comm.AllToAllV || k.op == comm.AllToAll {
			row.noteSplits(op)
		}
		last, known := m.LastStart(run, collective.Member{Rank: r, Operation: i})
		if i, ok := m.Index(collective.Member{Rank: r, Operation: i}); !known || !t.comparable || ok && t.impossible[i] {
			row.unmatched = true
			continue
		}
		wait := min(max(last-op.Start, 0), op.Dur())
		row.wait += wait
		row.transfer += op.Dur() - wait
	}
}

func newRow(k rowKey, group *collective.Group) *row {
	r := &row{group: group, Communication: Communication{Group: group.Label(), Op: k.op}}
	if k.sized {
		dtype := string(k.dtype)
		r.DType, r.InBytes, r.OutBytes = &dtype, &k.in, &k.out
	}
	if group.Size > 0 {
		r.Ranks = &group.Size
	}
	return r
}

// noteSplits keeps the weakest knowledge of any operation of the row.
func (r *row) noteSplits(op *comm.Operation) {
	kind := SplitsEstimated
	if op.SplitsKnown && !op.SplitsEstimated {
		kind = SplitsExact
	}
	if r.Splits == nil || *r.Splits == SplitsExact {
		r.Splits = &kind
	}
}

// rows finishes the table: longest total first.
func (t *table) rows() []Communication {
	list := make([]Communication, 0, len(t.byKey))
	for _, r := range t.byKey {
		if !r.unmatched {
			r.Wait, r.Transfer = &r.wait, &r.transfer
			if r.InBytes != nil && r.Ranks != nil {
				alg, bus, ok := collective.Bandwidth(r.Op, *r.InBytes, *r.OutBytes, *r.Ranks, r.transfer/int64(r.Count))
				if ok {
					r.AlgBW, r.BusBW = &alg, &bus
				}
			}
		}
		list = append(list, r.Communication)
	}
	slices.SortFunc(list, func(a, b Communication) int {
		return cmp.Or(
			cmp.Compare(b.Total, a.Total),
			cmp.Compare(a.Group, b.Group),
			cmp.Compare(a.Op, b.Op),
			cmp.Compare(orUnknown(a.InBytes), orUnknown(b.InBytes)),
			cmp.Compare(orUnknown(a.OutBytes), orUnknown(b.OutBytes)),
		)
	})
	return list
}

func orUnknown(p *int64) int64 {
	if p == nil {
		return -1
	}
	return *p
}
