package megatron

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"mixdown/ingest/chrome"
)

func event(ph, name string, ts, pid, tid any, args string) string {
	return fmt.Sprintf(`{"name": %q, "ph": %q, "ts": %v, "pid": %v, "tid": %v, "args": {%s}}`, name, ph, ts, pid, tid, args)
}

func file(events ...string) string { return "[" + strings.Join(events, ", ") + "]" }

func (i Index) String() string {
	if !i.Known {
		return "-"
	}
	return fmt.Sprint(i.N)
}

func describe(p *Pipeline) string {
	var b strings.Builder
	for i := range p.Spans {
		s := &p.Spans[i]
		fmt.Fprintf(&b, "%s %s run %s stage %v chunk %v mb %v it %v %d+%d\n", s.Kind, s.Name, s.Run, s.Stage, s.Chunk, s.Microbatch, s.Iteration, s.Start, s.Dur)
	}
	for _, m := range p.Marks {
		fmt.Fprintf(&b, "mark %s run %s stage %v it %v %d\n", m.Name, m.Run, m.Stage, m.Iteration, m.TS)
	}
	for _, d := range p.Diagnostics.List() {
		fmt.Fprintf(&b, "! %s x%d\n", d.Code, d.Count)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	const args = `"iteration": 10, "microbatch": 3, "model_chunk": 1, "pp_rank": 2`
	for _, c := range []struct {
		name, input, want string
	}{
		{"a pair with its arguments on E", file(
			event("B", "forward", 5, 2, 1, `"iteration": 10`), event("E", "forward", 9, 2, 1, args)),
			"forward forward run 1 stage 2 chunk 1 mb 3 it 10 5000+4000\n"},
		{"two runs, sorted by start", file(
			event("B", "backward", 7, 2, 1, ""), event("E", "backward", 9, 2, 1, args),
			event("B", "forward", 6, 2, 0, ""), event("E", "forward", 8, 2, 0, args)),
			"forward forward run 0 stage 2 chunk 1 mb 3 it 10 6000+2000\nbackward backward run 1 stage 2 chunk 1 mb 3 it 10 7000+2000\n"},
		{"complete event, fractions of a microsecond", file(event("X", "forward-compute", `0.5, "dur": 1.001`, 2, 1, args)),
			"forward forward-compute run 1 stage 2 chunk 1 mb 3 it 10 500+1001\n"},
		{"communication is other", file(event("X", "forward-recv", `0, "dur": 1`, 2, 1, ""), event("X", "backward_step", `1, "dur": 1`, 2, 1, args)),
			"other forward-recv run 1 stage 2 chunk - mb - it - 0+1000\nbackward backward_step run 1 stage 2 chunk 1 mb 3 it 10 1000+1000\n"},
		{"marks", file(event("i", "iteration begin", 0, 2, 1, `"iteration": 10`), event("X", "forward", `1, "dur": 1`, 2, 1, args)),
			"forward forward run 1 stage 2 chunk 1 mb 3 it 10 1000+1000\nmark iteration begin run 1 stage 2 it 10 0\n"},
		{"stage by process id alone, no micro-batch", file(event("X", "forward", `1, "dur": 1`, 3, 1, `"microbatch": null`)),
			"forward forward run 1 stage 3 chunk - mb - it - 1000+1000\n! no-microbatch x1\n"},
		{"conflict", file(event("X", "forward", `1, "dur": 1`, 7, 1, args)),
			"forward forward run 1 stage 2 chunk 1 mb 3 it 10 1000+1000\n! stage-conflict x1\n"},
		{"unknown stage, bad indices", file(event("X", "forward", `1, "dur": 1`, `"p"`, 1, `"microbatch": -1, "model_chunk": 1.5, "iteration": "x"`), event("X", "forward", `2, "dur": 1`, 2, 1, args)),
			"forward forward run 1 stage - chunk - mb - it - 1000+1000\nforward forward run 1 stage 2 chunk 1 mb 3 it 10 2000+1000\n! bad-index x3\n! no-microbatch x1\n! stage-unknown x1\n"},
		{"open, unmatched, reversed", file(event("B", "forward", 1, 2, 1, ""), event("E", "backward", 1, 2, 1, ""), event("X", "forward", `2, "dur": 1`, 2, 1, args),
			event("B", "forward", 5, 2, 0, ""), event("E", "forward", 4, 2, 0, "")),
			"forward forward run 1 stage 2 chunk 1 mb 3 it 10 2000+1000\n! negative-duration x1\n! open-span x1\n! unmatched-begin x1\n! unmatched-end x1\n! untimed-span x1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Read(strings.NewReader(c.input), "x.json", Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := describe(p); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

func TestReadFails(t *testing.T) {
	for _, c := range []struct {
		name, input string
		want        error
	}{
		{"empty", "", chrome.ErrEmpty},
		{"not JSON", "x", chrome.ErrNotJSON},
		{"other trace", file(event("X", "aten::mm", `1, "dur": 1`, 1, 1, "")), ErrNoPipeline},
		{"no stage", file(event("X", "forward", `1, "dur": 1`, `"p"`, 1, "")), ErrNoPipeline},
	} {
		if _, err := Read(strings.NewReader(c.input), "x.json", Options{}); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
	}
}

func TestLimit(t *testing.T) {
	x := event("X", "forward", `1, "dur": 1`, 1, 1, `"microbatch": 0`)
	p, err := Read(strings.NewReader(file(x, x, x)), "x.json", Options{MaxSpans: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Spans) != 2 || !strings.Contains(describe(p), CodeLimit) {
		t.Errorf("got\n%s", describe(p))
	}
}

// FuzzRead checks what holds for every input: no panic, spans that end, known
// indices that are not negative, and order.
func FuzzRead(f *testing.F) {
	f.Add(file(event("B", "forward", 5, 2, 1, `"iteration": 10`), event("E", "forward", 9, 2, 1, `"iteration": 10, "microbatch": 3, "model_chunk": 1, "pp_rank": 2`)))
	f.Add(file(event("i", "iteration begin", 0, 2, 1, `"iteration": 10`), event("X", "backward", `1, "dur": 1e3`, 2, `"r"`, `"pp_rank": 1`)))
	f.Add(`[{"name":"forward","ph":"B","ts":9e15,"pid":0},{"ph":"E","ts":-9e15,"pid":0}`)
	f.Fuzz(func(t *testing.T, input string) {
		p, err := Read(strings.NewReader(input), "x", Options{MaxSpans: 1000})
		if err != nil {
			return
		}
		last := int64(-1 << 63)
		for i := range p.Spans {
			s := &p.Spans[i]
			if s.Start < last || s.Dur < 0 || s.End() < s.Start || s.Offset < 0 || s.Offset >= int64(len(input)) {
				t.Fatalf("span %+v after %d", s, last)
			}
			for _, x := range []Index{s.Stage, s.Chunk, s.Microbatch, s.Iteration} {
				if x.N < 0 || !x.Known && x.N != 0 {
					t.Fatalf("index %+v", x)
				}
			}
			last = s.Start
		}
	})
}
