package dataset

import (
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow/go/v15/parquet"

	"mixdown/ingest/trace"
)

// categories are the words of the column category.
var categories = []string{
	trace.Other: "other", trace.CPUOp: "cpu_op", trace.UserAnnotation: "user_annotation",
	trace.PythonFunction: "python_function", trace.Runtime: "runtime", trace.Kernel: "kernel",
	trace.Memcpy: "memcpy", trace.Memset: "memset", trace.CollectiveActivity: "collective_activity",
	trace.GPUAnnotation: "gpu_annotation", trace.Sync: "sync", trace.Instant: "instant",
}

// phases are the words of the column phase; unknown is null.
var phases = []trace.Phase{trace.Forward, trace.Backward, trace.Optimizer, trace.OtherPhase}

// events is the table of a rank's events. Its rows are numbered, because
// operations refer to them by number and readers need not keep the order.
func events(r *trace.Rank) *table {
	ev := &r.Events
	names := make([]parquet.ByteArray, r.Names.Len())
	for id := range names {
		names[id] = parquet.ByteArray(valid(r.Names.Get(trace.NameID(id))))
	}
	words := make([]parquet.ByteArray, len(categories))
	for i, w := range categories {
		words[i] = parquet.ByteArray(w)
	}
	return &table{
		rows: ev.Len(),
		grow: func(n int) { growEvents(ev, n) },
		columns: []column{
			required("event", func(i int) int64 { return int64(i) }, inOrder).as(deltas),
			required("name",
				func(i int) parquet.ByteArray { return names[ev.Name[i]] },
				func(i int, v parquet.ByteArray) error { ev.Name[i] = r.Names.Intern(v); return nil }),
			required("category",
				func(i int) parquet.ByteArray { return words[ev.Category[i]] },
				func(i int, v parquet.ByteArray) (err error) { ev.Category[i], err = parseCategory(v); return err }),
			required("thread",
				func(i int) int64 { return int64(ev.Thread[i]) },
				func(i int, v int64) (err error) { ev.Thread[i], err = threadID(v); return err }),
			integer("ts", func(i int) *int64 { return &ev.TS[i] }).as(deltas),
			integer("dur", func(i int) *int64 { return &ev.Dur[i] }).as(deltas),
			integer("offset", func(i int) *int64 { return &ev.Offset[i] }).as(deltas),
			optional("correlation",
				func(i int) (int64, bool) { return ev.Correlation[i], ev.Correlation[i] != trace.NoID },
				func(i int, v int64) error { ev.Correlation[i] = v; return nil }).as(numbers),
			optional("stream",
				func(i int) (int64, bool) { return ev.Stream[i], ev.Stream[i] != trace.NoStream },
				func(i int, v int64) error { ev.Stream[i] = v; return nil }),
			optional("device",
				func(i int) (int64, bool) { return int64(ev.Device[i]), ev.Device[i] >= 0 },
				func(i int, v int64) error {
					if v < 0 || v > math.MaxInt32 {
						return fmt.Errorf("device %d", v)
					}
					ev.Device[i] = int32(v)
					return nil
				}),
			optional("phase",
				func(i int) (parquet.ByteArray, bool) {
					return parquet.ByteArray(ev.Phase[i].String()), ev.Phase[i] != trace.UnknownPhase
				},
				func(i int, v parquet.ByteArray) (err error) { ev.Phase[i], err = parsePhase(v); return err }),
			optional("blocks",
				func(i int) (int64, bool) { return int64(ev.Blocks[i]), ev.Blocks[i] > 0 },
				func(i int, v int64) error {
					if v < 1 || v > math.MaxInt32 {
						return fmt.Errorf("%d blocks", v)
					}
					ev.Blocks[i] = int32(v)
					return nil
				}).later(),
		},
	}
}

// inOrder checks a column of row numbers.
func inOrder(i int, v int64) error {
	if int64(i) != v {
		return fmt.Errorf("row %d has the number %d: rows must stay in order", i, v)
	}
	return nil
}

func growEvents(ev *trace.Events, n int) {
	ev.Name = append(ev.Name, make([]trace.NameID, n)...)
	ev.Category = append(ev.Category, make([]trace.Category, n)...)
	ev.Thread = append(ev.Thread, make([]trace.ThreadID, n)...)
	ev.TS = append(ev.TS, make([]int64, n)...)
	ev.Dur = append(ev.Dur, make([]int64, n)...)
	ev.Offset = append(ev.Offset, make([]int64, n)...)
	ev.Correlation = append(ev.Correlation, slices.Repeat([]int64{trace.NoID}, n)...)
	ev.Stream = append(ev.Stream, slices.Repeat([]int64{trace.NoStream}, n)...)
	ev.Device = append(ev.Device, slices.Repeat([]int32{-1}, n)...)
	ev.Phase = append(ev.Phase, make([]trace.Phase, n)...)
	ev.Blocks = append(ev.Blocks, make([]int32, n)...)
}

func parseCategory(v []byte) (trace.Category, error) {
	for c, w := range categories {
		if string(v) == w {
			return trace.Category(c), nil
		}
	}
	return 0, fmt.Errorf("unknown category %q", v)
}

func parsePhase(v []byte) (trace.Phase, error) {
	for _, p := range phases {
		if string(v) == p.String() {
			return p, nil
		}
	}
	return 0, fmt.Errorf("unknown phase %q", v)
}

func threadID(v int64) (trace.ThreadID, error) {
	if v < 0 || v > math.MaxUint32 {
		return 0, fmt.Errorf("thread %d", v)
	}
	return trace.ThreadID(v), nil
}
