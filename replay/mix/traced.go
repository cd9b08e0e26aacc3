package mix

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNoSubstitute: the traced backend can't run and no substitute was named.
var ErrNoSubstitute = errors.New("no substitute for the traced backend")

// UnknownBackend is what TracedBackend calls a backend that the trace does not name.
const UnknownBackend = "unknown"

// TracedBackend is the backend that a trace's distributedInfo names for the
// device that communicated: "nccl", or one of "cpu:gloo,cuda:nccl". It is
// "unknown" when the trace does not say.
func TracedBackend(info string, onHost bool) string {
	name := strings.ToLower(strings.TrimSpace(info))
	if strings.Contains(name, ":") {
		for part := range strings.SplitSeq(name, ",") {
			device, backend, _ := strings.Cut(part, ":")
			name = backend
			if (device == "cpu") == onHost {
				break
			}
		}
	}
	if name == "" || name == "undefined" {
		return UnknownBackend
	}
	return name
}

// Map substitutes backends of the trace by others that can run here.
type Map map[string]string

// ParseMap reads rules "nccl=gloo"; * stands for every traced backend.
func ParseMap(rules []string) (Map, error) {
	m := Map{}
	for _, rule := range rules {
		for part := range strings.SplitSeq(rule, ",") {
			from, to, ok := strings.Cut(strings.TrimSpace(part), "=")
			if !ok || from == "" || to == "" {
				return nil, fmt.Errorf("%w: --map %q: expected TRACED=BACKEND, for example nccl=gloo", ErrSyntax, rule)
			}
			m[from] = to
		}
	}
	return m, nil
}

// Substitute is what runs in place of a traced backend: itself when it can run
// and no rule replaces it.
func (m Map) Substitute(traced string, canRun []string) (string, error) {
	if to, ok := m[traced]; ok {
		return to, nil
	}
	if to, ok := m["*"]; ok {
		return to, nil
	}
	if slices.Contains(canRun, traced) {
		return traced, nil
	}
	return "", fmt.Errorf("%w: the traced run used %s, which can't run here: choose what stands in for it, for example --map %s=gloo",
		ErrNoSubstitute, traced, traced)
}
