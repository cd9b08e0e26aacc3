package executiontrace

import (
	"fmt"

	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// joined is how one rank's operations and the calls of its execution trace
// belong together.
type joined struct {
	call   []int    // for each operation the index of its call, -1 when it has none
	reason []string // for each operation why it has none
	// contradicted lists operations whose call says something else.
	contradicted []contradiction
	unused       int // calls without an operation
}

type contradiction struct {
	operation int
	why       string
}

// join joins the operations of a rank to the calls of its execution trace. The
// same record function has the same id in both files, so ids decide where the
// profiler wrote them; they are numbers that count from one, so those of
// another run exist too, and most of the pairs they make have to agree.
func join(rank *trace.Rank, t *Trace) joined {
	j := joined{call: make([]int, len(rank.Operations)), reason: make([]string, len(rank.Operations))}
	hasIDs := false
	for i := range rank.Operations {
		j.call[i] = -1
		hasIDs = hasIDs || rank.Operations[i].RecordFn > 0
	}
	if hasIDs {
		j.byID(rank, t)
	} else {
		j.byOrder(rank, t)
	}
	used := 0
	for _, c := range j.call {
		if c >= 0 {
			used++
		}
	}
	j.unused = len(t.Calls) - used - len(j.contradicted)
	return j
}

const ambiguous = -2

func (j *joined) byID(rank *trace.Rank, t *Trace) {
	calls := map[int64]int{}
	for c := range t.Calls {
		for _, id := range t.Calls[c].RecordFns {
			if have, ok := calls[id]; ok && have != c {
				calls[id] = ambiguous
			} else {
				calls[id] = c
			}
		}
	}
	owner := map[int]int{} // call -> operation
	for i := range rank.Operations {
		op := &rank.Operations[i]
		c, ok := calls[op.RecordFn]
		switch {
		case op.Op == comm.Batch:
			j.reason[i] = "it groups several calls"
		case op.RecordFn <= 0:
			j.reason[i] = "it has no record function id"
		case !ok:
			j.reason[i] = fmt.Sprintf("record function %d is not in the execution trace", op.RecordFn)
		case c == ambiguous:
			j.reason[i] = fmt.Sprintf("record function %d is two nodes of the execution trace", op.RecordFn)
		default:
			if other, taken := owner[c]; taken {
				j.call[other], j.reason[other] = -1, "two operations have its record function id"
				j.reason[i] = j.reason[other]
				continue
			}
			owner[c] = i
			j.call[i] = c
		}
	}
	agree := 0
	for i, c := range j.call {
		if c < 0 {
			continue
		}
		if why := disagree(&rank.Operations[i], &t.Calls[c]); why != "" {
			j.call[i] = -1
			j.contradicted = append(j.contradicted, contradiction{i, why})
		} else {
			agree++
		}
	}
	if agree > len(j.contradicted) {
		return
	}
	for i, c := range j.call {
		if c >= 0 {
			j.call[i] = -1
			j.contradicted = append(j.contradicted, contradiction{i, "most of the other operations are not those of the execution trace: it is of another run"})
		}
	}
}

// maxCompared bounds the work of finding where one sequence lies in the other.
const maxCompared = 64 << 20

// byOrder joins by position. One of the sequences may be part of the other (an
// execution trace is often of one step), if there is only one place where it
// fits. Everything must agree: sizes that differ show that the two files are
// of different steps, and then splits of equal size would be wrong as well.
func (j *joined) byOrder(rank *trace.Rank, t *Trace) {
	// A batch is several calls; without ids it is not known which.
	p2p := true
	for i := range rank.Operations {
		p2p = p2p && rank.Operations[i].Op != comm.Batch
	}
	var ops, calls []int
	for i := range rank.Operations {
		if p2p || !rank.Operations[i].Op.IsP2P() {
			ops = append(ops, i)
		} else {
			j.reason[i] = "sends and receives that start together cannot be joined by order"
		}
	}
	for c := range t.Calls {
		if p2p || !t.Calls[c].Op.IsP2P() {
			calls = append(calls, c)
		}
	}
	short := min(len(ops), len(calls))
	found := -1
	var reason string
	compared := 0
	// Exactly one of the two moves along the other.
	for shift := 0; shift <= max(len(ops), len(calls))-short && short > 0; shift++ {
		o, c := 0, 0
		if len(ops) > len(calls) {
			o = shift
		} else {
			c = shift
		}
		n := 0
		var why string
		for n < short && why == "" {
			if why = disagree(&rank.Operations[ops[o+n]], &t.Calls[calls[c+n]]); why == "" {
				n++
			}
		}
		compared += n + 1
		switch {
		case compared > maxCompared:
			reason, found = "the sequences are too long to find out how they belong together", ambiguous
		case n < short && reason == "":
			reason = fmt.Sprintf("the sequences differ (%d operations, %d calls): %s", len(ops), len(calls), why)
			if len(ops) == len(calls) && evenForm(rank.Operations[ops[o+n]].Op) == evenForm(t.Calls[calls[c+n]].Op) {
				j.contradicted = append(j.contradicted, contradiction{ops[o+n], why})
			}
		case n == short && found >= 0:
			reason, found = "the execution trace fits in more than one place", ambiguous
		case n == short:
			found = shift
		}
		if found == ambiguous {
			break
		}
	}
	if short == 0 {
		reason = "the execution trace has no communication"
	}
	at := map[int]bool{}
	if found >= 0 {
		reason = "it lies outside of the execution trace"
		for n := range short {
			o, c := n, n
			if len(ops) > len(calls) {
				o += found
			} else {
				c += found
			}
			j.call[ops[o]] = calls[c]
			at[ops[o]] = true
		}
	}
	for _, i := range ops {
		if !at[i] {
			j.reason[i] = reason
		}
	}
	for _, c := range j.contradicted {
		j.reason[c.operation] = ""
	}
}

// disagree tells in what an operation and a call contradict each other; ""
// when they can be the same.
func disagree(op *comm.Operation, call *Call) string {
	if op.Op != comm.Unknown && call.Op != comm.Unknown && evenForm(op.Op) != evenForm(call.Op) {
		return fmt.Sprintf("%s in the profiler trace, %s in the execution trace", op.Op, call.Op)
	}
	if !op.SizeKnown || !call.SizeKnown {
		return ""
	}
	if op.DType != call.DType || op.In != call.In || op.Out != call.Out {
		return fmt.Sprintf("%s of %s, %d elements in and %d out in the profiler trace, of %s, %d in and %d out in the execution trace",
			op.Op, op.DType, op.In, op.Out, call.DType, call.In, call.Out)
	}
	return ""
}
