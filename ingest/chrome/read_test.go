package chrome

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// result is what a test sees of a file.
type result struct {
	events []string
	codes  map[string]int64
	r      *Reader
	err    error // nil instead of io.EOF
}

// describe renders an event: phase, category, name, pid, tid, ts, dur, args.
func describe(ev *Event) string {
	ts, dur := "-", "-"
	if ev.HasTS {
		ts = fmt.Sprint(ev.TS)
	}
	if ev.HasDur {
		dur = fmt.Sprint(ev.Dur)
	} else if ev.Dur != 0 {
		dur = fmt.Sprintf("open(%d)", ev.Dur)
	}
	id := func(id ID) string {
		switch id.Kind() {
		case IDAbsent:
			return "-"
		case IDString:
			return fmt.Sprintf("%q", id.String())
		}
		return id.String()
	}
	ph := "-"
	if ev.Phase != 0 {
		ph = string(ev.Phase)
	}
	s := fmt.Sprintf("%s %s %q %s/%s %s+%s", ph, ev.Cat, ev.Name, id(ev.PID), id(ev.TID), ts, dur)
	if ev.ID.Kind() != IDAbsent {
		s += " id=" + id(ev.ID)
	}
	ev.Args.Each(func(key []byte, v Value) bool {
		s += fmt.Sprintf(" %s=%s", key, v.Raw())
		return true
	})
	return s
}

func readAll(input string, opts Options) result {
	return readFrom(strings.NewReader(input), opts)
}

func readFrom(in io.Reader, opts Options) result {
	res := result{r: NewReader(in, opts), codes: make(map[string]int64)}
	for {
		ev, err := res.r.Next()
		if err != nil {
			if err != io.EOF {
				res.err = err
			}
			break
		}
		res.events = append(res.events, describe(ev))
	}
	for _, d := range res.r.Diagnostics() {
		res.codes[d.Code] = d.Count
	}
	return res
}

// check reads input and compares events and counts of diagnostics, written as
// "code" or "code*count".
func check(t *testing.T, input string, events []string, codes ...string) result {
	t.Helper()
	res := readAll(input, Options{})
	if res.err != nil {
		t.Errorf("error %v", res.err)
	}
	compare(t, res, events, codes)
	return res
}

func compare(t *testing.T, res result, events, codes []string) {
	t.Helper()
	if got, want := strings.Join(res.events, "\n"), strings.Join(events, "\n"); got != want {
		t.Errorf("events:\n%s\nwant:\n%s", got, want)
	}
	want := make(map[string]int64)
	for _, c := range codes {
		n := int64(1)
		if name, count, ok := strings.Cut(c, "*"); ok {
			c = name
			fmt.Sscan(count, &n)
		}
		want[c] = n
	}
	if fmt.Sprint(res.codes) != fmt.Sprint(want) {
		t.Errorf("diagnostics: %v, want %v", res.r.Diagnostics(), want)
	}
}

// a and z surround the event under test in most cases: they show that damage
// stays where it is.
const (
	a     = `{"ph":"X","cat":"op","name":"a","pid":1,"tid":2,"ts":1,"dur":2}`
	z     = `{"ph":"X","cat":"op","name":"z","pid":1,"tid":2,"ts":5,"dur":2}`
	aWant = `X op "a" 1/2 1000+2000`
	zWant = `X op "z" 1/2 5000+2000`
)

// between puts an event between a and z.
func between(event string) string { return `{"traceEvents":[` + a + ",\n" + event + ",\n" + z + "]}" }

func aAndZ(more ...string) []string {
	return append(append([]string{aWant}, more...), zWant)
}

func TestReadsPlainTrace(t *testing.T) {
	res := check(t, `{"schemaVersion": 1, "traceEvents": [
  {"ph": "X", "cat": "kernel", "name": "k\"\u00e9\n", "pid": 0, "tid": 7, "ts": 10.5, "dur": 0.001, "args": {"stream": 7, "grid": [1, 2]}},
  {"ph": "s", "id": 5, "pid": 1, "tid": 2, "ts": 3, "cat": "ac2g", "name": "ac2g"},
  {"ph": "f", "id": "0x5", "pid": 1, "tid": 2, "ts": 3, "cat": "ac2g", "name": "ac2g", "bp": "e"},
  {"ph": "i", "s": "g", "pid": "Traces", "tid": "x", "ts": 3, "name": "i"},
  {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "python"}}
], "traceName": "t.json"}`,
		[]string{
			`X kernel "k\"é\n" 0/7 10500+1 stream=7 grid=[1, 2]`,
			`s ac2g "ac2g" 1/2 3000+- id=5`,
			`f ac2g "ac2g" 1/2 3000+- id="0x5"`,
			`i  "i" "Traces"/"x" 3000+-`,
			`M  "process_name" 3/- -+- name="python"`,
		})
	if got := strings.Join(res.r.Metadata().Keys(), " "); got != "schemaVersion traceName" {
		t.Errorf("metadata keys %q", got)
	}
	if res.r.Truncated() {
		t.Error("reported as truncated")
	}
}

func TestFlowAndScopeFields(t *testing.T) {
	r := NewReader(strings.NewReader(`[{"ph":"f","bp":"e","s":"p","ts":1,"pid":1,"id2":{"local":"0x1"},"scope":"sc","bind_id":"0x9"}]`), Options{})
	ev, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if ev.BindPoint != 'e' || ev.Scope != 'p' || ev.ID != StringID("0x1") || string(ev.IDScope) != "sc" || ev.BindID != StringID("0x9") {
		t.Errorf("got %+v", ev)
	}
}

func TestOffsetsDelimitEvents(t *testing.T) {
	input := between(`{"ph":"X","name":"b"c","pid":1,"tid":2,"ts":3,"dur":1}`)
	r := NewReader(strings.NewReader(input), Options{BufferSize: 64})
	n := 0
	for {
		ev, err := r.Next()
		if err != nil {
			break
		}
		n++
		if s := input[ev.Offset:ev.End]; s[0] != '{' || s[len(s)-1] != '}' || !strings.Contains(s, `"name":"`+string(ev.Name)) {
			t.Errorf("event %q is not at %q", ev.Name, s)
		}
	}
	if n != 3 {
		t.Errorf("%d events", n)
	}
}

func TestLimits(t *testing.T) {
	t.Run("depth", func(t *testing.T) {
		deep := `{"ph":"X","args":{"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}`
		check(t, between(deep), aAndZ(), CodeTooDeep, CodeBrokenEvent)
		res := readAll(between(deep), Options{MaxDepth: 300})
		if len(res.events) != 3 {
			t.Errorf("with MaxDepth 300: %d events", len(res.events))
		}
	})
	t.Run("metadata depth", func(t *testing.T) {
		check(t, `{"m":`+strings.Repeat("[", 1000)+strings.Repeat("]", 1000)+`,"traceEvents":[`+a+`]}`,
			[]string{aWant}, CodeTooDeep, CodeBrokenMetadata)
	})
	t.Run("event size", func(t *testing.T) {
		huge := `{"ph":"X","name":"h","args":{"x":[` + strings.Repeat("1,", 20000) + `1]}}`
		res := readAll(between(huge), Options{MaxEventBytes: 4096, BufferSize: 1024})
		compare(t, res, aAndZ(), []string{CodeEventTooLarge})
	})
	t.Run("string size", func(t *testing.T) {
		huge := `{"ph":"X","name":"` + strings.Repeat("n", 20000) + `","args":{}}`
		res := readAll(between(huge), Options{MaxEventBytes: 4096, BufferSize: 1024})
		if len(res.events) != 2 || res.codes[CodeEventTooLarge] != 1 {
			t.Errorf("%d events, %v", len(res.events), res.codes)
		}
	})
	t.Run("events", func(t *testing.T) {
		res := readAll(between(a), Options{MaxEvents: 2})
		compare(t, res, []string{aWant, aWant}, []string{CodeEventLimit})
	})
	t.Run("metadata size", func(t *testing.T) {
		big := `"` + strings.Repeat("m", 100000) + `"`
		res := readAll(`{"big":[`+big+`],"traceEvents":[`+a+`],"rank":3}`, Options{MaxMetadataBytes: 10000})
		compare(t, res, []string{aWant}, []string{CodeMetadataTooLarge})
		if _, ok := res.r.Metadata().Get("big"); ok {
			t.Error("big metadata was kept")
		}
		if v, ok := res.r.Metadata().Get("rank"); !ok || string(v.Raw()) != "3" {
			t.Error("small metadata was lost")
		}
	})
}

// TestBoundedMemory reads far more than it may keep.
func TestBoundedMemory(t *testing.T) {
	ev := []byte(a + ",\n")
	n := 0
	endless := readerFunc(func(p []byte) (int, error) {
		if n > 20<<20 {
			return 0, io.EOF
		}
		k := copy(p, ev[n%len(ev):])
		n += k
		return k, nil
	})
	r := NewReader(io.MultiReader(strings.NewReader("["), endless), Options{BufferSize: 4096})
	for {
		if _, err := r.Next(); err != nil {
			break
		}
	}
	if len(r.buf) > 8192 {
		t.Errorf("the window grew to %d bytes", len(r.buf))
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestNotATrace(t *testing.T) {
	tests := []struct {
		name, input string
		want        error
		says        string
	}{
		{"empty", "", ErrEmpty, "0 bytes"},
		{"white space", " \n\t ", ErrEmpty, "4 bytes"},
		{"BOM only", "\ufeff", ErrEmpty, ""},
		{"text", "hello world", ErrNotJSON, "byte 0"},
		{"html", "<html><body>404</body></html>", ErrNotJSON, "HTML"},
		{"gzip", "\x1f\x8b\x08\x00", ErrNotJSON, "gzip"},
		{"pickle", "\x80\x04\x95", ErrNotJSON, "pickle"},
		{"sqlite", "SQLite format 3\x00", ErrNotJSON, "Nsight"},
		{"lfs", "version https://git-lfs.github.com/spec/v1\n", ErrNotJSON, "LFS"},
		{"cut in the header", `{"schemaVersion": 1, "deviceProperties": [{"id": 0, "na`, ErrNotJSON, "in the middle"},
		{"cut in a key", `{"schemaVersion": 1, "devi`, ErrNotJSON, "in the middle"},
		{"one word", "null", ErrNotJSON, ""},
		{"other object", `{"version": 1, "entries": []}`, ErrNotTrace, `"version", "entries"`},
		{"empty object", `{}`, ErrNotTrace, "no keys"},
		{"numbers", `[1, 2, 3]`, ErrNotTrace, "none of 3"},
		{"other objects", `[{"a": 1}, {"b": 2}]`, ErrNotTrace, "none of 2"},
		{"junk in an array", `[ %%% ]`, ErrNotJSON, ""},
		{"traceEvents is null", `{"traceEvents": null}`, ErrNotTrace, "traceEvents"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := readAll(tt.input, Options{})
			if !errors.Is(res.err, tt.want) {
				t.Fatalf("error %v, want %v", res.err, tt.want)
			}
			if !strings.Contains(res.err.Error(), tt.says) {
				t.Errorf("message %q does not say %q", res.err, tt.says)
			}
			if _, err := res.r.Next(); !errors.Is(err, tt.want) {
				t.Errorf("second call: %v", err)
			}
		})
	}
}

func TestEmptyArrayIsATrace(t *testing.T) {
	check(t, `{"traceEvents":[]}`, nil, CodeNoEvents)
	check(t, `[]`, nil, CodeNoEvents)
}

func TestReadErrors(t *testing.T) {
	broken := errors.New("gzip: invalid checksum")
	t.Run("after events", func(t *testing.T) {
		res := readFrom(io.MultiReader(strings.NewReader(`{"traceEvents":[`+a+","+z), readerFunc(func([]byte) (int, error) { return 0, broken })), Options{})
		compare(t, res, aAndZ(), []string{CodeTruncated})
		if !res.r.Truncated() || res.err != nil {
			t.Errorf("truncated %v, error %v", res.r.Truncated(), res.err)
		}
		if d := res.r.Diagnostics()[0]; d.Example != broken.Error() {
			t.Errorf("example %q", d.Example)
		}
	})
	t.Run("behind the last byte", func(t *testing.T) {
		res := readFrom(io.MultiReader(strings.NewReader(between(a)), readerFunc(func([]byte) (int, error) { return 0, broken })), Options{})
		compare(t, res, aAndZ(aWant), []string{CodeTruncated})
	})
	t.Run("before events", func(t *testing.T) {
		res := readFrom(readerFunc(func([]byte) (int, error) { return 0, broken }), Options{})
		if !errors.Is(res.err, broken) {
			t.Errorf("error %v", res.err)
		}
	})
	t.Run("no progress", func(t *testing.T) {
		res := readFrom(readerFunc(func([]byte) (int, error) { return 0, nil }), Options{})
		if !errors.Is(res.err, io.ErrNoProgress) {
			t.Errorf("error %v", res.err)
		}
	})
}

func TestExamplesArePrintable(t *testing.T) {
	res := readAll(between("{\"ph\":\"X\",\"name\":\"\x1b[31m\xff<é>\\c\",\"pid\":1,\"ts\":1,\"dur\":1}"), Options{})
	for _, d := range res.r.Diagnostics() {
		for _, c := range []byte(d.Example) {
			if c < ' ' || c > '~' {
				t.Errorf("%s: example %q", d.Code, d.Example)
			}
		}
		if len(d.Example) > 8*exampleBytes {
			t.Errorf("%s: example has %d bytes", d.Code, len(d.Example))
		}
	}
	if len(res.codes) == 0 {
		t.Error("no diagnostics")
	}
}
