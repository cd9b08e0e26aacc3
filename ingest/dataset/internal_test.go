package dataset

import (
	"bytes"
	"testing"

	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// sample is a small rank that uses every kind of column.
func sample() *trace.Rank {
	r := &trace.Rank{Names: trace.NewStrings(), Threads: []trace.Thread{{PID: "1", TID: "2"}}}
	for i := range 700 {
		row := trace.Row{Name: r.Names.Intern([]byte{byte('a' + i%7)}), TS: int64(i) * 10, Dur: 3, Offset: int64(i), Correlation: trace.NoID, Stream: trace.NoStream, Device: -1}
		if i%2 == 0 {
			row.Category, row.Correlation, row.Stream, row.Device, row.Phase = trace.Kernel, int64(i), 7, 0, trace.Forward
		}
		r.Events.Append(row)
	}
	for i := range 600 {
		op := comm.Operation{Op: comm.AllToAllV, DType: comm.Float32, SizeKnown: true, In: 8, Out: 8, Event: i, Events: []int{i}, Thread: -1, Name: "k"}
		if i%3 == 0 {
			op.InSplits, op.OutSplits, op.Transfers = []int64{1, 2}, []int64{}, []comm.Transfer{{Peer: -1}, {Send: true, Peer: 4, Count: 9}}
		}
		r.Operations = append(r.Operations, op)
	}
	r.Groups = []comm.Group{{Name: "0", Ranks: []int{0, 1}}}
	return r
}

// FuzzDecode: whatever the bytes, an error or a table, never a panic, and never
// more memory than the bytes account for.
func FuzzDecode(f *testing.F) {
	r := sample()
	for _, t := range []*table{events(r), operations(r), groups(groupsOf(r))} {
		var b bytes.Buffer
		if err := encode(&b, t); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes(), t.rows)
		f.Add(b.Bytes()[:b.Len()/2], t.rows)
	}
	f.Add([]byte("PAR1"), 0)
	f.Fuzz(func(t *testing.T, data []byte, rows int) {
		if rows < 0 || rows > 10_000 {
			return
		}
		back := &trace.Rank{Names: trace.NewStrings()}
		var g []group
		var diags []diagnostic.Diagnostic
		for _, table := range tablesOf(back, &g, &diags) {
			_ = decode(data, rows, table)
		}
		_ = check(back, back.Events.Len())
	})
}

// TestDamagedBytes flips bytes all over a file: the decoder, which does not know
// the check sum, must survive each.
func TestDamagedBytes(t *testing.T) {
	for name, of := range map[string]func(*trace.Rank) *table{"events": events, "operations": operations} {
		whole := of(sample())
		var b bytes.Buffer
		if err := encode(&b, whole); err != nil {
			t.Fatal(err)
		}
		rows, failed := whole.rows, 0
		const stride = 29
		for i := 0; i < b.Len(); i += stride {
			data := bytes.Clone(b.Bytes())
			data[i] ^= byte(1 << (i % 8))
			if decode(data, rows, of(&trace.Rank{Names: trace.NewStrings()})) != nil {
				failed++
			}
			if i%3 == 0 && decode(data[:i], rows, of(&trace.Rank{Names: trace.NewStrings()})) == nil {
				t.Fatalf("%s cut at byte %d was read", name, i)
			}
		}
		if failed < b.Len()/stride/4 {
			t.Errorf("%s: %d of %d damaged files were refused", name, failed, b.Len()/stride)
		}
	}
}
