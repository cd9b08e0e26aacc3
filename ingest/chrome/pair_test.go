package chrome

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
)

func pairs(t *testing.T, input string) (events []string, codes map[string]int64) {
	t.Helper()
	p := NewPairer(NewReader(strings.NewReader(input), Options{BufferSize: 64}))
	codes = make(map[string]int64)
	for {
		ev, err := p.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, describe(ev))
	}
	for _, d := range p.Diagnostics() {
		codes[d.Code] = d.Count
	}
	return events, codes
}

func TestPairer(t *testing.T) {
	be := func(ph, name string, tid, ts int, args string) string {
		return fmt.Sprintf(`{"ph":%q,"name":%q,"pid":1,"tid":%d,"ts":%d,"args":{%s}}`, ph, name, tid, ts, args)
	}
	tests := []struct {
		name   string
		input  []string
		events []string
		codes  map[string]int64
	}{
		{"one pair, args merged, those of E win",
			[]string{be("B", "f", 1, 10, `"i":1,"x":"b"`), be("E", "f", 1, 15, `"m":2,"x":"e"`)},
			[]string{`X  "f" 1/1 10000+5000 i=1 m=2 x="e"`}, nil},
		{"nested, E without name",
			[]string{be("B", "f", 1, 10, ""), be("B", "g", 1, 11, ""), be("E", "", 1, 12, ""), be("E", "", 1, 15, "")},
			[]string{`X  "g" 1/1 11000+1000`, `X  "f" 1/1 10000+5000`}, nil},
		{"threads do not mix",
			[]string{be("B", "f", 1, 10, ""), be("B", "f", 2, 11, ""), be("E", "f", 1, 12, ""), be("E", "f", 2, 15, "")},
			[]string{`X  "f" 1/1 10000+2000`, `X  "f" 1/2 11000+4000`}, nil},
		{"crossed",
			[]string{be("B", "f", 1, 10, ""), be("B", "g", 1, 11, ""), be("E", "f", 1, 12, ""), be("E", "g", 1, 15, "")},
			[]string{`X  "f" 1/1 10000+2000`, `X  "g" 1/1 11000+4000`}, map[string]int64{CodeCrossedPair: 1}},
		{"unmatched are delivered as they are",
			[]string{be("E", "f", 1, 9, ""), be("B", "f", 1, 10, ""), be("B", "g", 2, 11, ""), a},
			[]string{`E  "f" 1/1 9000+-`, aWant, `B  "f" 1/1 10000+-`, `B  "g" 1/2 11000+-`},
			map[string]int64{CodeUnmatchedBegin: 2, CodeUnmatchedEnd: 1}},
		{"E before B in time",
			[]string{be("B", "f", 1, 10, ""), be("E", "f", 1, 8, "")},
			[]string{`X  "f" 1/1 10000+open(-2000)`}, map[string]int64{CodeNegativeDuration: 1}},
		{"without time",
			[]string{`{"ph":"B","name":"f","pid":1}`, `{"ph":"E","name":"f","pid":1,"ts":3}`},
			[]string{`X  "f" 1/- -+-`}, nil},
		{"difference overflows",
			[]string{`{"ph":"B","name":"f","pid":1,"ts":-9e15}`, `{"ph":"E","name":"f","pid":1,"ts":9e15}`},
			[]string{`X  "f" 1/- -9000000000000000000+-`}, map[string]int64{CodeTimeOverflow: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			events, codes := pairs(t, "["+strings.Join(tt.input, ",")+"]")
			if got, want := strings.Join(events, "\n"), strings.Join(tt.events, "\n"); got != want {
				t.Errorf("events:\n%s\nwant:\n%s", got, want)
			}
			if fmt.Sprint(codes) != fmt.Sprint(tt.codes) {
				t.Errorf("codes %v, want %v", codes, tt.codes)
			}
		})
	}
}

// TestReport152: traces of B and E events only must not come out empty.
func TestReport152(t *testing.T) {
	events, codes := pairs(t, `[{"ph":"B","name":"f","pid":1,"tid":1,"ts":1},{"ph":"E","pid":1,"tid":1,"ts":2}]`)
	if len(events) != 1 || events[0] != `X  "f" 1/1 1000+1000` || len(codes) > 0 {
		t.Errorf("got %v, %v", events, codes)
	}
}

// TestPairerOnCorpus pairs the real traces: none of them has an event without
// partner, and nothing but pairs may change.
func TestPairerOnCorpus(t *testing.T) {
	corpus(t, func(name string, data []byte) {
		if !bytes.Contains(data, []byte(`"ph": "B"`)) {
			return
		}
		count := make(map[byte]int)
		r := NewReader(bytes.NewReader(data), Options{})
		for {
			ev, err := r.Next()
			if err != nil {
				break
			}
			count[ev.Phase]++
		}
		p := NewPairer(NewReader(bytes.NewReader(data), Options{}))
		paired := make(map[byte]int)
		for {
			ev, err := p.Next()
			if err != nil {
				break
			}
			paired[ev.Phase]++
			if ev.Phase == 'X' && !ev.HasDur {
				t.Errorf("%s: pair at %d without duration", name, ev.Offset)
			}
		}
		if d := p.Diagnostics(); len(d) > 0 {
			t.Errorf("%s: %+v", name, d)
		}
		if count['B'] != count['E'] || paired['X'] != count['X']+count['B'] || paired['i'] != count['i'] || paired['B']+paired['E'] > 0 {
			t.Errorf("%s: %v became %v", name, count, paired)
		}
	})
}
