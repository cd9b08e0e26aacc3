package chrome

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
)

// listing is everything that reading a file gives, as text.
type listing struct {
	events []string
	rest   string
}

func listed(ev *Event) string { return fmt.Sprint(ev.Offset, "-", ev.End, " ", describe(ev)) }

func listNext(input string, opts Options) (l listing) {
	r := NewReader(strings.NewReader(input), opts)
	for {
		ev, err := r.Next()
		if err != nil {
			l.finish(r, err)
			return l
		}
		l.events = append(l.events, listed(ev))
	}
}

func (l *listing) finish(r *Reader, err error) {
	if err != nil && err != io.EOF {
		l.rest = err.Error()
		return
	}
	l.rest = fmt.Sprintf("truncated %v", r.Truncated())
	for _, d := range r.Diagnostics() {
		l.rest += fmt.Sprintf("\n%+v", d)
	}
	for _, k := range r.Metadata().Keys() {
		for _, v := range r.Metadata().All(k) {
			l.rest += fmt.Sprintf("\n%s: %s", k, v.Raw())
		}
	}
}

type listSink struct{ events []string }

func (s *listSink) Event(ev *Event) { s.events = append(s.events, listed(ev)) }

// listScan also tells how many sinks came from workers.
func listScan(in io.Reader, opts Options) (l listing, ahead int) {
	made := map[Sink]int{}
	lock := make(chan struct{}, 1)
	var dropped atomic.Int64
	r, err := Scan(in, opts, Sinks{
		New: func(worker int) Sink {
			s := &listSink{}
			lock <- struct{}{}
			made[s] = worker
			<-lock
			return s
		},
		Take: func(s Sink) {
			lock <- struct{}{}
			if made[s] < opts.Workers {
				ahead++
			}
			<-lock
			l.events = append(l.events, s.(*listSink).events...)
		},
		Drop: func(Sink) { dropped.Add(1) },
	})
	l.finish(r, err)
	return l, ahead
}

// compareScan reads input with Next and with Scan and says how they differ.
func compareScan(input string, opts Options, pieces func(io.Reader) io.Reader) (difference string, ahead int) {
	want := listNext(input, opts)
	got, ahead := listScan(pieces(strings.NewReader(input)), opts)
	for i := range max(len(want.events), len(got.events)) {
		x, y := "none", "none"
		if i < len(want.events) {
			x = want.events[i]
		}
		if i < len(got.events) {
			y = got.events[i]
		}
		if x != y {
			return fmt.Sprintf("event %d: %s, in parts %s", i, x, y), ahead
		}
	}
	if want.rest != got.rest {
		return fmt.Sprintf("%s\nin parts: %s", want.rest, got.rest), ahead
	}
	return "", ahead
}

func whole(r io.Reader) io.Reader { return r }

// TestScanReadsAhead: an undamaged trace is read by the workers nearly whole.
func TestScanReadsAhead(t *testing.T) {
	input := string(kineto(1 << 20))
	for _, workers := range []int{2, 5} {
		opts := Options{Workers: workers, PartBytes: 16 << 10, BufferSize: 1 << 10}
		d, ahead := compareScan(input, opts, whole)
		if d != "" {
			t.Errorf("%d workers: %s", workers, d)
		}
		if parts := len(input) / opts.PartBytes; ahead < parts-2 {
			t.Errorf("%d workers read %d of about %d parts", workers, ahead, parts)
		}
	}
}

func TestScanOfReports(t *testing.T) {
	long := strings.Repeat(a+",\n", 40)
	for name, seed := range seeds() {
		for _, input := range []string{
			seed,
			strings.Replace(seed, "[", "["+long, 1),
			strings.Replace(seed, `"traceEvents":[`, `"traceEvents":[`+long, 1),
		} {
			for _, size := range []int{1, 70, 300} {
				opts := Options{Workers: 2, PartBytes: size, BufferSize: minBufferSize}
				if d, _ := compareScan(input, opts, iotest.HalfReader); d != "" {
					t.Errorf("%s, parts of %d: %s", name, size, d)
				}
			}
		}
	}
}

// damaged changes text in random places the way that real faults do.
func damaged(rng *rand.Rand, text []byte) []byte {
	pieces := []string{
		`"`, `\`, "\x01", "\xff", "{", "}", "[", "]", ",", ":", "}, {\"ph\": \"X\", ", "]}", `"},` + "\n  {\n    \"ph\": \"X\"",
		"],\n\"traceEvents\": [", "-1", "nan", "1e400", "\n", `{"ph":"X","name":"`, `"ts": -3, `, "},\n,{",
	}
	text = bytes.Clone(text)
	for range rng.IntN(6) {
		i := rng.IntN(len(text))
		switch rng.IntN(4) {
		case 0:
			text = append(text[:i], text[min(len(text), i+1+rng.IntN(40)):]...)
		case 1:
			text[i] = byte(rng.IntN(256))
		default:
			p := pieces[rng.IntN(len(pieces))]
			text = append(text[:i], append([]byte(p), text[i:]...)...)
		}
		if len(text) < 2 {
			break
		}
	}
	if rng.IntN(10) == 0 {
		text = text[:rng.IntN(len(text))]
	}
	return text
}

// TestScanOfDamage holds both ways of reading against each other on traces with
// random faults, cut in random places.
func TestScanOfDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	plain := kineto(12 << 10)
	long := bytes.ReplaceAll(plain, []byte("aten::as_strided"), []byte(strings.Repeat("long", 300)))
	rounds := 1500
	if testing.Short() {
		rounds = 200
	}
	for n := range rounds {
		input := string(damaged(rng, plain))
		if n%3 == 0 {
			input = string(damaged(rng, long))
		}
		opts := Options{
			Workers: 2 + rng.IntN(3), PartBytes: 1 + rng.IntN(3000), BufferSize: minBufferSize + rng.IntN(500),
			MaxDepth: 4 + rng.IntN(10), MaxEventBytes: 600 + rng.IntN(4000),
		}
		if d, _ := compareScan(input, opts, whole); d != "" {
			t.Fatalf("round %d, %+v: %s", n, opts, d)
		}
	}
}

func TestScanPassesErrorsOn(t *testing.T) {
	input := string(kineto(64 << 10))
	opts := Options{Workers: 2, PartBytes: 4 << 10, BufferSize: 1 << 10}
	fails := func(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(io.ErrUnexpectedEOF)) }
	l, _ := listScan(fails(strings.NewReader(input[:40<<10])), opts)
	if !strings.Contains(l.rest, "truncated true") || len(l.events) == 0 {
		t.Errorf("a stream that fails half-way: %d events, %s", len(l.events), l.rest)
	}
	limited := opts
	limited.MaxEvents = 10
	if d, ahead := compareScan(input, limited, whole); d != "" || ahead > 0 {
		t.Errorf("with a limit of events: %s, %d sinks from workers", d, ahead)
	}
}

// sameEvent reads the event in b in the usual and in the general way and says
// how they differ. The usual way may decline.
func sameEvent(b []byte) string {
	usual, general := parser{maxDepth: 128}, parser{maxDepth: 128}
	n := usual.usual(b)
	if n == 0 {
		return ""
	}
	if m := general.general(b); m != n {
		return fmt.Sprintf("%d bytes, in general %d", n, m)
	}
	if x, y := describe(&usual.ev), describe(&general.ev); x != y {
		return fmt.Sprintf("%s, in general %s", x, y)
	}
	if usual.flt != general.flt {
		return "other faults"
	}
	x, y := usual.ev, general.ev
	if !bytes.Equal(x.Args.Raw(), y.Args.Raw()) || x.Scope != y.Scope || x.BindPoint != y.BindPoint || x.ID != y.ID {
		return "other args or ids"
	}
	return ""
}

func TestUsualFormIsTheGeneralOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	events := bytes.SplitAfter(kineto(8<<10), []byte("\n  },\n"))
	usual := 0
	for range 20000 {
		event := events[rng.IntN(len(events)-1)]
		event = append(bytes.TrimSpace(damaged(rng, event)), "                                  "...)
		if len(event) == 0 || event[0] != '{' {
			continue
		}
		p := parser{maxDepth: 128}
		if p.usual(event) > 0 {
			usual++
		}
		if d := sameEvent(event); d != "" {
			t.Fatalf("%s: %s", event, d)
		}
	}
	if usual < 1000 {
		t.Errorf("%d events had the usual form: the test tests nothing", usual)
	}
}

// TestMostEventsAreUsual: what profilers write takes the short way.
func TestMostEventsAreUsual(t *testing.T) {
	corpus(t, func(name string, data []byte) {
		r := NewReader(bytes.NewReader(data), Options{})
		all, usual := 0, 0
		for {
			ev, err := r.Next()
			if err != nil {
				break
			}
			all++
			event := append(bytes.Clone(data[ev.Offset:ev.End]), make([]byte, margin)...)
			p := parser{maxDepth: 128}
			if p.usual(event) > 0 {
				usual++
			}
			if d := sameEvent(event); d != "" {
				t.Fatalf("%s: %s: %s", name, data[ev.Offset:ev.End], d)
			}
		}
		if all > 0 {
			t.Logf("%s: %d of %d", name, usual, all)
		}
	})
}
