package kineto

import (
	"strings"

	"mixdown/ingest/trace"
)

// autogradOperator begins the names of the operators that autograd runs a
// backward node in.
const autogradOperator = "autograd::engine::evaluate_function"

// phaseOfMarker is the phase that the event's name marks, UnknownPhase for
// events that mark none.
func phaseOfMarker(category trace.Category, name string) trace.Phase {
	if category == trace.CPUOp {
		if strings.HasPrefix(name, autogradOperator) {
			return trace.Backward
		}
		return trace.UnknownPhase
	}
	if category == trace.PythonFunction {
		return phaseOfFunction(name)
	}
	if category != trace.UserAnnotation {
		return trace.UnknownPhase
	}
	lower := strings.ToLower(name)
	switch {
	case strings.HasPrefix(name, stepPrefix):
		return trace.UnknownPhase
	case strings.HasPrefix(name, "Optimizer.step"), word(lower, "optimizer"), word(lower, "optimizer_step"), strings.HasPrefix(lower, "optimizerstep"):
		return trace.Optimizer
	case strings.HasPrefix(name, "Optimizer.zero_grad"), strings.HasPrefix(name, "enumerate(DataLoader)"), word(lower, "zero_grad"):
		return trace.OtherPhase
	case strings.HasPrefix(name, "FSDP::") && strings.Contains(name, "backward"), strings.Contains(name, "_backward_hook"),
		word(lower, "backward"), pipelineAction(name, 'B'), pipelineAction(name, 'I'), pipelineAction(name, 'W'):
		return trace.Backward
	case strings.HasPrefix(name, "FSDP::") && strings.Contains(name, "forward"), strings.HasPrefix(name, "FullyShardedDataParallel._pre_forward"),
		strings.HasPrefix(name, "DistributedDataParallel.forward"), strings.HasPrefix(name, "FullyShardedDataParallel.forward"),
		word(lower, "forward"), pipelineAction(name, 'F'):
		return trace.Forward
	}
	return trace.UnknownPhase
}

// phaseOfFunction is the phase of the Python functions in which DeepSpeed's
// pipeline engine and torch.distributed.pipelining do their work: they annotate
// nothing, so traces with stacks are the only ones that tell.
func phaseOfFunction(name string) trace.Phase {
	_, function, ok := strings.Cut(name, ": ")
	if !ok {
		return trace.UnknownPhase
	}
	switch function {
	case "_exec_forward_pass", "forward_one_chunk":
		return trace.Forward
	case "_exec_backward_pass", "backward_one_chunk", "backward_weight_one_chunk":
		return trace.Backward
	case "_exec_optimizer_step":
		return trace.Optimizer
	case "_exec_load_micro_batch":
		return trace.OtherPhase
	}
	return trace.UnknownPhase
}

// word says whether w stands in name as a word of its own, so that "forward"
// is found in "## forward:sparse ##" but not in "straightforward".
func word(name, w string) bool {
	for rest := name; ; {
		i := strings.Index(rest, w)
		if i < 0 {
			return false
		}
		before, after := i == 0 || !isWordByte(rest[i-1]), i+len(w) == len(rest) || !isWordByte(rest[i+len(w)])
		if before && after {
			return true
		}
		rest = rest[i+len(w):]
	}
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// pipelineAction recognises the actions of torch.distributed.pipelining:
// "PP:2F5" is the forward of stage 2, micro-batch 5.
func pipelineAction(name string, kind byte) bool {
	rest, ok := strings.CutPrefix(name, "PP:")
	if !ok {
		return false
	}
	i := 0
	for i < len(rest) && rest[i] >= '0' && rest[i] <= '9' {
		i++
	}
	return i > 0 && i < len(rest) && rest[i] == kind && (i+1 == len(rest) || rest[i+1] >= '0' && rest[i+1] <= '9')
}

// phaseMarkers finds what marks the phases of a rank: annotations of the program
// and of its frameworks, and the operators of the autograd engine.
func phaseMarkers(rank *trace.Rank) *innermost {
	ev := &rank.Events
	type named struct {
		name     trace.NameID
		category trace.Category
	}
	phaseOf := map[named]trace.Phase{} // names repeat: look at each once
	markers := map[trace.ThreadID][]marker{}
	for i := range ev.Len() {
		c := ev.Category[i]
		if c != trace.CPUOp && c != trace.UserAnnotation && c != trace.PythonFunction {
			continue
		}
		key := named{ev.Name[i], c}
		phase, known := phaseOf[key]
		if !known {
			phase = phaseOfMarker(c, rank.Name(i))
			phaseOf[key] = phase
		}
		if phase != trace.UnknownPhase {
			markers[ev.Thread[i]] = append(markers[ev.Thread[i]], marker{ev.TS[i], ev.End(i), int(phase)})
		}
	}
	return newInnermost(markers)
}

// setPhases gives every device event the phase in which it was launched, and
// every operation the one in which it was issued.
func setPhases(rank *trace.Rank, phases *innermost, launches *trace.Launches) {
	if len(phases.byThread) == 0 {
		return
	}
	ev := &rank.Events
	for i := range ev.Len() {
		if !ev.Category[i].OnDevice() {
			continue
		}
		if l, ok := launches.Of(ev.Correlation[i]); ok {
			ev.Phase[i] = trace.Phase(phases.at(ev.Thread[l], ev.TS[l]))
		}
	}
	for i := range rank.Operations {
		op := &rank.Operations[i]
		if op.Thread < 0 {
			continue
		}
		phase := trace.Phase(phases.at(trace.ThreadID(op.Thread), op.Issued))
		for _, e := range op.Events {
			ev.Phase[e] = phase
		}
	}
}
