package dataset

import (
	"encoding/json"
	"slices"

	"github.com/apache/arrow/go/v15/parquet"

	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// ranks is the table of what a rank is; a rank has one row of it.
func ranks(r *trace.Rank) *table {
	kept := r.Events.Len()
	return &table{
		rows: 1,
		grow: func(int) {},
		columns: []column{
			text("source", func(int) string { return r.Source }, func(_ int, s string) { r.Source = s }),
			text("rank_from", func(int) string { return r.RankFrom }, func(_ int, s string) { r.RankFrom = s }),
			optionalText("host", func(int) string { return r.Host }, func(_ int, s string) { r.Host = s }),
			wholeUnless(0, "sms", func(int) *int { return &r.SMs }),
			optionalText("gpu", func(int) string { return r.GPU }, func(_ int, s string) { r.GPU = s }),
			optional("versions", func(int) (parquet.ByteArray, bool) { return versionsText(r.Versions) },
				func(_ int, v parquet.ByteArray) error { return json.Unmarshal(v, &r.Versions) }),
			integer("events_read", func(int) *int64 { return &r.Read }),
			required("events", func(int) int64 { return int64(kept) }, func(int, int64) error { return nil }),
			optionalText("backend", func(int) string { return r.Distributed.Backend }, func(_ int, s string) { r.Distributed.Backend = s }),
			wholeUnless(0, "world_size", func(int) *int { return &r.Distributed.WorldSize }),
			truth("cpu_only", func(int) *bool { return &r.CPUOnly }),
			truth("truncated", func(int) *bool { return &r.Truncated }),
		},
	}
}

// versionsText writes versions as JSON, which readers of tables have functions for.
func versionsText(versions map[string]string) (parquet.ByteArray, bool) {
	data, err := json.Marshal(versions)
	return data, err == nil && len(versions) > 0
}

// group is a row of the table of groups.
type group struct {
	number int // what operations refer to, noGroup for groups that none is of
	comm.Group
}

const noGroup = -1

// groupsOf lists the groups of a rank's operations and those that the file says
// the job has, which tell more about groups that the rank did not use.
func groupsOf(r *trace.Rank) *[]group {
	var all []group
	for i, g := range r.Groups {
		all = append(all, group{i, g})
	}
	for _, g := range r.Distributed.Groups {
		all = append(all, group{noGroup, g})
	}
	return &all
}

func groups(rows *[]group) *table {
	at := func(i int) *group { return &(*rows)[i] }
	return &table{
		rows: len(*rows),
		grow: func(n int) {
			for range n {
				*rows = append(*rows, group{number: noGroup})
			}
		},
		columns: []column{
			wholeUnless(noGroup, "group", func(i int) *int { return &at(i).number }),
			optionalText("name", func(i int) string { return at(i).Name }, func(i int, s string) { at(i).Name = s }),
			optionalText("description", func(i int) string { return at(i).Description }, func(i int, s string) { at(i).Description = s }),
			wholeUnless(0, "size", func(i int) *int { return &at(i).Size }),
			wholes("ranks", func(i int) *[]int { return &at(i).Ranks }),
			optionalText("stream", func(i int) string { return at(i).Stream }, func(i int, s string) { at(i).Stream = s }),
		},
	}
}

// takeGroups puts rows that were read where they belong.
func takeGroups(rows []group, r *trace.Rank) error {
	for _, g := range rows {
		if g.number == noGroup {
			r.Distributed.Groups = append(r.Distributed.Groups, g.Group)
			continue
		}
		if err := inOrder(len(r.Groups), int64(g.number)); err != nil {
			return err
		}
		r.Groups = append(r.Groups, g.Group)
	}
	return nil
}

func steps(r *trace.Rank) *table {
	at := func(i int) *trace.Step { return &r.Steps[i] }
	return &table{
		rows: len(r.Steps),
		grow: func(n int) { r.Steps = append(r.Steps, make([]trace.Step, n)...) },
		columns: []column{
			text("name", func(i int) string { return at(i).Name }, func(i int, s string) { at(i).Name = s }),
			whole("number", func(i int) *int { return &at(i).Number }),
			integer("ts", func(i int) *int64 { return &at(i).Start }).as(deltas),
			required("dur",
				func(i int) int64 { return at(i).End - at(i).Start },
				func(i int, v int64) error { at(i).End = at(i).Start + v; return nil }),
		},
	}
}

func eventWaits(r *trace.Rank) *table {
	at := func(i int) *trace.EventWait { return &r.EventWaits[i] }
	return &table{
		rows: len(r.EventWaits),
		grow: func(n int) {
			r.EventWaits = append(r.EventWaits, slices.Repeat([]trace.EventWait{{Stream: trace.NoStream}}, n)...)
		},
		columns: []column{
			integer("call", func(i int) *int64 { return &at(i).Call }),
			optional("stream",
				func(i int) (int64, bool) { return at(i).Stream, at(i).Stream != trace.NoStream },
				func(i int, v int64) error { at(i).Stream = v; return nil }),
			integer("on_stream", func(i int) *int64 { return &at(i).On }),
			integer("record", func(i int) *int64 { return &at(i).Record }),
		},
	}
}

func waits(r *trace.Rank) *table {
	at := func(i int) *trace.Wait { return &r.Waits[i] }
	return &table{
		rows: len(r.Waits),
		grow: func(n int) { r.Waits = append(r.Waits, make([]trace.Wait, n)...) },
		columns: []column{
			integer("ts", func(i int) *int64 { return &at(i).TS }).as(deltas),
			required("thread",
				func(i int) int64 { return int64(at(i).Thread) },
				func(i int, v int64) (err error) { at(i).Thread, err = threadID(v); return err }),
		},
	}
}

func threads(r *trace.Rank) *table {
	at := func(i int) *trace.Thread { return &r.Threads[i] }
	return &table{
		rows: len(r.Threads),
		grow: func(n int) { r.Threads = append(r.Threads, make([]trace.Thread, n)...) },
		columns: []column{
			required("thread", func(i int) int64 { return int64(i) }, inOrder).as(deltas),
			text("pid", func(i int) string { return at(i).PID }, func(i int, s string) { at(i).PID = s }),
			text("tid", func(i int) string { return at(i).TID }, func(i int, s string) { at(i).TID = s }),
		},
	}
}

// diagnostics is the table of the faults of one rank; those of no rank are in
// the dataset's metadata.
func diagnostics(rank int, rows *[]diagnostic.Diagnostic) *table {
	at := func(i int) *diagnostic.Diagnostic { return &(*rows)[i] }
	return &table{
		rows: len(*rows),
		grow: func(n int) {
			for range n {
				*rows = append(*rows, diagnostic.Diagnostic{Rank: rank, Offset: diagnostic.NoOffset})
			}
		},
		columns: []column{
			text("code", func(i int) string { return at(i).Code }, func(i int, s string) { at(i).Code = s }),
			integer("count", func(i int) *int64 { return &at(i).Count }),
			optional("offset",
				func(i int) (int64, bool) { return at(i).Offset, at(i).Offset != diagnostic.NoOffset },
				func(i int, v int64) error { at(i).Offset = v; return nil }),
			optionalText("example", func(i int) string { return at(i).Example }, func(i int, s string) { at(i).Example = s }),
		},
	}
}
