package schedule

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is what an action does.
type Kind uint8

const (
	Forward  Kind = iota // F: forward of one micro-batch through one stage
	Backward             // B: full backward, both gradients
	Input                // I: the part of a backward that makes the input's gradient
	Weight               // W: the part of a backward that makes the weights' gradient

	SendForward  // SEND_F: the stage's output goes to the next stage
	RecvForward  // RECV_F: the stage's input comes from the stage before
	SendBackward // SEND_B: the input's gradient goes to the stage before
	RecvBackward // RECV_B: the output's gradient comes from the next stage

	Unshard        // UNSHARD: gather the stage's weights
	Reshard        // RESHARD: drop the gathered weights
	ReduceGradient // REDUCE_GRAD: reduce the stage's gradient over data-parallel ranks

	WaitSendForward    // WAIT_SEND_F: until the stage's output is with the next stage
	WaitSendBackward   // WAIT_SEND_B: until the input's gradient is with the stage before
	WaitReduceGradient // WAIT_REDUCE_GRAD: until the stage's gradient is reduced

	kinds = int(WaitReduceGradient) + 1
)

// kindText is how PyTorch writes each kind.
var kindText = [kinds]string{"F", "B", "I", "W", "SEND_F", "RECV_F", "SEND_B", "RECV_B", "UNSHARD", "RESHARD", "REDUCE_GRAD", "WAIT_SEND_F", "WAIT_SEND_B", "WAIT_REDUCE_GRAD"}

// String is the kind in PyTorch's notation.
func (k Kind) String() string {
	if int(k) < kinds {
		return kindText[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Computes says whether the kind is work that takes a rank's time.
func (k Kind) Computes() bool { return k <= Weight }

// hasMicrobatch says whether actions of the kind name a micro-batch.
func (k Kind) hasMicrobatch() bool {
	return k <= RecvBackward || k == WaitSendForward || k == WaitSendBackward
}

// NoMicrobatch is the micro-batch of actions that concern a stage as a whole.
const NoMicrobatch = -1

// maxIndex bounds stages and micro-batches in text that is read.
const maxIndex = 1<<24 - 1

// Action is one thing that a rank does.
type Action struct {
	Stage      int32
	Microbatch int32 // NoMicrobatch for Unshard, Reshard, ReduceGradient and WaitReduceGradient
	Kind       Kind

	// Overlap marks the forward of a forward-backward pair that a framework
	// runs as one: the action after it is its partner. The pair starts when
	// both can, and both end after the sum of their durations.
	Overlap bool
}

// overlapSuffix ends the text of an overlapped pair, (0F5;7B3)OVERLAP_F_B.
const overlapSuffix = ")OVERLAP_F_B"

// String is the action in PyTorch's notation, for example 0F3 or 2RECV_B0,
// without what it overlaps with.
func (a Action) String() string {
	b := append(strconv.AppendInt(nil, int64(a.Stage), 10), a.Kind.String()...)
	if a.Kind.hasMicrobatch() {
		b = strconv.AppendInt(b, int64(a.Microbatch), 10)
	}
	return string(b)
}

// ParseAction reads one action in PyTorch's notation. BW, the full backward of
// PyTorch 2.5, is read as B; see ReadCSV for what B meant in that version.
func ParseAction(text string) (Action, error) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	stage, err := parseIndex(text[:digits])
	if err != nil {
		return Action{}, fmt.Errorf("action %q: stage: %w", text, err)
	}
	rest := text[digits:]
	name := strings.TrimRight(rest, "0123456789")
	kind, ok := parseKind(name)
	if !ok {
		return Action{}, fmt.Errorf("action %q: unknown kind %q (known: %s)", text, name, strings.Join(kindText[:], " "))
	}
	a := Action{Stage: stage, Kind: kind, Microbatch: NoMicrobatch}
	number := rest[len(name):]
	if !kind.hasMicrobatch() {
		if number != "" {
			return Action{}, fmt.Errorf("action %q: %s takes no micro-batch", text, kind)
		}
		return a, nil
	}
	if a.Microbatch, err = parseIndex(number); err != nil {
		return Action{}, fmt.Errorf("action %q: micro-batch: %w", text, err)
	}
	return a, nil
}

func parseKind(name string) (Kind, bool) {
	if name == "BW" {
		return Backward, true
	}
	for k, text := range kindText {
		if text == name {
			return Kind(k), true
		}
	}
	return 0, false
}

func parseIndex(digits string) (int32, error) {
	if digits == "" {
		return 0, fmt.Errorf("a number is missing (an action looks like 0F3)")
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || n > maxIndex {
		return 0, fmt.Errorf("number too big, at most %d is read", maxIndex)
	}
	return int32(n), nil
}

// parseCell reads what stands in one cell: nothing, an action, or an overlapped
// pair of a forward and a backward.
func parseCell(cell string) ([]Action, error) {
	if cell == "" {
		return nil, nil
	}
	pair, overlapped := strings.CutSuffix(cell, overlapSuffix)
	if !overlapped {
		a, err := ParseAction(cell)
		if err != nil {
			return nil, err
		}
		return []Action{a}, nil
	}
	first, second, ok := strings.Cut(strings.TrimPrefix(pair, "("), ";")
	if !ok || !strings.HasPrefix(pair, "(") {
		return nil, fmt.Errorf("overlapped pair %q: expected the form (0F5;7B3)OVERLAP_F_B", cell)
	}
	forward, err := ParseAction(first)
	if err != nil {
		return nil, fmt.Errorf("overlapped pair %q: %w", cell, err)
	}
	backward, err := ParseAction(second)
	if err != nil {
		return nil, fmt.Errorf("overlapped pair %q: %w", cell, err)
	}
	if forward.Kind != Forward || (backward.Kind != Backward && backward.Kind != Input) {
		return nil, fmt.Errorf("overlapped pair %q: expected a forward and then a backward", cell)
	}
	forward.Overlap = true
	return []Action{forward, backward}, nil
}

// short constructors for the generators

func forward(stage, microbatch int) Action  { return act(stage, Forward, microbatch) }
func backward(stage, microbatch int) Action { return act(stage, Backward, microbatch) }
func input(stage, microbatch int) Action    { return act(stage, Input, microbatch) }
func weight(stage, microbatch int) Action   { return act(stage, Weight, microbatch) }

func act(stage int, kind Kind, microbatch int) Action {
	return Action{Stage: int32(stage), Kind: kind, Microbatch: int32(microbatch)}
}
