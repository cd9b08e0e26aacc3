package trace

// Category is the kind of an event, the same for all generations of the
// profiler's category names.
type Category uint8

// The categories that analyses distinguish.
const (
	Other Category = iota
	CPUOp
	UserAnnotation
	PythonFunction
	Runtime // an API call of the host: cuda_runtime, cuda_driver, and their like
	Kernel
	Memcpy
	Memset
	CollectiveActivity // communication reported by the device's own library (HCCL, oneCCL)
	GPUAnnotation      // a user annotation projected on a device stream
	Sync               // synchronisation as the device profiler saw it
	Instant
)

// OnDevice says whether events of this category occupy a device.
func (c Category) OnDevice() bool {
	return c == Kernel || c == Memcpy || c == Memset || c == CollectiveActivity
}

// NoStream marks events that belong to no device stream; stream 0 is valid.
const NoStream = int64(-1) << 62

// NoID marks a correlation that the event does not have.
const NoID = int64(-1) << 62

// ThreadID is an interned (process, thread) pair of one rank.
type ThreadID uint32

// Thread names a timeline of a rank: pid and tid as the file gives them.
type Thread struct {
	PID, TID string
}

// Events holds the events of one rank in file order, one slice for each column.
type Events struct {
	Name        []NameID
	Category    []Category
	Thread      []ThreadID
	TS          []int64 // ns
	Dur         []int64 // ns, 0 for instants
	Offset      []int64 // of the event in the decompressed file
	Correlation []int64 // joins a launch and what it launched, NoID when absent
	Stream      []int64 // device stream, NoStream when absent
	Device      []int32 // device index, -1 when absent
	Phase       []Phase // of device events and communication records
	Blocks      []int32 // of a kernel: blocks of its grid, 0 when not known
}

// Row is one event, to append to or read from Events.
type Row struct {
	Name        NameID
	Category    Category
	Thread      ThreadID
	TS, Dur     int64
	Offset      int64
	Correlation int64
	Stream      int64
	Device      int32
	Phase       Phase
	Blocks      int32
}

// Append adds an event and returns its index.
func (e *Events) Append(r Row) int {
	e.Name = append(e.Name, r.Name)
	e.Category = append(e.Category, r.Category)
	e.Thread = append(e.Thread, r.Thread)
	e.TS = append(e.TS, r.TS)
	e.Dur = append(e.Dur, r.Dur)
	e.Offset = append(e.Offset, r.Offset)
	e.Correlation = append(e.Correlation, r.Correlation)
	e.Stream = append(e.Stream, r.Stream)
	e.Device = append(e.Device, r.Device)
	e.Phase = append(e.Phase, r.Phase)
	e.Blocks = append(e.Blocks, r.Blocks)
	return len(e.Name) - 1
}

// Grow makes room for n events in all. Room that is never used costs no memory.
func (e *Events) Grow(n int) {
	if more := n - e.Len(); more > 0 {
		e.Name = grown(e.Name, more)
		e.Category = grown(e.Category, more)
		e.Thread = grown(e.Thread, more)
		e.TS = grown(e.TS, more)
		e.Dur = grown(e.Dur, more)
		e.Offset = grown(e.Offset, more)
		e.Correlation = grown(e.Correlation, more)
		e.Stream = grown(e.Stream, more)
		e.Device = grown(e.Device, more)
		e.Phase = grown(e.Phase, more)
		e.Blocks = grown(e.Blocks, more)
	}
}

func grown[T any](column []T, more int) []T {
	if cap(column)-len(column) >= more {
		return column
	}
	return append(make([]T, 0, len(column)+more), column...)
}

// Cap is the number of events that there is room for.
func (e *Events) Cap() int { return cap(e.TS) }

// AppendRows adds events. It goes through them once for each column or two,
// which is faster than once with all columns.
func (e *Events) AppendRows(rows []Row) {
	n := e.Len()
	e.extend(len(rows))
	name, category, thread, phase := e.Name[n:], e.Category[n:], e.Thread[n:], e.Phase[n:]
	for i := range rows {
		r := &rows[i]
		name[i], category[i], thread[i], phase[i] = r.Name, r.Category, r.Thread, r.Phase
	}
	ts, dur, offset := e.TS[n:], e.Dur[n:], e.Offset[n:]
	for i := range rows {
		r := &rows[i]
		ts[i], dur[i], offset[i] = r.TS, r.Dur, r.Offset
	}
	correlation, stream, device, blocks := e.Correlation[n:], e.Stream[n:], e.Device[n:], e.Blocks[n:]
	for i := range rows {
		r := &rows[i]
		correlation[i], stream[i], device[i], blocks[i] = r.Correlation, r.Stream, r.Device, r.Blocks
	}
}

// extend makes all columns longer; what they hold there is not defined.
func (e *Events) extend(by int) {
	n := e.Len() + by
	if n > e.Cap() {
		e.Grow(max(n, 2*e.Len()))
	}
	e.Name, e.Category, e.Thread = e.Name[:n], e.Category[:n], e.Thread[:n]
	e.TS, e.Dur, e.Offset = e.TS[:n], e.Dur[:n], e.Offset[:n]
	e.Correlation, e.Stream, e.Device, e.Phase = e.Correlation[:n], e.Stream[:n], e.Device[:n], e.Phase[:n]
	e.Blocks = e.Blocks[:n]
}

// Len is the number of events.
func (e *Events) Len() int { return len(e.Name) }

// End is when event i ended, in ns.
func (e *Events) End(i int) int64 { return e.TS[i] + e.Dur[i] }
