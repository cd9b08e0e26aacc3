package comm

// Group is a process group as far as a trace tells: its name and description,
// and its members when they are known.
type Group struct {
	Name        string // "" when the trace names none
	Description string // for example "default_pg"
	Size        int    // members, 0 when unknown
	Ranks       []int  // global ranks in group order, nil when unknown
	// Stream tells unnamed groups of one rank apart: communication on another
	// device stream belongs to another communicator.
	Stream string
}

// Transfer is one direction of point-to-point communication.
type Transfer struct {
	Send  bool
	Peer  int // global rank
	Count int64
}

// Tensor is one tensor of a coalesced collective, sizes as Operation's In and Out.
type Tensor struct{ In, Out int64 }

// Operation is one communication as one rank took part in it.
type Operation struct {
	Op    Op
	Group int // index into the rank's groups
	DType DType

	// SizeKnown says whether DType, In and Out are the trace's; without it they
	// mean nothing.
	SizeKnown bool
	In, Out   int64 // elements contributed and received

	// InSplits and OutSplits are the elements to and from each member, in
	// group order; nil when the operation has no uneven parts or when they are
	// unknown. SplitsEstimated: the totals are exact, the entries are not.
	InSplits, OutSplits []int64
	SplitsKnown         bool // the trace says how the parts are cut (nil then means evenly)
	SplitsEstimated     bool

	// Tensors are the sizes of a collective that several tensors were coalesced
	// into, in their order; nil when it has one, or when the trace has only their
	// sum.
	Tensors []Tensor

	Channels int // blocks of its kernel, each of which holds an SM; 0 when not known

	Root      int // global rank, valid with RootKnown
	RootKnown bool
	Transfers []Transfer // send, recv, batch

	Seq     int64  // the trace's sequence number in the group, valid with SeqKnown
	CommsID uint64 // the trace's id of this communication on all ranks, 0 when absent

	SeqKnown bool

	// Index is the position among the operations of this rank and group in the
	// order they were issued, from 0.
	Index int

	Thread   int    // index of the rank's thread that issued it, -1 when not known
	Issued   int64  // ns, when the CPU issued it
	Returned int64  // ns, when the issuing call returned to the program
	Start    int64  // ns, first moment it ran on the device or on its worker thread
	End      int64  // ns
	Stream   string // the device stream or worker thread it ran on
	Name     string // of the event the times come from
	Module   string // the innermost nn.Module that issued it, where the trace has modules
	Offset   int64  // byte offset of that event in the file
	RecordFn int64  // "Record function id" of its record_param_comms, 0 when absent
	Event    int    // index of the event the times come from in the rank's events
	Events   []int  // all events that carry it: several kernels, or one
}

// Dur is how long the operation ran on this rank, waiting for others included, in ns.
func (o *Operation) Dur() int64 { return o.End - o.Start }

// InBytes is what this rank contributes, in bytes.
func (o *Operation) InBytes() int64 { return o.In * o.DType.Size() }

// OutBytes is what this rank receives, in bytes.
func (o *Operation) OutBytes() int64 { return o.Out * o.DType.Size() }
