package export

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"mixdown/analyze/collective"
	"mixdown/analyze/track"
)

// WriteChrome writes the run's time line as Chrome trace JSON, the same that
// WritePerfetto writes. Processes are ranks. Times are µs with three decimals,
// written from integers, and count from baseTimeNanoseconds as Kineto's do, so
// that readers which take them for doubles don't round them either. The format is
// Google's "Trace Event Format" document.
func WriteChrome(ctx context.Context, w io.Writer, in *Input) error {
	x := newExporter(in)
	flows := track.NewFlows(in.Match)
	c := &chromeWriter{w: w, ends: flowEnds(in), base: max(0, earliest(in))} // a negative one might overflow
	c.raw(`{"displayTimeUnit":"ns","baseTimeNanoseconds":` + strconv.FormatInt(c.base, 10) + `,"otherData":{"tool":` + quote(in.Tool) + `,"clocks":` + quote(in.Clocks.Reason) + `},"traceEvents":[`)
	for r := range in.Run.Ranks {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.rank(x, r, flows)
	}
	c.raw("\n]}\n")
	if c.err != nil {
		return fmt.Errorf("chrome: %w", c.err)
	}
	return nil
}

// flowEnds finds the first and last rank, as indices, that each flow passes by time.
func flowEnds(in *Input) map[uint64][2]int {
	start := func(m collective.Member) int64 { return in.Run.Ranks[m.Rank].Operations[m.Operation].Start }
	ends := map[uint64][2]int{}
	for i, c := range in.Match.Collectives {
		first, last := c.Members[0], c.Members[0]
		for _, m := range c.Members {
			if start(m) < start(first) {
				first = m
			}
			if start(m) >= start(last) {
				last = m
			}
		}
		ends[uint64(i+1)] = [2]int{first.Rank, last.Rank}
	}
	for i, p := range in.Match.Pairs {
		e := [2]int{p.Send.Rank, p.Recv.Rank}
		if start(p.Recv) < start(p.Send) {
			e = [2]int{p.Recv.Rank, p.Send.Rank}
		}
		ends[uint64(len(in.Match.Collectives)+i+1)] = e
	}
	return ends
}

// chromeWriter writes events one by one.
type chromeWriter struct {
	w   io.Writer
	err error
	any bool // an event was written
	buf []byte

	ends   map[uint64][2]int // of flows
	base   int64             // ns, taken off all times
	quoted map[string]string // texts of the rank being written, as JSON
}

func (c *chromeWriter) raw(s string) {
	if c.err == nil {
		_, c.err = io.WriteString(c.w, s)
	}
}

// event writes one event: head is everything but its time and arguments.
func (c *chromeWriter) event(head string, ts, dur int64, hasDur bool, args func(b []byte) []byte) {
	b := c.buf[:0]
	if c.any {
		b = append(b, ',')
	}
	c.any = true
	b = append(append(b, "\n{"...), head...)
	b = appendMicros(append(b, `,"ts":`...), ts-c.base)
	if hasDur {
		b = appendMicros(append(b, `,"dur":`...), dur)
	}
	if args != nil {
		b = append(args(append(b, `,"args":{`...)), '}')
	}
	c.buf = append(b, '}')
	if c.err == nil {
		_, c.err = c.w.Write(c.buf)
	}
}

func (c *chromeWriter) rank(x *exporter, r int, flows *track.Flows) {
	t := x.timeline(r, flows)
	c.quoted = map[string]string{}
	pid := `"pid":` + strconv.Itoa(t.rank.Rank)
	named := func(kind string, tid int, name string) {
		c.event(`"ph":"M","name":"`+kind+`",`+pid+`,"tid":`+strconv.Itoa(tid), c.base, 0, false, func(b []byte) []byte {
			return c.appendNotes(b, []note{textNote("name", name)})
		})
	}
	named("process_name", 0, fmt.Sprintf("rank %d", t.rank.Rank))
	c.event(`"ph":"i","s":"p","name":"mixdown","cat":"metadata",`+pid+`,"tid":0`, t.begin(), 0, false, func(b []byte) []byte {
		return c.appendNotes(b, x.clockNotes(r))
	})
	for i := range t.tracks {
		tr := &t.tracks[i]
		tid := strconv.Itoa(i + 1)
		named("thread_name", i+1, tr.name)
		for k := range tr.slices {
			c.slice(t, r, &tr.slices[k], pid+`,"tid":`+tid)
		}
	}
	for _, s := range t.exposed {
		c.event(`"ph":"C","name":"exposed communication",`+pid, s.ts, 0, false, func(b []byte) []byte {
			return strconv.AppendFloat(append(b, `"percent":`...), s.percent, 'f', 3, 64)
		})
	}
}

func (c *chromeWriter) slice(t *timeline, r int, s *slice, place string) {
	var args func([]byte) []byte
	if s.operation >= 0 {
		args = func(b []byte) []byte { return c.appendNotes(b, t.operations[s.operation].notes()) }
	}
	c.event(`"ph":"X","name":`+c.quote(s.name)+`,"cat":"`+s.category+`",`+place, s.start, s.end-s.start, true, args)
	for _, f := range s.flows {
		// A flow is a start, steps, and an end, each bound to the slice around it.
		phase := "t"
		switch r {
		case c.ends[f][0]:
			phase = "s"
		case c.ends[f][1]:
			phase = "f"
		}
		c.event(`"ph":"`+phase+`","bp":"e","id":`+strconv.FormatUint(f, 10)+`,"name":"matched","cat":"`+categoryCommunication+`",`+place, s.start, 0, false, nil)
	}
}

func (c *chromeWriter) appendNotes(b []byte, notes []note) []byte {
	for i, n := range notes {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, c.quote(n.name)...), ':')
		if n.isText {
			b = append(b, c.quote(n.text)...)
		} else {
			b = strconv.AppendInt(b, n.number, 10)
		}
	}
	return b
}

// appendMicros writes ns as µs with three decimals.
func appendMicros(b []byte, ns int64) []byte {
	n := uint64(ns)
	if ns < 0 {
		b = append(b, '-')
		n = -n
	}
	b = strconv.AppendUint(b, n/1000, 10)
	rest := n % 1000
	return append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
}

// quote is a text of the rank as a JSON string; names repeat.
func (c *chromeWriter) quote(s string) string {
	q, ok := c.quoted[s]
	if !ok {
		q = quote(s)
		c.quoted[s] = q
	}
	return q
}

// quote is a JSON string of what terminals may show.
func quote(s string) string {
	data, err := json.Marshal(printable(s))
	if err != nil { // no string fails
		return `""`
	}
	return string(data)
}
