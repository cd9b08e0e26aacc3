package dataset

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/klauspost/compress/zstd"

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

// TestColumnAddedLater: a file of a version that did not have the last column is read
// without it; one that lacks another is refused.
func TestColumnAddedLater(t *testing.T) {
	for less, fails := range []bool{false, false, true} {
		r := sample()
		r.Events.Blocks[0] = 5
		old := events(r)
		old.columns = old.columns[:len(old.columns)-less]
		var b bytes.Buffer
		if err := encode(&b, old); err != nil {
			t.Fatal(err)
		}
		back := &trace.Rank{Names: trace.NewStrings()}
		err := decode(b.Bytes(), old.rows, events(back))
		if (err != nil) != fails {
			t.Errorf("%d columns less: %v", less, err)
		}
		if want := int32(5 * (1 - less)); !fails && (back.Events.Len() != old.rows || back.Events.Blocks[0] != want || back.Events.Phase[0] != trace.Forward) {
			t.Errorf("%d columns less: %d rows, %d blocks", less, back.Events.Len(), back.Events.Blocks[0])
		}
	}
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

// page is a page as a file has it: a header of type, sizes and nothing else.
func page(plain, packed int, data []byte) []byte {
	b := []byte{0x15}
	b = binary.AppendVarint(b, 0)
	b = binary.AppendVarint(append(b, 0x15), int64(plain))
	b = binary.AppendVarint(append(b, 0x15), int64(packed))
	return append(append(b, 0), data...)
}

// TestPagesThatFillTheMemory: refused before anything is decompressed.
func TestPagesThatFillTheMemory(t *testing.T) {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	small := z.EncodeAll(make([]byte, 1000), nil)
	large := z.EncodeAll(make([]byte, 50<<20), nil)
	var unsaid bytes.Buffer // a frame that does not say how large it is
	stream, err := zstd.NewWriter(&unsaid)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := stream.Write(make([]byte, 10<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Close(); err != nil {
		t.Fatal(err)
	}
	good := page(1000, len(small), small)
	if err := checkPages(append(good, good...), compress.Codecs.Zstd); err != nil {
		t.Fatalf("two good pages: %v", err)
	}
	two := append(bytes.Clone(small), large...)
	for name, chunk := range map[string][]byte{
		"more than it says":  page(1000, len(large), large),
		"a second frame":     page(1000, len(two), two),
		"of unsaid size":     page(1000, unsaid.Len(), unsaid.Bytes()),
		"beyond the limit":   page(maxPage+1, len(small), small),
		"longer than it is":  page(1000, 1<<30, small),
		"of negative length": page(1000, -5, small),
		"cut":                good[:len(good)-1],
		"header cut":         good[:3],
		"nested":             bytes.Repeat([]byte{0x1c}, 100_000),
	} {
		if err := checkPages(chunk, compress.Codecs.Zstd); err == nil {
			t.Errorf("a page %s was taken", name)
		}
	}
	if err := checkPages(good, compress.Codecs.Gzip); err == nil {
		t.Error("another compression was taken")
	}
}
