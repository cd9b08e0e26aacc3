package dataset

import (
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/schema"

	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// operations is the table of a rank's communication, in the order it was issued.
func operations(r *trace.Rank) *table {
	at := func(i int) *comm.Operation { return &r.Operations[i] }
	return &table{
		rows: len(r.Operations),
		grow: func(n int) {
			for range n {
				r.Operations = append(r.Operations, comm.Operation{Thread: -1, Event: -1})
			}
		},
		columns: []column{
			required("operation", func(i int) int64 { return int64(i) }, inOrder).as(deltas),
			text("op", func(i int) string { return string(at(i).Op) }, func(i int, s string) { at(i).Op = comm.Op(s) }),
			whole("group", func(i int) *int { return &at(i).Group }),
			whole("index_in_group", func(i int) *int { return &at(i).Index }).as(deltas),
			optionalText("dtype", func(i int) string { return string(at(i).DType) }, func(i int, s string) { at(i).DType = comm.DType(s) }),
			elements("in_elements", at, func(o *comm.Operation) *int64 { return &o.In }),
			elements("out_elements", at, func(o *comm.Operation) *int64 { return &o.Out }),
			inBytes("in_bytes", at, (*comm.Operation).InBytes),
			inBytes("out_bytes", at, (*comm.Operation).OutBytes),
			integers("in_splits", func(i int) *[]int64 { return &at(i).InSplits }),
			integers("out_splits", func(i int) *[]int64 { return &at(i).OutSplits }),
			truth("splits_known", func(i int) *bool { return &at(i).SplitsKnown }),
			truth("splits_estimated", func(i int) *bool { return &at(i).SplitsEstimated }),
			tensors(at),
			optional("channels",
				func(i int) (int64, bool) { return int64(at(i).Channels), at(i).Channels > 0 },
				func(i int, v int64) error { at(i).Channels = int(v); return nil }),
			optional("root",
				func(i int) (int64, bool) { return int64(at(i).Root), at(i).RootKnown },
				func(i int, v int64) error { at(i).Root, at(i).RootKnown = int(v), true; return nil }),
			transfers(at),
			optional("seq",
				func(i int) (int64, bool) { return at(i).Seq, at(i).SeqKnown },
				func(i int, v int64) error { at(i).Seq, at(i).SeqKnown = v, true; return nil }),
			// An id, all 64 bits of it: Parquet has the sign as a matter of reading.
			unsigned(optional("comms_id",
				func(i int) (int64, bool) { return int64(at(i).CommsID), at(i).CommsID != 0 },
				func(i int, v int64) error { at(i).CommsID = uint64(v); return nil })),
			wholeUnless(-1, "thread", func(i int) *int { return &at(i).Thread }),
			integer("issued_ns", func(i int) *int64 { return &at(i).Issued }).as(deltas),
			integer("returned_ns", func(i int) *int64 { return &at(i).Returned }).as(deltas),
			integer("ts", func(i int) *int64 { return &at(i).Start }).as(deltas),
			required("dur",
				func(i int) int64 { return at(i).Dur() },
				func(i int, v int64) error { at(i).End = at(i).Start + v; return nil }).as(deltas),
			optionalText("stream", func(i int) string { return at(i).Stream }, func(i int, s string) { at(i).Stream = s }),
			text("name", func(i int) string { return at(i).Name }, func(i int, s string) { at(i).Name = s }),
			optionalText("module", func(i int) string { return at(i).Module }, func(i int, s string) { at(i).Module = s }),
			integer("offset", func(i int) *int64 { return &at(i).Offset }).as(deltas),
			optional("record_function",
				func(i int) (int64, bool) { return at(i).RecordFn, at(i).RecordFn != 0 },
				func(i int, v int64) error { at(i).RecordFn = v; return nil }),
			optional("event",
				func(i int) (int64, bool) { return int64(at(i).Event), at(i).Event >= 0 && at(i).Event < r.Events.Len() },
				func(i int, v int64) error { at(i).Event = int(v); return nil }),
			wholes("events", func(i int) *[]int { return &at(i).Events }),
		},
	}
}

// elements is a size that only counts where sizes are known.
func elements(name string, at func(i int) *comm.Operation, field func(*comm.Operation) *int64) column {
	return optional(name,
		func(i int) (int64, bool) { return *field(at(i)), at(i).SizeKnown },
		func(i int, v int64) error { *field(at(i)), at(i).SizeKnown = v, true; return nil })
}

// inBytes is for readers of the table: it follows from the elements. It is null
// where the size of an element is not known.
func inBytes(name string, at func(i int) *comm.Operation, of func(*comm.Operation) int64) column {
	return optional(name,
		func(i int) (int64, bool) { return of(at(i)), at(i).SizeKnown && at(i).DType.Size() > 0 },
		func(int, int64) error { return nil })
}

// transfers is the column of point-to-point parts: a list of records.
func transfers(at func(i int) *comm.Operation) column {
	l := list{
		name: "transfers",
		length: func(i int) int {
			if at(i).Transfers == nil {
				return -1
			}
			return len(at(i).Transfers)
		},
		resize: func(i, n int) { at(i).Transfers = make([]comm.Transfer, n) },
	}
	field := func(i, j int) *comm.Transfer { return &at(i).Transfers[j] }
	fields := schema.FieldList{
		node[bool]("send", parquet.Repetitions.Required),
		node[int64]("peer", parquet.Repetitions.Optional),
		node[int64]("elements", parquet.Repetitions.Required),
	}
	return l.of(schema.MustGroup(schema.NewGroupNode("element", parquet.Repetitions.Required, fields, -1)),
		listLeaf(l, true, inList,
			func(i, j int) (bool, bool) { return field(i, j).Send, true },
			func(i, j int, v bool) { *field(i, j) = comm.Transfer{Send: v, Peer: unknownPeer} }),
		listLeaf(l, false, inField,
			func(i, j int) (int64, bool) { return int64(field(i, j).Peer), field(i, j).Peer != unknownPeer },
			func(i, j int, v int64) { field(i, j).Peer = int(v) }),
		listLeaf(l, false, inList,
			func(i, j int) (int64, bool) { return field(i, j).Count, true },
			func(i, j int, v int64) { field(i, j).Count = v }))
}

// tensors is the column of coalesced collectives: a list of records.
func tensors(at func(i int) *comm.Operation) column {
	l := list{
		name: "tensors",
		length: func(i int) int {
			if at(i).Tensors == nil {
				return -1
			}
			return len(at(i).Tensors)
		},
		resize: func(i, n int) { at(i).Tensors = make([]comm.Tensor, n) },
	}
	fields := schema.FieldList{
		node[int64]("in_elements", parquet.Repetitions.Required),
		node[int64]("out_elements", parquet.Repetitions.Required),
	}
	return l.of(schema.MustGroup(schema.NewGroupNode("element", parquet.Repetitions.Required, fields, -1)),
		listLeaf(l, true, inList,
			func(i, j int) (int64, bool) { return at(i).Tensors[j].In, true },
			func(i, j int, v int64) { at(i).Tensors[j].In = v }),
		listLeaf(l, false, inList,
			func(i, j int) (int64, bool) { return at(i).Tensors[j].Out, true },
			func(i, j int, v int64) { at(i).Tensors[j].Out = v }))
}

// unknownPeer is what the store has for a peer that the trace does not name.
const unknownPeer = -1

// unsigned marks a column whose integers have no sign.
func unsigned(c column) column {
	c.node = schema.MustPrimitive(schema.NewPrimitiveNodeLogical(c.name, c.node.RepetitionType(),
		schema.NewIntLogicalType(64, false), parquet.Types.Int64, 0, -1))
	return c
}
