package pipeline

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"mixdown/analyze/waiting"
	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// span is a time of a rank, in ns.
type span struct{ start, end int64 }

func (s span) holds(t int64) bool { return s.start <= t && t < s.end }

// label is an annotation that says what ran.
type label struct {
	span
	actions []action
	thread  trace.ThreadID
}

// part is one direction of a point-to-point operation.
type part struct {
	operation, transfer int
	send                bool
	peer                int // global rank, Unknown when the trace does not say

	// call to returned is the call that issued it. By done the program could go
	// on: on a host its wait returned, and a device waits by itself.
	call, returned, done int64
}

// operator is work that the program of a rank ran.
type operator struct {
	span
	name     trace.NameID
	backward bool // it runs in autograd's engine
	buffer   bool // it makes or renames tensors only
}

// launched is a computing kernel and when the program launched it.
type launched struct {
	at int64
	span
}

// view is what one rank tells about the pipeline.
type view struct {
	rank  *trace.Rank
	index int // into Run.Ranks

	labels       []label // by start
	instructions []label // by start; with one action each, of which only the phase is known
	parts        []part  // in the order of their calls
	waits        []waiting.Wait
	waitOf       map[int]int // operation -> index into waits
	operators    []operator  // outermost, by start
	kernels      []launched  // by launch
	sending      []span      // by start, apart: when the program of a host sent
}

func look(rank *trace.Rank, index int, diags *diagnostic.Set) *view {
	v := &view{rank: rank, index: index, waitOf: map[int]int{}}
	v.readLabels(diags)
	v.listParts()
	if len(v.labels) == 0 && len(v.parts) == 0 {
		return v // no pipeline: spare the rest
	}
	v.waits = waiting.Find(rank)
	for i, w := range v.waits {
		v.waitOf[w.Operation] = i
	}
	v.listOperators()
	if rank.CPUOnly {
		v.listSends()
	} else {
		v.listKernels()
	}
	return v
}

func (v *view) readLabels(diags *diagnostic.Set) {
	ev := &v.rank.Events
	// Names repeat: read each once.
	names := v.rank.Names.Len()
	actions, instructions, odd := make([][]action, names), make([][]action, names), make([]bool, names)
	any := false
	for id := range names {
		name := v.rank.Names.Get(trace.NameID(id))
		actions[id], odd[id] = readLabel(name)
		if phase, ok := instruction(name); ok {
			instructions[id] = []action{{phase: phase, stage: Unknown, microbatch: Unknown}}
		}
		any = any || odd[id] || actions[id] != nil || instructions[id] != nil
	}
	if !any {
		return
	}
	for i, id := range ev.Name {
		c := ev.Category[i]
		if c != trace.UserAnnotation && c != trace.PythonFunction {
			continue
		}
		l := label{span: span{ev.TS[i], ev.End(i)}, thread: ev.Thread[i]}
		if l.actions = actions[id]; l.actions != nil && c == trace.UserAnnotation {
			v.labels = append(v.labels, l)
		}
		if l.actions = instructions[id]; l.actions != nil {
			v.instructions = append(v.instructions, l)
		}
		if odd[id] && c == trace.UserAnnotation {
			diags.Addf(CodeLabelOdd, v.rank.Rank, ev.Offset[i], "%.60q is no action of a pipeline that can be", v.rank.Name(i))
		}
	}
	byStart := func(a, b label) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) }
	slices.SortStableFunc(v.labels, byStart)
	slices.SortStableFunc(v.instructions, byStart)
}

func (v *view) listParts() {
	for i := range v.rank.Operations {
		op := &v.rank.Operations[i]
		// Operations launched together are issued after their calls returned.
		returned := max(op.Issued, op.Returned)
		p := part{operation: i, peer: Unknown, call: op.Issued, returned: returned, done: returned}
		if v.rank.CPUOnly {
			p.done = op.End
		}
		if op.Op.IsP2P() && len(op.Transfers) > 0 {
			for t, tr := range op.Transfers {
				p.transfer, p.send, p.peer = t, tr.Send, tr.Peer
				v.parts = append(v.parts, p)
			}
		} else if op.Op == comm.Send || op.Op == comm.Recv {
			p.send = op.Op == comm.Send
			if v.rank.Distributed.WorldSize == 2 { // there is only one other rank
				p.peer = 1 - v.rank.Rank
			}
			v.parts = append(v.parts, p)
		}
	}
	slices.SortStableFunc(v.parts, func(a, b part) int { return cmp.Compare(a.call, b.call) })
}

// autograd begins the names of the operators in which autograd's engine runs.
const autograd = "autograd::engine::evaluate_function"

// bufferOperators make tensors, or other views of them, and compute nothing.
var bufferOperators = []string{"aten::empty", "aten::detach", "detach", "aten::view", "aten::as_strided", "aten::alias"}

// listOperators lists the outermost operators of the threads that communicate,
// and those of autograd wherever they ran. Communication is no work.
func (v *view) listOperators() {
	ev := &v.rank.Events
	type nature struct{ communicates, backward, buffer bool }
	known := map[trace.NameID]nature{}
	program := map[trace.ThreadID]bool{}
	for i := range v.parts {
		if t := v.rank.Operations[v.parts[i].operation].Thread; t >= 0 {
			program[trace.ThreadID(t)] = true
		}
	}
	for i := range v.labels {
		program[v.labels[i].thread] = true
	}
	byThread := map[trace.ThreadID][]operator{}
	for i := range ev.Len() {
		if ev.Category[i] != trace.CPUOp {
			continue
		}
		n, seen := known[ev.Name[i]]
		if !seen {
			name := v.rank.Name(i)
			n.communicates = strings.Contains(name, "c10d::") || strings.HasPrefix(name, "_c10d_functional::") || name == "record_param_comms"
			n.backward = strings.HasPrefix(name, autograd)
			n.buffer = slices.ContainsFunc(bufferOperators, func(p string) bool { return strings.HasPrefix(name, p) })
			known[ev.Name[i]] = n
		}
		if !n.communicates && (n.backward || program[ev.Thread[i]]) {
			byThread[ev.Thread[i]] = append(byThread[ev.Thread[i]],
				operator{span: span{ev.TS[i], ev.End(i)}, name: ev.Name[i], backward: n.backward, buffer: n.buffer})
		}
	}
	for _, list := range byThread {
		slices.SortStableFunc(list, func(a, b operator) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
		end := int64(-1) << 62
		for _, o := range list {
			if o.start >= end {
				v.operators = append(v.operators, o)
				end = o.end
			}
		}
	}
	slices.SortStableFunc(v.operators, func(a, b operator) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), cmp.Compare(a.name, b.name))
	})
}

// listKernels lists the kernels that compute. Copies are no computing, and the
// kernels of communication last as long as the other side lets them.
func (v *view) listKernels() {
	ev := &v.rank.Events
	communicates := make([]bool, ev.Len())
	for i := range v.rank.Operations {
		for _, e := range v.rank.Operations[i].Events {
			communicates[e] = true
		}
	}
	launches, _ := trace.JoinLaunches(v.rank)
	for i := range ev.Len() {
		if ev.Category[i] != trace.Kernel || communicates[i] || strings.Contains(v.rank.Name(i), "ncclDevKernel") {
			continue
		}
		if l, ok := launches.Of(ev.Correlation[i]); ok {
			v.kernels = append(v.kernels, launched{ev.TS[l], span{ev.TS[i], ev.End(i)}})
		}
	}
	slices.SortStableFunc(v.kernels, func(a, b launched) int { return cmp.Compare(a.at, b.at) })
}

// during are the operators that started in s.
func (v *view) during(s span) []operator {
	from := sort.Search(len(v.operators), func(i int) bool { return v.operators[i].start >= s.start })
	to := sort.Search(len(v.operators), func(i int) bool { return v.operators[i].start >= s.end })
	return v.operators[from:max(from, to)]
}

// launchedIn are the kernels that were launched in s.
func (v *view) launchedIn(s span) []launched {
	from := sort.Search(len(v.kernels), func(i int) bool { return v.kernels[i].at >= s.start })
	to := sort.Search(len(v.kernels), func(i int) bool { return v.kernels[i].at >= s.end })
	return v.kernels[from:max(from, to)]
}

// calledIn are the parts whose calls were made in s.
func (v *view) calledIn(s span) []part {
	from := sort.Search(len(v.parts), func(i int) bool { return v.parts[i].call >= s.start })
	to := sort.Search(len(v.parts), func(i int) bool { return v.parts[i].call >= s.end })
	return v.parts[from:max(from, to)]
}
