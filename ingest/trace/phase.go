package trace

// Phase is the part of a training step that work belongs to.
type Phase uint8

// The phases. UnknownPhase: nothing in the trace says.
const (
	UnknownPhase Phase = iota
	Forward
	Backward
	Optimizer
	OtherPhase // known to be none of the three: data loading, logging
)

var phaseNames = [...]string{"", "forward", "backward", "optimizer", "other"}

// String is the phase as tables show it, "" when unknown.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return ""
}
