package synthetic

import (
	"io"
	"strconv"
)

// flushAt is how many bytes of a rank are held before they are written: 256
// ranks are written at once.
const flushAt = 1 << 15

// quarter is what Kineto rounds baseTimeNanoseconds down to, in ns.
const quarter = 7_889_238_000_000_000

// writer writes the events of one rank, seen through its clock.
type writer struct {
	to     io.Writer
	rank   int
	clock  Clock
	start  int64 // of the run, true ns
	base   int64
	buf    []byte
	events int
	err    error
}

func (w *writer) head(distributed string) {
	local := w.clock.local(w.start, w.start)
	w.base = local - local%quarter
	w.add(`{"schemaVersion": 1, "distributedInfo": {`, distributed, `}, "displayTimeUnit": "ms", "baseTimeNanoseconds": `)
	w.buf = strconv.AppendInt(w.buf, w.base, 10)
	w.add(`, "traceEvents": [`)
}

func (w *writer) add(parts ...string) {
	for _, p := range parts {
		w.buf = append(w.buf, p...)
	}
}

func (w *writer) begin() {
	if w.events > 0 {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(w.buf, '\n')
	w.events++
}

func (w *writer) threadName(thread int, name string) {
	w.begin()
	w.add(`{"ph": "M", "name": "thread_name", "ts": 0, "pid": `)
	w.buf = strconv.AppendInt(w.buf, int64(w.pid()), 10)
	w.add(`, "tid": `)
	w.buf = strconv.AppendInt(w.buf, int64(thread), 10)
	w.add(`, "args": {"name": "`, name, `"}}`)
}

func (w *writer) pid() int { return 100 + w.rank }

// span writes an event of the CPU; start and end are true ns.
func (w *writer) span(category, name string, thread int, start, end int64, args string) {
	w.event(category, name, w.pid(), thread, start, end)
	w.add(`, "args": {`, args, `}}`)
	w.flush(flushAt)
}

// onStream writes a kernel.
func (w *writer) onStream(name string, stream int, start, end int64, args string) {
	w.onDevice("kernel", name, stream, start, end, args)
}

// onDevice writes an event of the device.
func (w *writer) onDevice(category, name string, stream int, start, end int64, args string) {
	w.event(category, name, 0, stream, start, end)
	w.add(`, "args": {"device": 0, "stream": `)
	w.buf = strconv.AppendInt(w.buf, int64(stream), 10)
	w.add(`, `, args, `}}`)
	w.flush(flushAt)
}

func (w *writer) event(category, name string, pid, tid int, start, end int64) {
	w.begin()
	w.add(`{"ph": "X", "cat": "`, category, `", "name": "`, name, `", "pid": `)
	w.buf = strconv.AppendInt(w.buf, int64(pid), 10)
	w.add(`, "tid": `)
	w.buf = strconv.AppendInt(w.buf, int64(tid), 10)
	from, to := w.clock.local(w.start, start), w.clock.local(w.start, end)
	w.add(`, "ts": `)
	w.buf = appendMicros(w.buf, from-w.base)
	w.add(`, "dur": `)
	w.buf = appendMicros(w.buf, to-from)
}

// appendMicros writes ns, not negative, as microseconds with three decimals.
func appendMicros(b []byte, ns int64) []byte {
	b = strconv.AppendInt(b, ns/1000, 10)
	rest := ns % 1000
	return append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
}

func (w *writer) flush(above int) {
	if len(w.buf) < above || w.err != nil {
		return
	}
	_, w.err = w.to.Write(w.buf)
	w.buf = w.buf[:0]
}

func (w *writer) close() error {
	w.add("\n]}\n")
	w.flush(0)
	return w.err
}

// intList writes a list as PyTorch does: of more than limit elements the first
// limit-1, dots and the last.
func intList(list []int, limit int) string {
	b := []byte{'['}
	for i, n := range list {
		if len(list) > limit && i >= limit-1 && i < len(list)-1 {
			if i == limit-1 {
				b = append(b, ", ..."...)
			}
			continue
		}
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return string(append(b, ']'))
}
