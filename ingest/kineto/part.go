package kineto

import (
	"strconv"
	"strings"

	"mixdown/ingest/chrome"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// part is what was read of one stretch of a file. Stretches are read by several
// goroutines, before it is known how many events precede them, so a part counts
// events from its own start, and its names and threads are those of the tables
// that the goroutines share. A reading takes the parts in file order and
// numbers everything anew.
type part struct {
	worker *worker
	epoch  uint32 // tells the parts of a worker apart

	read        int64
	rows        []trace.Row
	names       []uint32 // of rows, each at least at its first appearance
	threads     []uint32 // of rows and threadNames, in the same way
	records     []record
	steps       []trace.Step
	waits       []trace.Wait
	eventWaits  []trace.EventWait
	threadNames []threadName
	edges       []edge
	diags       diagnostic.Set
}

// edge is the begin or the end of an event that is written as two. PyTorch does
// not, other writers do.
type edge struct {
	row    int    // of the begin, -1 for an end
	thread uint32 // in the tables of the part, in the rank once it is taken
	ts     int64
	offset int64
}

type threadName struct {
	thread uint32
	name   string
}

// reset empties p for other events.
func (p *part) reset() {
	*p = part{
		rows: p.rows[:0], names: p.names[:0], threads: p.threads[:0],
		records: p.records[:0], steps: p.steps[:0], waits: p.waits[:0], eventWaits: p.eventWaits[:0], threadNames: p.threadNames[:0],
		edges: p.edges[:0],
	}
}

// Event implements chrome.Sink.
func (p *part) Event(ev *chrome.Event) {
	p.read++
	switch {
	case ev.Phase == 'X':
		p.add(ev)
	case ev.Phase == 'B' && ev.HasTS:
		rows := len(p.rows)
		p.add(ev)
		if len(p.rows) > rows {
			p.edges = append(p.edges, edge{rows, uint32(p.rows[rows].Thread), ev.TS, ev.Offset})
		}
	case ev.Phase == 'E' && ev.HasTS:
		p.edges = append(p.edges, edge{-1, p.thread(ev), ev.TS, ev.Offset})
	case ev.Phase == 'M' && string(ev.Name) == "thread_name":
		if v, ok := ev.Args.Get("name"); ok {
			p.threadNames = append(p.threadNames, threadName{p.thread(ev), text(v)})
		}
	}
}

// add stores one complete event.
func (p *part) add(ev *chrome.Event) {
	if !ev.HasTS {
		p.diags.Addf("no-timestamp", diagnostic.NoRank, ev.Offset, "%q has no usable ts and is left out", ev.Name)
		return
	}
	name := p.worker.names.find(ev.Name)
	category := p.worker.category(ev.Cat, name)
	if category == trace.PythonFunction && name.kind != isKept {
		return // the interpreter's stack, most of the events of traces that have it
	}
	dur := int64(0)
	if ev.HasDur {
		dur = max(ev.Dur, 0)
	}
	if category.OnDevice() && ev.TS == 0 && dur == 0 {
		// CUPTI writes zeros when it could not time an activity.
		p.diags.Addf("untimed-device-event", diagnostic.NoRank, ev.Offset, "%q has time 0 and is left out", ev.Name)
		return
	}
	if name.epoch != p.epoch {
		name.epoch = p.epoch
		p.names = append(p.names, name.id)
	}
	i := len(p.rows)
	p.rows = append(p.rows, trace.Row{
		Name: trace.NameID(name.id), Category: category, Thread: trace.ThreadID(p.thread(ev)),
		TS: ev.TS, Dur: dur, Offset: ev.Offset,
		Correlation: trace.NoID, Stream: trace.NoStream, Device: -1,
	})
	switch category {
	case trace.CPUOp, trace.UserAnnotation:
		if name.kind != isOrdinary {
			p.addCPU(ev, i, name)
		}
	case trace.Kernel, trace.CollectiveActivity:
		if readDeviceArgs(ev, &p.rows[i]) {
			rec := record{event: i, kind: kernelRecord}
			rec.readArgs(ev.Args)
			p.records = append(p.records, rec)
		}
	case trace.Memcpy, trace.Memset, trace.Runtime:
		readDeviceArgs(ev, &p.rows[i])
	case trace.Sync:
		readDeviceArgs(ev, &p.rows[i])
		p.addEventWait(ev, &p.rows[i])
	}
}

// readDeviceArgs reads what joins device events to launches and streams, and
// says whether there are arguments of communication.
func readDeviceArgs(ev *chrome.Event, row *trace.Row) (communicates bool) {
	ev.Args.Each(func(key []byte, v chrome.Value) bool {
		switch string(key) {
		case "correlation":
			if n, ok := v.Int(); ok {
				row.Correlation = n
			}
		case "stream":
			if n, ok := v.Int(); ok {
				row.Stream = n
			}
		case "device":
			if n, ok := v.Int(); ok {
				row.Device = int32(n)
			}
		case "grid":
			row.Blocks = gridBlocks(v)
		case "Collective name":
			communicates = true
		}
		return true
	})
	if row.Category.OnDevice() && row.Stream == trace.NoStream {
		// Generations up to 1.12 name the stream in tid only: "stream 7".
		tid := strings.TrimPrefix(ev.TID.String(), "stream ")
		if n, err := strconv.ParseInt(tid, 10, 64); err == nil {
			row.Stream = n
		}
	}
	return communicates
}

// addEventWait keeps a wait for an event of which stream and record are known; -1
// says that they are not.
func (p *part) addEventWait(ev *chrome.Event, row *trace.Row) {
	w := trace.EventWait{Call: row.Correlation, Stream: row.Stream, On: -1, Record: -1}
	ev.Args.Each(func(key []byte, v chrome.Value) bool {
		switch string(key) {
		case "wait_on_stream":
			if n, ok := v.Int(); ok {
				w.On = n
			}
		case "wait_on_cuda_event_record_corr_id":
			if n, ok := v.Int(); ok {
				w.Record = n
			}
		}
		return true
	})
	if w.Stream < 0 {
		w.Stream = trace.NoStream
	}
	if w.On >= 0 && w.Record >= 0 && w.Call != trace.NoID {
		p.eventWaits = append(p.eventWaits, w)
	}
}

// addCPU keeps what CPU events say about communication and steps.
func (p *part) addCPU(ev *chrome.Event, i int, name *name) {
	switch name.kind {
	case isRecord:
		rec := record{event: i, kind: name.record, name: name.text}
		rec.readArgs(ev.Args)
		p.records = append(p.records, rec)
	case isStep:
		p.steps = append(p.steps, trace.Step{
			Name: name.text, Number: name.step, Start: ev.TS, End: ev.TS + max(ev.Dur, 0),
		})
	case isWait:
		p.waits = append(p.waits, trace.Wait{TS: ev.TS, Thread: p.rows[i].Thread})
	}
}

// thread is the shared number of the event's thread.
func (p *part) thread(ev *chrome.Event) uint32 {
	t := p.worker.threads.find(threadKey{ev.PID, ev.TID})
	if t.epoch != p.epoch {
		t.epoch = p.epoch
		p.threads = append(p.threads, t.id)
	}
	return t.id
}

const stepPrefix = "ProfilerStep#"

func stepNumber(name []byte) (int, bool) {
	if len(name) <= len(stepPrefix) || string(name[:len(stepPrefix)]) != stepPrefix {
		return 0, false
	}
	n, err := strconv.Atoi(string(name[len(stepPrefix):]))
	return n, err == nil
}
