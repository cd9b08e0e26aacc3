package chrome

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

// corpus calls f with every file of the corpus of real traces, decompressed.
func corpus(tb testing.TB, f func(name string, data []byte)) {
	tb.Helper()
	root := os.Getenv("MIXDOWN_CORPUS")
	if root == "" {
		tb.Skip("MIXDOWN_CORPUS is not set: not run on real traces")
	}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(d.Name(), ".json") {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		if bytes.HasPrefix(data, []byte("\x1f\x8b")) {
			z, err := gzip.NewReader(bytes.NewReader(data))
			if err != nil {
				return err
			}
			if data, err = io.ReadAll(z); err != nil {
				return err
			}
		}
		name, _ := filepath.Rel(root, p)
		f(name, data)
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// oracleEvents reads data with encoding/json. It returns nil if data is valid
// JSON without events.
func oracleEvents(data []byte) (events []map[string]any, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var top any
	if err := dec.Decode(&top); err != nil {
		return nil, false
	}
	list, isList := top.([]any)
	if m, isMap := top.(map[string]any); isMap {
		list, isList = m["traceEvents"].([]any)
	}
	if !isList {
		return nil, true
	}
	for _, e := range list {
		m, _ := e.(map[string]any)
		events = append(events, m)
	}
	return events, true
}

// nanos is the time of a JSON number in ns, by big rational numbers.
func nanos(n json.Number) *big.Int {
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return nil
	}
	r.Mul(r, big.NewRat(1000, 1))
	half := big.NewRat(1, 2)
	if r.Sign() < 0 {
		half.Neg(half)
	}
	r.Add(r, half)
	return new(big.Int).Quo(r.Num(), r.Denom())
}

// compareID compares an ID with what encoding/json found.
func compareID(id ID, want any) error {
	switch w := want.(type) {
	case nil:
		if id.Kind() == IDAbsent {
			return nil
		}
	case string:
		if s, ok := id.Str(); ok && s == w {
			return nil
		}
	case json.Number:
		r, ok := new(big.Rat).SetString(w.String())
		if n, isInt := id.Int(); isInt && ok && r.IsInt() && r.Num().IsInt64() && r.Num().Int64() == n {
			return nil
		}
		if s, isStr := id.Str(); isStr && s == w.String() {
			return nil
		}
	}
	return fmt.Errorf("%v (kind %d), want %v", id, id.Kind(), want)
}

// compareValue compares a Value with what encoding/json found.
func compareValue(v Value, want any) error {
	bad := func() error { return fmt.Errorf("%s (%v), want %v", v.Raw(), v.Kind(), want) }
	switch w := want.(type) {
	case nil:
		if v.Kind() != Null {
			return bad()
		}
	case bool:
		if b, ok := v.Bool(); !ok || b != w {
			return bad()
		}
	case string:
		if s, ok := v.Str(); !ok || s != w {
			return bad()
		}
	case json.Number:
		if v.Kind() != Number || string(v.Raw()) != w.String() {
			return bad()
		}
		r, ok := new(big.Rat).SetString(w.String())
		if !ok {
			return bad()
		}
		if n, isInt := v.Int(); isInt != (r.IsInt() && r.Num().IsInt64()) || isInt && n != r.Num().Int64() {
			return bad()
		}
		if n, isUint := v.Uint(); isUint != (r.IsInt() && r.Num().IsUint64()) || isUint && n != r.Num().Uint64() {
			return bad()
		}
		if want, err := w.Float64(); err == nil {
			if f, ok := v.Float(); !ok || f != want {
				return bad()
			}
		}
	case []any:
		if v.Kind() != Array || v.Len() != len(w) {
			return bad()
		}
		i := 0
		var err error
		v.Each(func(e Value) bool {
			err = compareValue(e, w[i])
			i++
			return err == nil
		})
		return err
	case map[string]any:
		n := 0
		var err error
		v.Fields(func(key []byte, e Value) bool {
			if _, ok := w[string(key)]; !ok {
				err = fmt.Errorf("unknown key %q", key)
			} else {
				err = compareValue(e, w[string(key)])
			}
			n++
			return err == nil
		})
		if err == nil && (v.Kind() != Object || n != len(w)) {
			err = bad()
		}
		return err
	}
	return nil
}

// compareEvent compares an Event with what encoding/json found.
func compareEvent(ev *Event, want map[string]any) error {
	str := func(key string) string { s, _ := want[key].(string); return s }
	ph := ""
	if ev.Phase != 0 {
		ph = string(ev.Phase)
	}
	if ph != str("ph") || string(ev.Name) != str("name") || string(ev.Cat) != str("cat") {
		return fmt.Errorf("ph %q, name %q, cat %q", ph, ev.Name, ev.Cat)
	}
	for _, id := range []struct {
		key string
		got ID
	}{{"pid", ev.PID}, {"tid", ev.TID}, {"id", ev.ID}} {
		if err := compareID(id.got, want[id.key]); err != nil {
			return fmt.Errorf("%s: %w", id.key, err)
		}
	}
	for _, tm := range []struct {
		key string
		got int64
		has bool
	}{{"ts", ev.TS, ev.HasTS}, {"dur", ev.Dur, ev.HasDur || ev.Dur < 0}} {
		n, isNumber := want[tm.key].(json.Number)
		var exact *big.Int
		if isNumber {
			exact = nanos(n)
		}
		fits := exact != nil && exact.IsInt64()
		if tm.has != fits || fits && exact.Int64() != tm.got {
			return fmt.Errorf("%s %d (%v), want %v", tm.key, tm.got, tm.has, want[tm.key])
		}
	}
	args, has := want["args"].(map[string]any)
	if has != (ev.Args.Raw() != nil) {
		return fmt.Errorf("args %s, want %v", ev.Args.Raw(), args)
	}
	if has {
		if err := compareValue(ev.Args.v, args); err != nil {
			return fmt.Errorf("args: %w", err)
		}
	}
	return nil
}

// TestOracle compares every event of every real trace with encoding/json.
func TestOracle(t *testing.T) {
	corpus(t, func(name string, data []byte) {
		events, ok := oracleEvents(data)
		if !ok {
			t.Logf("%s: not valid JSON, left out", name)
			return
		}
		r := NewReader(bytes.NewReader(data), Options{})
		n := 0
		for ; ; n++ {
			ev, err := r.Next()
			if err != nil {
				if events == nil && err == io.EOF || events != nil && err != io.EOF {
					t.Errorf("%s: error %v after %d events", name, err, n)
				}
				break
			}
			if n >= len(events) {
				t.Errorf("%s: more than %d events", name, n)
				break
			}
			if err := compareEvent(ev, events[n]); err != nil {
				t.Fatalf("%s: event %d: %v", name, n, err)
			}
			if data[ev.Offset] != '{' || data[ev.End-1] != '}' {
				t.Fatalf("%s: event %d is not at %d", name, n, ev.Offset)
			}
		}
		if n != len(events) {
			t.Errorf("%s: %d events, want %d", name, n, len(events))
		}
		for _, d := range r.Diagnostics() {
			if d.Code != CodeZeroTime {
				t.Errorf("%s: %+v", name, d)
			}
		}
		compareMetadata(t, name, data, r)
	})
}

func compareMetadata(t *testing.T, name string, data []byte, r *Reader) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var top map[string]any
	if dec.Decode(&top) != nil || top["traceEvents"] == nil {
		return
	}
	delete(top, "traceEvents")
	if got := len(r.Metadata().Keys()); got != len(top) {
		t.Errorf("%s: %d metadata keys, want %d", name, got, len(top))
	}
	for key, want := range top {
		v, ok := r.Metadata().Get(key)
		if !ok {
			t.Errorf("%s: no metadata %q", name, key)
		} else if err := compareValue(v, want); err != nil {
			t.Errorf("%s: metadata %q: %v", name, key, err)
		}
	}
}

// TestCorpusInSmallPieces reads real traces byte by byte through a small
// window.
func TestCorpusInSmallPieces(t *testing.T) {
	corpus(t, func(name string, data []byte) {
		if len(data) > 1<<20 {
			data = data[:1<<20]
		}
		want := readAll(string(data), Options{})
		got := readFrom(iotest.OneByteReader(bytes.NewReader(data)), Options{BufferSize: minBufferSize})
		if d := difference(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	})
}

// difference tells how two results of the same input differ.
func difference(a, b result) string {
	for i := range max(len(a.events), len(b.events)) {
		x, y := "none", "none"
		if i < len(a.events) {
			x = a.events[i]
		}
		if i < len(b.events) {
			y = b.events[i]
		}
		if x != y {
			return fmt.Sprintf("event %d: %s, other %s", i, x, y)
		}
	}
	if fmt.Sprint(a.codes) != fmt.Sprint(b.codes) {
		return fmt.Sprintf("diagnostics %v, other %v", a.codes, b.codes)
	}
	if fmt.Sprint(a.err) != fmt.Sprint(b.err) {
		return fmt.Sprintf("error %v, other %v", a.err, b.err)
	}
	return ""
}

// TestReportsInSmallPieces runs damaged input through a reader of single
// bytes, too.
func TestOneByteReader(t *testing.T) {
	for name, seed := range seeds() {
		want := readAll(seed, Options{})
		got := readFrom(iotest.OneByteReader(strings.NewReader(seed)), Options{BufferSize: minBufferSize})
		if d := difference(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		got = readFrom(iotest.DataErrReader(strings.NewReader(seed)), Options{})
		if d := difference(want, got); d != "" {
			t.Errorf("%s: data with EOF: %s", name, d)
		}
	}
}
