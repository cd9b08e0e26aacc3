package kineto

import (
	"slices"
	"strings"

	"mixdown/ingest/comm"
)

// facts is what is known of one call, its records merged: each fact from the
// most reliable record that has it.
type facts struct {
	op        comm.Op
	named     bool
	dtype     comm.DType
	in, out   int64
	sized     bool
	group     comm.Group
	hasGroup  bool
	inSplits  []int64
	outSplits []int64
	hasSplits bool
	src, dst  int
	rank      int
	seq       int64
	hasSeq    bool
	commsID   uint64
	recordFn  int64
	// tensors are the sizes of several tensors in one call. The outputs are nil
	// where the profiler recorded inputs alone.
	inputs, outputs []int64
}

// merge reads the records of one call; kernel is the record of arguments that
// the profiler copied to the device event, or nil.
func merge(records []*record, kernel *record) facts {
	s := facts{op: comm.Unknown, src: -1, dst: -1, rank: -1}
	all := records
	if kernel != nil {
		all = append(slices.Clone(records), kernel)
	}
	for _, rec := range all {
		if rec == nil {
			continue
		}
		if !s.named {
			name := rec.collective
			if name == "" {
				name = rec.name
			}
			if op, ok := comm.ParseOp(name); ok {
				s.op, s.named = op, true
			}
		}
		if !s.sized && rec.sized {
			s.dtype, s.in, s.out, s.sized = rec.dtype, rec.in, rec.out, true
		}
		if !s.hasGroup && rec.hasGroup {
			s.group = comm.Group{Name: rec.groupName, Description: rec.groupDesc, Size: rec.groupSize, Ranks: rec.groupRanks}
			s.hasGroup = true
		}
		if s.hasGroup && s.group.Ranks == nil && rec.groupRanks != nil && rec.groupName == s.group.Name {
			s.group.Ranks = rec.groupRanks
		}
		if !s.hasSplits && rec.hasSplits {
			s.inSplits, s.outSplits, s.hasSplits = rec.inSplits, rec.outSplits, true
		}
		if s.src < 0 {
			s.src = rec.src
		}
		if s.dst < 0 {
			s.dst = rec.dst
		}
		if s.rank < 0 {
			s.rank = rec.rank
		}
		if !s.hasSeq && rec.hasSeq {
			s.seq, s.hasSeq = rec.seq, true
		}
		if s.commsID == 0 {
			s.commsID = rec.commsID
		}
		if s.recordFn == 0 {
			s.recordFn = rec.recordFn
		}
	}
	for _, rec := range all {
		if rec != nil && rec.kind == c10dRecord {
			s.readConcrete(rec)
		}
		if rec != nil && s.inputs == nil {
			s.inputs, s.outputs = rec.coalesced()
		}
	}
	if !s.sized {
		for _, rec := range slices.Backward(all) { // the operator has both tensors, the annotation only one
			if rec != nil && s.sizeFromDims(rec) {
				break
			}
		}
	}
	return s
}

// sizeFromDims takes sizes from the tensors of the call, as recorded with
// record_shapes: before PyTorch 2.2, and on backends without
// record_param_comms, there is nothing else.
func (s *facts) sizeFromDims(rec *record) bool {
	if rec.kind == c10dRecord {
		return s.sizeFromOperator(rec)
	}
	n, dtype, ok := rec.tensors()
	if s.op == comm.Barrier {
		dtype, ok = comm.Uint8, true
	}
	if !ok {
		return false
	}
	switch s.op {
	case comm.AllReduce, comm.Broadcast, comm.Reduce:
		s.dtype, s.in, s.out, s.sized = dtype, n, n, true
	case comm.Send:
		s.dtype, s.in, s.sized = dtype, n, true
	case comm.Recv:
		s.dtype, s.out, s.sized = dtype, n, true
	case comm.Barrier:
		s.dtype, s.sized = dtype, true
	case comm.AllGather:
		if g := s.group.Size; g > 0 {
			s.dtype, s.in, s.out, s.sized = dtype, n, n*int64(g), true
		}
	case comm.ReduceScatter: // annotated with its whole input
		if g := int64(s.group.Size); g > 0 && n%g == 0 {
			s.dtype, s.in, s.out, s.sized = dtype, n, n/g, true
		}
	}
	return s.sized
}

// sizeFromOperator reads a c10d operator whose arguments are two tensors: the
// base forms take the output first, then the input.
func (s *facts) sizeFromOperator(rec *record) bool {
	switch strings.TrimPrefix(rec.name, "c10d::") {
	case "alltoall_base_", "_allgather_base_", "_reduce_scatter_base_":
		out, dtype, okOut := rec.tensor(0)
		in, _, okIn := rec.tensor(1)
		if okOut && okIn {
			s.dtype, s.in, s.out, s.sized = dtype, in, out, true
		}
	case "barrier":
		s.dtype, s.sized = comm.Uint8, true
	}
	return s.sized
}

// describe fills op from its calls' records and from its kernel's own
// arguments. It reports false when there are neither.
func (d *deviceComm) describe(op *comm.Operation, is issued) bool {
	var kernel *record
	if r, ok := d.args[is.kernels[0]]; ok {
		kernel = &d.nest.records[r]
		if len(is.kernels) == 1 {
			op.Channels = kernel.blocks
		}
	}
	if len(is.calls) == 0 {
		s := merge(nil, kernel)
		if kernel == nil {
			s.op, s.named = opFromKernelName(op.Name)
		}
		d.rd.fill(op, s)
		return kernel != nil
	}
	sources := make([]facts, len(is.calls))
	for i, c := range is.calls {
		own := kernel
		if len(is.calls) > 1 {
			own = nil // arguments on a group's kernel would be those of one member
		}
		sources[i] = merge(d.recordsOf(c), own)
	}
	if len(sources) == 1 {
		d.rd.fill(op, sources[0])
		return true
	}
	d.rd.fillGrouped(op, sources)
	return true
}

func (d *deviceComm) recordsOf(c int) []*record {
	var list []*record
	for _, r := range []int{d.calls[c].param, d.calls[c].title, d.calls[c].c10d} {
		if r >= 0 {
			list = append(list, &d.nest.records[r])
		}
	}
	return list
}

// opFromKernelName reads kernels of NCCL 2.19 and later, whose name is the
// collective unless it is the generic kernel. Older names are not to be
// trusted: whatever has no kernel of its own shows as SendRecv.
//
// Activities of other libraries and device annotations are named after the
// operation: "xccl::allreduce", "hccl_AllGather", "nccl:all_reduce".
func opFromKernelName(name string) (comm.Op, bool) {
	for _, p := range []string{"xccl::", "hccl::", "hccl_", "hccl", "nccl:", "oneccl_", "oneccl::"} {
		if rest, ok := strings.CutPrefix(strings.ToLower(name), p); ok {
			rest, _, _ = strings.Cut(rest, "(")
			rest, _, _ = strings.Cut(rest, "<")
			if op, ok := comm.ParseOp(rest); ok {
				return op, true
			}
			return comm.Unknown, false
		}
	}
	rest, ok := strings.CutPrefix(name, "ncclDevKernel_")
	if !ok {
		return comm.Unknown, false
	}
	rest, _, _ = strings.Cut(rest, "(")
	rest, _, _ = strings.Cut(rest, "_")
	if rest == "SendRecv" {
		return comm.Unknown, false // all_to_all or point-to-point
	}
	if op, ok := comm.ParseOp(rest); ok {
		return op, true
	}
	return comm.Unknown, false
}
