package chrome

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// seeds are the inputs that fuzzing starts from, by the name of the fault.
func seeds() map[string]string {
	return map[string]string{
		"plain":                between(a),
		"bare-array":           "[" + a + "," + z + "]",
		"json-lines":           a + "\n" + z,
		"metadata-first":       `{"schemaVersion":1,"deviceProperties":[{"id":0}],"traceEvents":[` + a + `]}`,
		"report-1-control":     between("{\"ph\":\"X\",\"name\":\"x\x01y\",\"ts\":1}"),
		"report-4-escape":      between(`{"ph":"X","name":"torch\cuda\users","ts":1}`),
		"report-5-lost-quote":  between(`{"ph":"X","ts":102.95, tid": 0, "pid": "CUDA functions"}`),
		"report-7-junk":        `{"INFO": ["event_id": 3, "stream": 7"], "traceEvents": [` + a + `]}`,
		"report-8-utf8":        between("{\"ph\":\"X\",\"name\":\"\xf0\xff\",\"ts\":1}"),
		"report-14-nan":        between(`{"ph":"C","ts":"1587074269993629","args":{"sys": nan, "b": -Infinity}}`),
		"report-17-cut":        `{"traceEvents":[` + a + `,{"ph":"X","na`,
		"report-18-no-end":     "[" + a + ",",
		"report-19-null":       between(`{"ph":"M","ts":null}`),
		"report-28-negative":   between(`{"ph":"X","ts":1,"dur":-1}`),
		"report-32-big":        between(`{"ph":"X","ts":1732107142997066.682,"dur":1e400}`),
		"report-124-et":        `{"schema":"1.0.1","nodes":[{"id":1}]}`,
		"report-158-duplicate": `{"distributedInfo":{"rank":1},"traceEvents":[` + a + `],"distributedInfo":{"rank":1,"x":2}}`,
		"report-163-arrays":    `{"traceEvents":[` + a + `],"traceEvents":[` + z + `]}`,
		"pytorch-146900":       between(ev(`{"device": "cpu", "dtype": "float32"}(12): run`)),
		"missing-values":       between(`{"ph":"X","ts":,"args":{, "a":,"b":}}`),
		"missing-commas":       between(`{"ph":"X" "name":"b" "ts":1}` + "\n" + a),
		"unbalanced":           between(`{"ph":"X","args":{"a":[1,2}}`),
		"deep":                 between(`{"ph":"X","args":` + strings.Repeat(`[{"a":`, 80) + "1"),
		"surrogates":           between(`{"ph":"X","ts":1,"name":"\ud83d\ude00\ud83d\u0041"}`),
		"pairs":                `[{"ph":"B","ts":1,"name":"f"},{"ph":"E","ts":2},{"ph":"E","ts":3},{"ph":"B","ts":4}]`,
		"no-event-in-repair":   `{"traceEvents":[{"":"""0":0}`,
		"trailing":             between(a) + "\x00\x00]",
	}
}

// FuzzReader checks what holds for every input: no panic, an end, offsets that
// grow and delimit objects, the same result whatever the size of the pieces,
// and agreement with encoding/json on valid input.
func FuzzReader(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, input string) {
		if len(input) > 1<<16 {
			return
		}
		whole := readAll(input, Options{})
		for _, opts := range []Options{{BufferSize: minBufferSize}, {BufferSize: 100}} {
			if d := difference(whole, readFrom(iotest.HalfReader(strings.NewReader(input)), opts)); d != "" {
				t.Fatalf("in pieces: %s", d)
			}
		}
		for _, size := range []int{1, 50, 400} {
			opts := Options{Workers: 2, PartBytes: size, BufferSize: minBufferSize}
			if d, _ := compareScan(input, opts, iotest.HalfReader); d != "" {
				t.Fatalf("parts of %d: %s", size, d)
			}
		}
		if strings.HasPrefix(input, "{") {
			if d := sameEvent([]byte(input)); d != "" {
				t.Fatal(d)
			}
		}
		checkOffsets(t, input)
		checkPairer(t, input)
		checkOracle(t, input)
	})
}

func checkOffsets(t *testing.T, input string) {
	r := NewReader(strings.NewReader(input), Options{})
	last := int64(0)
	for n := 0; ; n++ {
		ev, err := r.Next()
		if err != nil {
			break
		}
		if ev.Offset < last || ev.End <= ev.Offset || ev.End > int64(len(input)) ||
			input[ev.Offset] != '{' || input[ev.End-1] != '}' {
			t.Fatalf("event %d is at [%d, %d), the one before ended at %d", n, ev.Offset, ev.End, last)
		}
		last = ev.End
		if n > len(input) {
			t.Fatal("more events than bytes")
		}
	}
	for _, d := range r.Diagnostics() {
		if d.Offset < 0 || d.Offset > int64(len(input)) || d.Count < 1 {
			t.Fatalf("diagnostic %+v", d)
		}
	}
}

func checkPairer(t *testing.T, input string) {
	r := NewReader(strings.NewReader(input), Options{})
	p := NewPairer(r)
	for n := 0; ; n++ {
		ev, err := p.Next()
		if err != nil {
			if err != io.EOF && n > 0 {
				t.Fatalf("error %v after %d events", err, n)
			}
			return
		}
		_ = describe(ev)
	}
}

// checkOracle compares with encoding/json where both must agree: valid JSON
// whose events have no key twice.
func checkOracle(t *testing.T, input string) {
	if !json.Valid([]byte(input)) {
		return
	}
	events, ok := oracleEvents([]byte(input))
	if !ok {
		return
	}
	r := NewReader(strings.NewReader(input), Options{MaxDepth: 10000})
	n := 0
	var got []string
	for {
		ev, err := r.Next()
		if err != nil {
			break
		}
		got = append(got, describe(ev))
		n++
	}
	for _, d := range r.Diagnostics() {
		switch d.Code {
		case CodeDuplicateArray, CodeDuplicateMetadata, CodeDuplicateKey, CodeConcatenated, CodeNotAnEvent,
			CodeMetadataTooLarge, CodeConflictMetadata:
			return // the two differ on purpose
		}
		switch d.Code {
		case CodeTruncated, CodeBrokenEvent, CodeMissingArrayEnd, CodeUnexpectedBytes, CodeTrailingData, CodeBrokenMetadata,
			CodeIllegalEscape, CodeControlByte, CodeMissingComma, CodeMissingValue, CodeTrailingComma, CodeNotANumber, CodeBadLiteral:
			t.Fatalf("valid JSON, but %+v", d)
		}
	}
	if events != nil && n != len(events) {
		t.Fatalf("%d events, want %d: %s", n, len(events), fmt.Sprint(got))
	}
}
