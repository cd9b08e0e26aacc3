package pipeline

import (
	"strconv"
	"strings"
)

// maxIndex bounds what is believed to be a stage or a micro-batch: no job has
// more, and a label may hold anything.
const maxIndex = 1 << 14

// labelKind is what a label says the program did.
type labelKind uint8

const (
	computing   labelKind = iota // a task
	sending                      // gives its result to the neighbour
	receiving                    // asks for what a task needs
	waitingSend                  // waits until the neighbour took it
	gradients                    // reduces gradients or gathers weights
)

// action is what one label tells. Index and stage are Unknown where it does not.
type action struct {
	kind       labelKind
	phase      Phase // of the task, or of the one that makes the message
	stage      int
	microbatch int
}

// key is what tells the tasks of a rank apart.
type key struct {
	phase             Phase
	stage, microbatch int
}

func (a action) key() key { return key{a.phase, a.stage, a.microbatch} }

// verbs are the actions of torch.distributed.pipelining; the longer of two that
// begin alike first.
var verbs = []struct {
	text string
	action
	single bool // belongs to a stage, not to a micro-batch
}{
	{"WAIT_REDUCE_GRAD", action{kind: gradients}, true},
	{"REDUCE_GRAD", action{kind: gradients}, true},
	{"UNSHARD", action{kind: gradients}, true},
	{"RESHARD", action{kind: gradients}, true},
	{"WAIT_SEND_F", action{kind: waitingSend, phase: Forward}, false},
	{"WAIT_SEND_B", action{kind: waitingSend, phase: Backward}, false},
	{"SEND_F", action{kind: sending, phase: Forward}, false},
	{"SEND_B", action{kind: sending, phase: Backward}, false},
	{"RECV_F", action{kind: receiving, phase: Forward}, false},
	{"RECV_B", action{kind: receiving, phase: Backward}, false},
	{"BW", action{phase: Backward}, false}, // PyTorch 2.5
	{"F", action{phase: Forward}, false},
	{"B", action{phase: Backward}, false},
	{"I", action{phase: InputGradient}, false},
	{"W", action{phase: WeightGradient}, false},
}

// readLabel reads what the annotations of PyTorch's schedules say. It returns two
// actions for an overlapped pair, none for other names, and odd for one that has
// the form of an action and can't be one.
func readLabel(name string) (actions []action, odd bool) {
	if text, ok := strings.CutPrefix(name, "PP:"); ok {
		return readActions(text)
	}
	phase := Forward
	text, ok := strings.CutPrefix(name, "Forward ")
	if !ok {
		phase = Backward
		if text, ok = strings.CutPrefix(name, "Backward "); !ok {
			return nil, false
		}
	}
	if n, digits, ok := number(text); ok && digits == len(text) {
		return []action{{phase: phase, stage: Unknown, microbatch: n}}, false
	}
	return nil, false
}

func readActions(text string) (actions []action, odd bool) {
	if pair, ok := strings.CutSuffix(text, ")OVERLAP_F_B"); ok && strings.HasPrefix(pair, "(") {
		for _, one := range strings.Split(pair[1:], ";") {
			a, ok := readAction(strings.TrimSpace(one))
			if !ok || a.kind != computing || len(actions) == 2 {
				return nil, true
			}
			actions = append(actions, a)
		}
		return actions, false
	}
	a, ok := readAction(text)
	if !ok {
		return nil, true
	}
	return []action{a}, false
}

// readAction reads one action, for example 2SEND_F1.
func readAction(text string) (action, bool) {
	stage, n, ok := number(text)
	if !ok {
		return action{}, false
	}
	for _, v := range verbs {
		rest, ok := strings.CutPrefix(text[n:], v.text)
		if !ok {
			continue
		}
		a := v.action
		a.stage, a.microbatch = stage, Unknown
		if rest == "" {
			return a, v.single
		}
		mb, digits, ok := number(rest)
		if !ok || digits != len(rest) {
			return action{}, false
		}
		a.microbatch = mb
		return a, true
	}
	return action{}, false
}

// number reads the digits that text begins with, and says how many there are.
func number(text string) (n, digits int, ok bool) {
	for digits < len(text) && text[digits] >= '0' && text[digits] <= '9' {
		digits++
	}
	n, err := strconv.Atoi(text[:digits])
	return n, digits, err == nil && n < maxIndex
}

// instruction is the task that a function of DeepSpeed's pipeline engine, of
// PyTorch's stages or of Megatron's schedules runs, as traces with stacks have
// them, or as a program annotates them. None says which stage or micro-batch.
func instruction(name string) (Phase, bool) {
	if _, function, ok := strings.Cut(name, ": "); ok {
		name = function
	}
	switch name {
	case "_exec_forward_pass", "forward_one_chunk", "forward_step", "forward-compute":
		return Forward, true
	case "_exec_backward_pass", "backward_one_chunk", "backward_step", "backward-compute":
		return Backward, true
	}
	return 0, false
}
