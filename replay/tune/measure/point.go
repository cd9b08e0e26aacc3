package measure

import (
	"cmp"
	"fmt"
	"slices"

	"mixdown/ingest/comm"
	"mixdown/replay/tune"
)

// Point is what is measured.
type Point struct {
	Op      comm.Op
	DType   comm.DType
	Bytes   int64 // the larger of what one rank contributes and receives
	Ranks   int
	Streams int // groups of the same ranks that run the same at once
}

// String names the point in a few words.
func (p Point) String() string {
	return fmt.Sprintf("%s of %d bytes, %d ranks", p.Op, p.Bytes, p.Ranks)
}

// Ops lists the operations that can be measured.
func Ops() []comm.Op {
	return []comm.Op{comm.AllReduce, comm.Reduce, comm.Broadcast, comm.AllGather, comm.ReduceScatter, comm.AllToAll,
		comm.AllToAllV, comm.Gather, comm.Scatter, comm.Barrier, comm.Send}
}

// maxMemory bounds the buffers of all ranks of a point, in bytes.
const maxMemory = 4 << 30

// Normal is the point that can be measured in its place: sizes are whole elements
// of every member's part, barriers have none, sends have two ranks. It reports
// false for what can't be measured.
func (p Point) Normal() (Point, bool) {
	p.Streams = max(p.Streams, 1)
	if !slices.Contains(Ops(), p.Op) {
		return p, false
	}
	if p.Op == comm.Barrier {
		p.Bytes, p.DType = 0, ""
		return p, p.Ranks >= 1
	}
	if p.Op == comm.Send {
		p.Ranks = 2
	}
	element := p.DType.Size()
	if element == 0 || p.Ranks < 1 {
		return p, false
	}
	unit := element
	if p.parts() {
		unit *= int64(p.Ranks)
	}
	p.Bytes = max(unit, p.Bytes/unit*unit)
	return p, p.Bytes <= maxMemory/2/int64(p.Ranks)/int64(p.Streams)
}

// parts says whether the operation's size is cut into one part for each rank.
func (p Point) parts() bool {
	switch p.Op {
	case comm.AllGather, comm.ReduceScatter, comm.AllToAll, comm.AllToAllV, comm.Gather, comm.Scatter:
		return true
	}
	return false
}

// InOut is what one rank contributes and receives, in bytes.
func (p Point) InOut() (in, out int64) {
	part := p.Bytes / int64(max(p.Ranks, 1))
	switch p.Op {
	case comm.AllGather, comm.Gather:
		return part, p.Bytes
	case comm.ReduceScatter, comm.Scatter:
		return p.Bytes, part
	}
	return p.Bytes, p.Bytes
}

// row begins the row of a point.
func (p Point) row(who tune.Contender, device string) tune.Row {
	in, out := p.InOut()
	return tune.Row{
		Contender: who, Op: p.Op, DType: p.DType, Device: device, InPlace: p.Op == comm.Broadcast,
		Ranks: p.Ranks, Nodes: 1, In: in, Out: out, Streams: p.Streams, Statistic: tune.Median, Source: Source,
	}
}

// Source is that of rows this package makes.
const Source = "mixdown tune"

// comparePoints orders points by operation, ranks and size.
func comparePoints(a, b Point) int {
	return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.DType, b.DType), cmp.Compare(a.Streams, b.Streams))
}
