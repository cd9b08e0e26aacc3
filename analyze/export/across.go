package export

import (
	"cmp"
	"slices"

	"mixdown/analyze/collective"
	"mixdown/analyze/straggler"
	"mixdown/ingest/comm"
)

// collectiveRow is one matched collective over all its members.
type collectiveRow struct {
	id                int
	of                *collective.Collective
	group             *collective.Group
	label, step       string
	first, last, end  int64 // ns: first and last arrival, last end
	lastRank          int
	wait              int64 // ns, of all members
	in, out           int64 // bytes, valid with sized
	sized             bool  // and the same on all members
	dtype             comm.DType
	timed, impossible bool
}

// collectiveRows lists the matched collectives by the first arrival.
func (x *exporter) collectiveRows() []collectiveRow {
	rows := make([]collectiveRow, 0, len(x.Match.Collectives))
	for i := range x.Match.Collectives {
		c := &x.Match.Collectives[i]
		row := collectiveRow{id: i, of: c, group: &x.Match.Groups[c.Group], label: x.labels[c.Group], impossible: x.impossible[i]}
		row.timed = x.Clocks.Connected && !row.impossible
		for k, at := range c.Members {
			op := &x.Run.Ranks[at.Rank].Operations[at.Operation]
			if k == 0 {
				row.first, row.last, row.end = op.Start, op.Start, op.End
				row.sized = op.SizeKnown && op.DType.Size() > 0
				row.in, row.out, row.dtype = op.InBytes(), op.OutBytes(), op.DType
				row.step = x.Run.Ranks[at.Rank].StepAt(op.Issued)
				row.lastRank = x.Run.Ranks[at.Rank].Rank
			}
			row.sized = row.sized && op.SizeKnown && op.DType == row.dtype && op.InBytes() == row.in && op.OutBytes() == row.out
			if op.Start > row.last {
				row.last, row.lastRank = op.Start, x.Run.Ranks[at.Rank].Rank
			}
			row.first, row.end = min(row.first, op.Start), max(row.end, op.End)
			row.wait += min(max(c.LastStart-op.Start, 0), op.Dur())
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b collectiveRow) int { return cmp.Compare(a.first, b.first) })
	return rows
}

// bandwidth of the collective: from the last arrival to the last end.
func (r *collectiveRow) bandwidth() (alg, bus float64, ok bool) {
	if !r.timed || !r.sized {
		return 0, 0, false
	}
	return collective.Bandwidth(r.of.Op, r.in, r.out, len(r.of.Members), r.end-r.last)
}

func collectivesLayout() layout[collectiveRow] {
	type r = collectiveRow
	timed := func(get func(*r) int64) func(*r) (int64, bool) {
		return func(x *r) (int64, bool) { return get(x), x.timed }
	}
	sized := func(get func(*r) int64) func(*r) (int64, bool) {
		return func(x *r) (int64, bool) { return get(x), x.sized }
	}
	return layout[r]{
		name: "collectives", sorted: []string{"ts"}, about: "collectives matched on all their members; what compares clocks is null where they can't be",
		columns: []column[r]{
			whole("collective_id", "", "which communication refers to", func(x *r) int64 { return int64(x.id) }),
			word("step", "training step in which the first member issued it", func(x *r) string { return x.step }),
			word("group", "process group, as reports show it", func(x *r) string { return x.label }),
			word("process_group_name", "", func(x *r) string { return x.group.Name }),
			word("process_group_desc", "", func(x *r) string { return x.group.Description }),
			maybe("group_size", "ranks", "members of the group", func(x *r) (int64, bool) { return int64(x.group.Size), x.group.Size > 0 }),
			whole("seq", "", "position among the matched collectives of the group, from 0", func(x *r) int64 { return int64(x.of.Seq) }),
			word("op", "operation", func(x *r) string { return string(x.of.Op) }),
			word("dtype", "element type; null when the members differ", func(x *r) string {
				if !x.sized {
					return ""
				}
				return string(x.dtype)
			}).asHTA("msg_dtype"),
			maybe("in_bytes", "bytes", "contributed by each member; null when they differ", sized(func(x *r) int64 { return x.in })),
			maybe("out_bytes", "bytes", "received by each member; null when they differ", sized(func(x *r) int64 { return x.out })),
			whole("ts", "ns", "when the first member arrived", func(x *r) int64 { return x.first }),
			maybe("dur", "ns", "from then to the last end", timed(func(x *r) int64 { return x.end - x.first })),
			maybe("skew_ns", "ns", "from the first arrival to the last", timed(func(x *r) int64 { return x.last - x.first })),
			maybe("transfer_ns", "ns", "from the last arrival to the last end", timed(func(x *r) int64 { return x.end - x.last })),
			maybe("wait_ns", "ns", "waiting of all members together", timed(func(x *r) int64 { return x.wait })),
			maybe("last_rank", "", "global rank that arrived last", timed(func(x *r) int64 { return int64(x.lastRank) })),
			ratio("algbw_gbps", "GB/s", "size / transfer_ns, as nccl-tests defines it, GB = 1e9 bytes", func(x *r) (float64, bool) { a, _, ok := x.bandwidth(); return a, ok }),
			ratio("busbw_gbps", "GB/s", "the same for the bus", func(x *r) (float64, bool) { _, b, ok := x.bandwidth(); return b, ok }),
			flag("impossible", "one member left before another arrived: the match or a clock is wrong", func(x *r) bool { return x.impossible }),
		},
	}
}

// stragglerRow is one collective that waited for one rank alone.
type stragglerRow struct {
	straggler.Late
	label string
	ts    int64 // ns, its first arrival
}

func (x *exporter) stragglerRows() []stragglerRow {
	rows := []stragglerRow{}
	for _, l := range straggler.Find(x.Run, x.Match, x.Clocks).Late {
		row := stragglerRow{Late: l, label: x.labels[l.Group]}
		for k, at := range x.Match.Collectives[l.Collective].Members {
			if start := x.Run.Ranks[at.Rank].Operations[at.Operation].Start; k == 0 || start < row.ts {
				row.ts = start
			}
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b stragglerRow) int { return cmp.Compare(a.ts, b.ts) })
	return rows
}

func stragglersLayout() layout[stragglerRow] {
	type r = stragglerRow
	return layout[r]{
		name: "stragglers", sorted: []string{"ts"}, about: "collectives that waited for their last rank alone; ties and what could not be judged are left out",
		columns: []column[r]{
			whole("rank", "", "global rank that came last", func(x *r) int64 { return int64(x.Rank) }),
			whole("collective_id", "", "row of collectives", func(x *r) int64 { return int64(x.Collective) }),
			word("step", "training step of the rank", func(x *r) string { return x.Step }),
			word("group", "process group, as reports show it", func(x *r) string { return x.label }),
			word("op", "operation", func(x *r) string { return string(x.Op) }),
			whole("seq", "", "position among the matched collectives of the group, from 0", func(x *r) int64 { return int64(x.Seq) }),
			whole("ts", "ns", "when the first member arrived", func(x *r) int64 { return x.ts }),
			whole("by_ns", "ns", "after the second-last arrival", func(x *r) int64 { return x.By }),
			whole("waiting", "ranks", "members that waited for it", func(x *r) int64 { return int64(x.Waiting) }),
			whole("caused_ns", "ns", "by_ns x waiting", func(x *r) int64 { return x.Caused }),
			whole("wait_ns", "ns", "waiting of all members, whoever caused it", func(x *r) int64 { return x.Wait }),
			whole("inherited_ns", "ns", "part of by_ns that the rank may have lost waiting for another before", func(x *r) int64 { return x.Inherited }),
			maybe("inherited_from", "", "global rank that it waited for", func(x *r) (int64, bool) { return int64(x.From), x.Inherited > 0 }),
		},
	}
}
