package export

import (
	"cmp"
	"slices"

	"mixdown/analyze/align"
	"mixdown/analyze/report"
	"mixdown/ingest/trace"
)

// communicationLayout: one row for each operation of each rank.
func communicationLayout() layout[operation] {
	type o = operation
	bytes := func(of func(*o) int64) func(*o) (int64, bool) {
		return func(r *o) (int64, bool) { return of(r), r.sized() }
	}
	elements := func(of func(*o) int64) func(*o) (int64, bool) {
		return func(r *o) (int64, bool) { return of(r), r.SizeKnown }
	}
	measured := func(of func(*o) int64) func(*o) (int64, bool) {
		return func(r *o) (int64, bool) { return of(r), len(r.Events) > 0 }
	}
	return layout[o]{
		name: "communication", byRank: true, sorted: []string{"ts"},
		about: "every communication of every rank",
		columns: []column[o]{
			whole("operation", "", "number of the operation among the rank's, in the order issued; row of the dataset's table operations", func(r *o) int64 { return int64(r.number) }),
			word("name", "of the event the times are from", func(r *o) string { return r.Name }),
			word("step", "training step in which it was issued", func(r *o) string { return r.step }),
			word("phase", "forward, backward, optimizer or other", func(r *o) string { return r.phase.String() }),
			word("module", "innermost nn.Module that issued it", func(r *o) string { return r.Module }),
			word("annotation", "innermost annotation of the program around its issue, other than the step", func(r *o) string { return r.annotation }),
			word("group", "process group, as reports show it", func(r *o) string { return r.label }),
			word("process_group_name", "", func(r *o) string { return r.group.Name }),
			word("process_group_desc", "", func(r *o) string { return r.group.Description }),
			maybe("group_size", "ranks", "members of the group", func(r *o) (int64, bool) { return int64(r.group.Size), r.group.Size > 0 }),
			word("op", "all_reduce, all_to_allv, send, ... or unknown", func(r *o) string { return string(r.kind) }),
			word("dtype", "element type", func(r *o) string {
				if !r.SizeKnown {
					return ""
				}
				return string(r.DType)
			}).asHTA("msg_dtype"),
			maybe("in_msg_nelems", "elements", "contributed by this rank", elements(func(r *o) int64 { return r.In })),
			maybe("out_msg_nelems", "elements", "received by this rank", elements(func(r *o) int64 { return r.Out })),
			maybe("in_bytes", "bytes", "contributed by this rank", bytes(func(r *o) int64 { return r.InBytes() })),
			maybe("out_bytes", "bytes", "received by this rank", bytes(func(r *o) int64 { return r.OutBytes() })),
			whole("issued_ns", "ns", "when the host issued it", func(r *o) int64 { return r.Issued }),
			whole("ts", "ns", "first moment it ran on the device or its worker thread", func(r *o) int64 { return r.Start }),
			whole("dur", "ns", "from then to its end, waiting included", func(r *o) int64 { return r.Dur() }),
			maybe("busy_ns", "ns", "length of the union of its events; less than dur when several kernels carry it; null without events", measured(func(r *o) int64 { return r.busy })),
			maybe("exposed_ns", "ns", "part of busy_ns with no computation of this rank", measured(func(r *o) int64 { return r.exposed })),
			maybe("wait_ns", "ns", "until the last member arrived; null without a match or comparable clocks", func(r *o) (int64, bool) { return r.wait, r.timed }),
			maybe("transfer_ns", "ns", "from then to the end; wait_ns + transfer_ns = dur", func(r *o) (int64, bool) { return r.transfer, r.timed }),
			maybe("collective_id", "", "row of collectives that it is part of; null of point-to-point and unmatched operations", func(r *o) (int64, bool) { return int64(r.match), r.match >= 0 }),
			maybe("seq", "", "sequence number in the group, as the trace has it", func(r *o) (int64, bool) { return r.Seq, r.SeqKnown }).asHTA("seq_num"),
			word("stream", "device stream or worker thread; text, unlike HTA's", func(r *o) string { return r.Stream }),
			flag("splits_estimated", "totals are exact, the parts to each member are estimates", func(r *o) bool { return r.SplitsEstimated }),
		},
	}
}

// ranksLayout: the time of each rank.
func ranksLayout() layout[report.Rank] {
	type r = report.Rank
	return layout[r]{
		name: "ranks", sorted: []string{"rank"}, about: "the time of every rank: unions of intervals of its device, or of its CPU where it has none",
		columns: []column[r]{
			whole("rank", "", "global rank", func(x *r) int64 { return int64(x.Rank) }),
			word("rank_from", "where the rank is from", func(x *r) string { return x.RankFrom }),
			word("source", "the file", func(x *r) string { return x.Source }),
			word("device", "gpu, or cpu when the trace has no device events", func(x *r) string { return x.Device }),
			whole("events", "events", "in the file", func(x *r) int64 { return x.Events }),
			flag("truncated", "the file ends early", func(x *r) bool { return x.Truncated }),
			whole("span_ns", "ns", "from the first to the last device event", func(x *r) int64 { return x.Time.Span }),
			whole("compute_ns", "ns", "computation", func(x *r) int64 { return x.Time.Compute }),
			whole("comm_ns", "ns", "communication", func(x *r) int64 { return x.Time.Comm }),
			whole("exposed_comm_ns", "ns", "communication with no computation", func(x *r) int64 { return x.Time.Exposed }),
			whole("hidden_comm_ns", "ns", "communication under computation", func(x *r) int64 { return x.Time.Hidden }),
			whole("memory_ns", "ns", "copies and sets", func(x *r) int64 { return x.Time.Memory }),
			whole("idle_ns", "ns", "none of the three", func(x *r) int64 { return x.Time.Idle }),
			whole("idle_launch_ns", "ns", "idle: nothing was launched", func(x *r) int64 { return x.Time.IdleLaunch }),
			whole("idle_sync_ns", "ns", "idle: the host was blocked in a call that waits for the device", func(x *r) int64 { return x.Time.IdleSync }),
			whole("idle_other_ns", "ns", "idle: otherwise", func(x *r) int64 { return x.Time.IdleOther }),
			ratio("comp_comm_overlap_pctg", "%", "hidden_comm_ns in comm_ns", func(x *r) (float64, bool) {
				return 100 * float64(x.Time.Hidden) / float64(max(x.Time.Comm, 1)), x.Time.Comm > 0
			}),
		},
	}
}

// stepRow is one step of one rank with its communication summed up.
type stepRow struct {
	rank int
	trace.Step
	operations, busy, exposed int64
	wait                      int64
	untimed                   int64 // operations whose wait is not known
}

func stepRows(rank *trace.Rank, operations []operation) []stepRow {
	rows := make([]stepRow, len(rank.Steps))
	byName := map[string]int{}
	for i, s := range rank.Steps {
		rows[i] = stepRow{rank: rank.Rank, Step: s}
		byName[s.Name] = i
	}
	for _, o := range operations {
		if i, ok := byName[o.step]; ok && o.step != "" {
			r := &rows[i]
			r.operations, r.busy, r.exposed, r.wait = r.operations+1, r.busy+o.busy, r.exposed+o.exposed, r.wait+o.wait
			if !o.timed {
				r.untimed++
			}
		}
	}
	return rows
}

func sortSteps(rows []stepRow) []stepRow {
	slices.SortStableFunc(rows, func(a, b stepRow) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.rank, b.rank)) })
	return rows
}

func stepsLayout() layout[stepRow] {
	type r = stepRow
	return layout[r]{
		name: "steps", sorted: []string{"ts", "rank"}, about: "training steps of every rank as its CPU saw them, with the communication issued in them (summed, not a union)",
		columns: []column[r]{
			whole("rank", "", "global rank", func(x *r) int64 { return int64(x.rank) }),
			word("step", "name, which communication refers to", func(x *r) string { return x.Name }),
			whole("iteration", "", "its number", func(x *r) int64 { return int64(x.Number) }),
			whole("ts", "ns", "start", func(x *r) int64 { return x.Start }),
			whole("dur", "ns", "duration", func(x *r) int64 { return x.End - x.Start }),
			whole("operations", "operations", "communication issued in the step", func(x *r) int64 { return x.operations }),
			whole("comm_sum_ns", "ns", "sum of busy_ns", func(x *r) int64 { return x.busy }),
			whole("exposed_sum_ns", "ns", "sum of exposed_ns", func(x *r) int64 { return x.exposed }),
			maybe("wait_sum_ns", "ns", "sum of wait_ns; null when it is not known of one of them", func(x *r) (int64, bool) { return x.wait, x.untimed == 0 }),
		},
	}
}

func diagnosticsLayout() layout[report.Diagnostic] {
	type r = report.Diagnostic
	return layout[r]{
		name: "diagnostics", sorted: []string{"code"}, about: "faults of the input, counted; see mixdown help diagnostics",
		columns: []column[r]{
			word("code", "kind of fault", func(x *r) string { return x.Code }),
			maybe("rank", "", "global rank; null when it concerns no single one", func(x *r) (int64, bool) { return deref(x.Rank) }),
			whole("count", "", "occurrences", func(x *r) int64 { return x.Count }),
			maybe("offset", "bytes", "of the first in the decompressed file", func(x *r) (int64, bool) { return deref(x.Offset) }),
			word("example", "text of the first", func(x *r) string { return x.Example }),
		},
	}
}

func clocksLayout() layout[align.Clock] {
	type r = align.Clock
	matched := func(get func(*r) int64) func(*r) (int64, bool) {
		return func(x *r) (int64, bool) { return get(x), x.Matches > 0 }
	}
	return layout[r]{
		name: "clocks", sorted: []string{"rank"}, about: "what was corrected of every rank's clock, and what remains",
		columns: []column[r]{
			whole("rank", "", "global rank", func(x *r) int64 { return int64(x.Rank) }),
			whole("offset_ns", "ns", "what the clock was ahead of its part's reference at epoch_ns; taken off all times", func(x *r) int64 { return x.Offset }),
			whole("drift", "ns per 1e12 ns", "what it gained", func(x *r) int64 { return x.Drift }),
			whole("epoch_ns", "ns", "a time that this clock showed", func(x *r) int64 { return x.Epoch }),
			maybe("residual_ns", "ns", "median distance of its ends of collectives from those of all members, after the correction", matched(func(x *r) int64 { return x.Residual })),
			whole("matches", "collectives", "ends used", func(x *r) int64 { return int64(x.Matches) }),
			whole("uncertainty_ns", "ns", "bound of the error of offset_ns where messages gave it", func(x *r) int64 { return x.Uncertainty }),
			whole("component", "", "ranks with the same number can be compared", func(x *r) int64 { return int64(x.Component) }),
		},
	}
}

func deref[N int | int64](p *N) (int64, bool) {
	if p == nil {
		return 0, false
	}
	return int64(*p), true
}
