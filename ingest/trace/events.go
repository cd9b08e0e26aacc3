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
	return len(e.Name) - 1
}

// Len is the number of events.
func (e *Events) Len() int { return len(e.Name) }

// End is when event i ended, in ns.
func (e *Events) End(i int) int64 { return e.TS[i] + e.Dur[i] }
