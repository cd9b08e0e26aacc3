package flightrecorder

import (
	"math"
	"slices"

	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// Timing is what the start and end of an operation are worth.
type Timing uint8

// The kinds of Timing.
const (
	// Untimed: start and end are not known. Both fields of the operation hold
	// the time it was enqueued (0 without even that) and mean nothing.
	Untimed Timing = iota
	// Discovered: both are when the watchdog noticed, each late by up to the
	// period of its poll (100 ms or more). Short operations seem to take 0 ns.
	Discovered
	// Measured: the duration was measured on the device, the end is when the
	// watchdog noticed it.
	Measured
)

// TraceRank makes a rank of a dump, as far as one goes, and says for each
// operation what its times are worth, and what could not be known.
//
// Operations are in the order they were recorded. A group of coalesced sends
// and receives is one batch with the times of its last entry; coalesced
// collectives of one kind are one operation of summed sizes. Sequence numbers
// are those of collectives or of point-to-point, which the recorder counts
// apart.
//
// Missing, because a dump has none of it: events, threads, steps and waits (so
// Event is -1 and Events nil), the root of rooted operations, how an
// all_to_all cuts its tensors, the reduction, and all operations that the ring
// has overwritten. Computation is not there at all: the rank is good for
// matching and sizes, and for times only where Timing says so.
func (d *Dump) TraceRank() (*trace.Rank, []Timing, diagnostic.Set) {
	c := converter{dump: d, rank: &trace.Rank{
		Rank: d.Rank, RankFrom: d.RankFrom, Source: d.Source, Names: trace.NewStrings(),
		Read: int64(len(d.Entries)), Truncated: d.Truncated,
	}}
	for i := range d.Groups {
		g := d.Groups[i].Group
		c.rank.Groups = append(c.rank.Groups, g)
		if g.Ranks != nil {
			c.rank.Distributed.Groups = append(c.rank.Distributed.Groups, g)
		}
		if g.Description == "default_pg" {
			c.rank.Distributed.WorldSize = max(c.rank.Distributed.WorldSize, g.Size)
		}
	}
	c.rank.Distributed.Backend = d.backend()
	members := d.coalesced()
	inside := map[int]bool{}
	for _, list := range members {
		for _, i := range list {
			inside[i] = true
		}
	}
	for i := range d.Entries {
		switch e := &d.Entries[i]; {
		case inside[i]:
		case e.Op == comm.Batch:
			c.addCoalesced(e, members[i])
		case e.Op == comm.Unknown: // "nccl:split" and the like move no data; counted when read
		default:
			c.add(c.operation(e))
		}
	}
	c.number()
	return c.rank, c.timings, c.diags
}

// backend is what all entries agree on, "" otherwise.
func (d *Dump) backend() string {
	name := ""
	for i := range d.Entries {
		b := d.Entries[i].Backend
		if name != "" && b != name {
			return ""
		}
		name = b
	}
	return name
}

// coalesced returns the members of each coalesced entry: the entries of its
// group right before it that belong to the same launch.
func (d *Dump) coalesced() map[int][]int {
	type launch struct {
		p2p bool
		seq Int
	}
	type run struct {
		launch  launch
		entries []int
	}
	members := map[int][]int{}
	runs := map[int]*run{}
	for i := range d.Entries {
		e := &d.Entries[i]
		l := launch{e.IsP2P, e.seq()}
		r := runs[e.Group]
		if r == nil || r.launch != l || !l.seq.Known {
			r = &run{launch: l}
			runs[e.Group] = r
		}
		if e.Op == comm.Batch {
			members[i] = r.entries
			delete(runs, e.Group)
			continue
		}
		if e.Op != comm.Unknown {
			r.entries = append(r.entries, i)
		}
	}
	return members
}

// seq is the sequence number that counts e.
func (e *Entry) seq() Int {
	if e.IsP2P {
		return e.P2PSeq
	}
	return e.CollectiveSeq
}

type converter struct {
	dump    *Dump
	rank    *trace.Rank
	timings []Timing
	diags   diagnostic.Set
	noGroup int // index of the group of entries that name none, plus 1
}

func (c *converter) note(code, format string, args ...any) {
	c.diags.Addf(code, c.rank.Rank, diagnostic.NoOffset, format, args...)
}

func (c *converter) add(op comm.Operation, timing Timing) {
	if timing == Untimed {
		c.note(CodeUntimed, "%.80q", op.Name)
	}
	c.rank.Operations = append(c.rank.Operations, op)
	c.timings = append(c.timings, timing)
}

// operation makes an operation of one entry.
func (c *converter) operation(e *Entry) (comm.Operation, Timing) {
	op := comm.Operation{Op: e.Op, Name: e.Name, Group: c.group(e), Thread: -1, Event: -1, Offset: diagnostic.NoOffset}
	if s := e.seq(); s.Known {
		op.Seq, op.SeqKnown = s.V, true
	}
	timing := times(e, &op)
	if !e.Created.Known {
		c.note(CodeCreatedUnknown, "%.80q", e.Name)
	}
	c.setSizes(e, &op)
	if e.Op == comm.Send || e.Op == comm.Recv {
		if t, ok := c.transfer(e, &op); ok {
			op.Transfers = []comm.Transfer{t}
		}
	}
	return op, timing
}

// times sets when op was issued, started and ended.
func times(e *Entry, op *comm.Operation) Timing {
	op.Issued, op.Returned = e.Created.V, e.Created.V
	op.Start, op.End = e.Created.V, e.Created.V
	if !e.Completed.Known {
		return Untimed
	}
	switch {
	case e.Duration.Known && e.Completed.V >= math.MinInt64+e.Duration.V:
		op.Start, op.End = e.Completed.V-e.Duration.V, e.Completed.V
		return Measured
	case e.Started.Known && e.Started.V <= e.Completed.V:
		op.Start, op.End = e.Started.V, e.Completed.V
		return Discovered
	}
	return Untimed
}

func (c *converter) group(e *Entry) int {
	if e.Group >= 0 {
		return e.Group
	}
	if c.noGroup == 0 {
		c.rank.Groups = append(c.rank.Groups, comm.Group{})
		c.noGroup = len(c.rank.Groups)
	}
	return c.noGroup - 1
}

// setSizes counts elements. NCCL records a send with its tensor as output, too.
func (c *converter) setSizes(e *Entry, op *comm.Operation) {
	if !e.SizesKnown || len(e.Inputs)+len(e.Outputs) == 0 {
		return
	}
	in, okIn := total(e.Inputs)
	out, okOut := total(e.Outputs)
	all := append(slices.Clone(e.Inputs), e.Outputs...)
	dtype := all[0].DType
	same := !slices.ContainsFunc(all, func(t Tensor) bool { return t.DType != dtype })
	if !okIn || !okOut || !same || dtype == "" {
		c.note(CodeBadField, "sizes of %.80q", e.Name)
		return
	}
	switch e.Op {
	case comm.Send:
		out = 0
	case comm.Recv:
		in = 0
	}
	op.DType, op.In, op.Out, op.SizeKnown = dtype, in, out, true
}

// total is the number of elements of all tensors, false when it does not fit.
func total(tensors []Tensor) (int64, bool) {
	sum := int64(0)
	for _, t := range tensors {
		n := int64(1)
		for _, size := range t.Sizes {
			if size != 0 && n > math.MaxInt64/16/size {
				return 0, false
			}
			n *= size
		}
		if sum > math.MaxInt64/16-n {
			return 0, false
		}
		sum += n
	}
	return sum, true
}

// transfer reads the peer of a send or receive, a rank inside the group.
func (c *converter) transfer(e *Entry, op *comm.Operation) (comm.Transfer, bool) {
	peer, count := e.Dst, op.In
	if e.Op == comm.Recv {
		peer, count = e.Src, op.Out
	}
	ranks := c.rank.Groups[op.Group].Ranks
	if !peer.Known || peer.V >= int64(len(ranks)) || !op.SizeKnown {
		c.note(CodePeerUnknown, "%.80q", e.Name)
		return comm.Transfer{}, false
	}
	return comm.Transfer{Send: e.Op == comm.Send, Peer: ranks[peer.V], Count: count}, true
}

// addCoalesced adds what a coalesced launch did; e is its last entry, which has
// the times but no sizes.
func (c *converter) addCoalesced(e *Entry, members []int) {
	op, timing := c.operation(e)
	var parts []comm.Operation
	for _, i := range members {
		part, _ := c.operation(&c.dump.Entries[i])
		parts = append(parts, part)
	}
	switch {
	case len(parts) == 0:
		// A batch of which nothing is known.
	case !slices.ContainsFunc(parts, func(p comm.Operation) bool { return !p.Op.IsP2P() }):
		batch(&op, parts)
	case !slices.ContainsFunc(parts, func(p comm.Operation) bool { return p.Op != parts[0].Op || p.DType != parts[0].DType }):
		op.Op, op.Name = parts[0].Op, parts[0].Name
		sum(&op, parts)
		for _, p := range parts {
			if op.SizeKnown && len(parts) > 1 {
				op.Tensors = append(op.Tensors, comm.Tensor{In: p.In, Out: p.Out})
			}
		}
	default:
		c.note(CodeMixedCoalesced, "%d operations", len(parts))
		for _, part := range parts {
			part.Start, part.End = part.Issued, part.Issued
			c.add(part, Untimed)
		}
		return
	}
	if len(parts) > 0 {
		op.Issued = parts[0].Issued
	}
	c.add(op, timing)
}

// batch puts the transfers of parts into op; without all of them, none.
func batch(op *comm.Operation, parts []comm.Operation) {
	sum(op, parts)
	for _, p := range parts {
		if len(p.Transfers) != 1 {
			op.Transfers = nil
			return
		}
		op.Transfers = append(op.Transfers, p.Transfers[0])
	}
}

// sum adds up the sizes of parts; they are known only if all are, in one type.
func sum(op *comm.Operation, parts []comm.Operation) {
	op.DType, op.SizeKnown = parts[0].DType, true
	for _, p := range parts {
		op.In, op.Out = op.In+p.In, op.Out+p.Out
		if !p.SizeKnown || p.DType != op.DType || op.In < 0 || op.Out < 0 {
			op.DType, op.In, op.Out, op.SizeKnown = "", 0, 0, false
			return
		}
	}
}

// number gives each operation its place among those of its group.
func (c *converter) number() {
	next := make([]int, len(c.rank.Groups))
	for i := range c.rank.Operations {
		op := &c.rank.Operations[i]
		op.Index = next[op.Group]
		next[op.Group]++
	}
}
