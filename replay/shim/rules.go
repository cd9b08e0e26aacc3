package shim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"mixdown/ingest/comm"
	"mixdown/replay/mix"
)

// ErrInapplicable: a mix can't be applied through torch.distributed.
var ErrInapplicable = errors.New("can't be applied by PyTorch")

// Options of what is written.
type Options struct {
	Version string // of mixdown, for the head
	// Backends gives PyTorch's name of a backend of the mix where it isn't the
	// known one; a backend with settings (nccl:ring/ll) needs an entry, to say that
	// the settings are left to the library.
	Backends map[string]string
}

// torchNames are PyTorch's names of backends that have another one here. Other
// names are PyTorch's own, or a plugin's.
var torchNames = map[string]string{"openmpi": "mpi", "mpich": "mpi", "rccl": "nccl"}

// rule is a rule with PyTorch's name of the backend.
type rule struct {
	mix.Rule
	backend string
}

// limit says whether the rule asks for a size.
func (r rule) sized() bool { return r.Min > 0 || r.most() < math.MaxInt64 }

// most is the upper end of the rule's sizes; of rules made without one it is 0.
func (r rule) most() int64 {
	if r.Max == 0 {
		return math.MaxInt64
	}
	return r.Max
}

// rulesOf checks a mix and names its backends.
func rulesOf(m mix.Mix, opts Options) ([]rule, error) {
	if len(m.Rules) == 0 {
		return nil, fmt.Errorf("%w: the mix %q has no rules", ErrInapplicable, m.Text)
	}
	var list []rule
	stands := map[string]string{} // the mix's name by PyTorch's
	for i, r := range m.Rules {
		name, err := backendOf(r, opts)
		if err != nil {
			return nil, fmt.Errorf("%w: rule %d, %s: %w", ErrInapplicable, i+1, quote(r.String()), err)
		}
		if name == "mpi" {
			if have, ok := stands[name]; ok && have != r.Backend {
				return nil, fmt.Errorf("%w: rule %d, %s: %s is used before, and a PyTorch is built with one MPI library",
					ErrInapplicable, i+1, quote(r.String()), have)
			}
		}
		stands[name] = r.Backend
		list = append(list, rule{r, name})
	}
	if err := checkMessages(list); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInapplicable, err)
	}
	return list, nil
}

func backendOf(r mix.Rule, opts Options) (string, error) {
	for _, text := range []string{r.Backend, r.Group, string(r.Op)} {
		if !utf8.ValidString(text) {
			return "", errors.New("a name is not UTF-8")
		}
	}
	if r.Op == comm.GatherV || r.Op == comm.ScatterV {
		return "", fmt.Errorf("torch.distributed has no %s", r.Op)
	}
	if name, ok := opts.Backends[r.Backend]; ok {
		return strings.ToLower(name), nil
	}
	library, settings, _ := strings.Cut(r.Backend, ":")
	if settings != "" {
		return "", fmt.Errorf("settings (%s) can't be chosen for a process group: write them for the library (for NCCL with --to nccl-tuner), and name %s alone here",
			settings, library)
	}
	if name, ok := torchNames[r.Backend]; ok {
		return name, nil
	}
	return strings.ToLower(r.Backend), nil
}

// checkMessages: a message must leave and arrive on one backend, so sends and
// receives need the same rules.
func checkMessages(list []rule) error {
	of := func(op comm.Op) []rule {
		var same []rule
		for _, r := range list {
			if r.Op == "" || r.Op == op {
				r.Op, r.Backend = "", r.backend
				same = append(same, r)
			}
			if r.Op == "" && r.Group == "" && !r.sized() {
				break // it takes all that is left
			}
		}
		return same
	}
	if !slices.Equal(of(comm.Send), of(comm.Recv)) {
		return errors.New("send and recv have different rules: a message would leave on one backend and be awaited on another; give both the same, in the same order")
	}
	return nil
}
