package measure

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/replay/launch"
	"mixdown/replay/tune"
	"mixdown/replay/tune/algorithms"
)

// ErrVariant: settings that a backend does not have.
var ErrVariant = errors.New("unknown variant")

// Variants knows which settings of the backends can be measured here.
type Variants struct {
	// openMPI lists the algorithms of the installed Open MPI with their numbers, by
	// collective; nil when it can't be asked.
	openMPI map[string]map[string]string
	// persistent says of each MPI whose module has persistent collectives for which
	// operations and element types.
	persistent map[string]launch.Switch
}

// Persistent is the variant that makes a request for each operation once and starts it
// whenever it comes again.
const Persistent = "persistent"

// persistentSwitch asks a module of an MPI for it.
const persistentSwitch = "MIXDOWN_MPI_PERSISTENT"

// FindVariants asks the installed libraries for the algorithms that they have, and
// their modules for what they can.
func FindVariants(ctx context.Context, w launch.Worker) Variants {
	v := findAlgorithms(ctx)
	v.persistent = map[string]launch.Switch{}
	for _, name := range []string{"openmpi", "mpich"} {
		b, err := w.Check(ctx, name)
		if err != nil {
			continue
		}
		for _, s := range b.Switches {
			if s.Name == persistentSwitch {
				v.persistent[name] = s
			}
		}
	}
	return v
}

func findAlgorithms(ctx context.Context) Variants {
	out, err := exec.CommandContext(ctx, "ompi_info", "--param", "coll", "tuned", "--level", "9", "--parsable").Output()
	if err != nil {
		return Variants{}
	}
	return Variants{openMPI: parseOMPIInfo(out)}
}

// parseOMPIInfo reads lines as
// "mca:coll:tuned:param:coll_tuned_allreduce_algorithm:enumerator:value:4:ring".
func parseOMPIInfo(out []byte) map[string]map[string]string {
	m := map[string]map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		f := strings.Split(lines.Text(), ":")
		if len(f) != 9 || f[5] != "enumerator" || f[6] != "value" {
			continue
		}
		name, ok := strings.CutSuffix(strings.TrimPrefix(f[4], "coll_tuned_"), "_algorithm")
		if !ok || f[7] == "0" {
			continue
		}
		if m[name] == nil {
			m[name] = map[string]string{}
		}
		m[name][f[8]] = f[7]
	}
	return m
}

// Expand replaces "openmpi:*" by one contender for each algorithm that one of the
// operations has, and refuses variants that can't be measured.
func (v Variants) Expand(list []tune.Contender, ops []comm.Op) ([]tune.Contender, error) {
	var out []tune.Contender
	for _, c := range list {
		switch {
		case c.Variant == "":
			out = append(out, c)
			continue
		case inPlan(c):
			if c.Variant == "*" {
				return nil, fmt.Errorf("%w: %s: name the settings, for example nccl:ring/ll or ucx:tcp", ErrVariant, c)
			}
			out = append(out, c) // the worker says what it does not know
			continue
		case c.Backend != "openmpi" && c.Backend != "mpich":
			return nil, fmt.Errorf("%w: %s: only openmpi, mpich, ucx, nccl and rccl have variants that can be measured", ErrVariant, c)
		case c.Variant == Persistent:
			s, ok := v.persistent[c.Backend]
			if !ok {
				return nil, fmt.Errorf("%w: %s: this library has no persistent collectives", ErrVariant, c)
			}
			if !slices.ContainsFunc(ops, func(op comm.Op) bool { return slices.Contains(s.Operations, string(op)) }) {
				return nil, fmt.Errorf("%w: %s: of these operations it does none so: it does %s", ErrVariant, c, strings.Join(s.Operations, ", "))
			}
			out = append(out, c)
			continue
		case c.Backend == "openmpi" && v.openMPI == nil:
			return nil, fmt.Errorf("%w: %s: ompi_info is not there to say which algorithms this Open MPI has", ErrVariant, c)
		}
		var names []string
		for _, op := range ops {
			names = append(names, v.algorithms(c.Backend, op)...)
		}
		slices.Sort(names)
		names = slices.Compact(names)
		if c.Variant == "*" {
			for _, name := range names {
				out = append(out, tune.Contender{Backend: c.Backend, Variant: name})
			}
			continue
		}
		if !slices.Contains(names, c.Variant) {
			return nil, fmt.Errorf("%w: %s: for these operations it has %s", ErrVariant, c, strings.Join(names, ", "))
		}
		out = append(out, c)
	}
	slices.SortStableFunc(out, tune.CompareContenders)
	return slices.Compact(out), nil
}

// algorithms lists what a backend has for an operation.
func (v Variants) algorithms(backend string, op comm.Op) []string {
	var names []string
	switch backend {
	case "openmpi":
		if c, ok := algorithms.OpenMPI(op); ok {
			for name := range v.openMPI[c.Name] {
				names = append(names, name)
			}
		}
	case "mpich":
		if c, ok := algorithms.MPICH(op); ok {
			names = slices.Clone(c.Algorithms)
		}
	}
	slices.Sort(names)
	return names
}

// Applies says whether a contender can be measured on a point: its variant is an
// algorithm of the operation, for so many ranks.
func (v Variants) Applies(c tune.Contender, p Point) bool {
	if c.Backend == "ucx" {
		return true // how messages travel, whatever they are for
	}
	if inPlan(c) {
		_, known := algorithms.NCCLFunction(p.Op)
		return c.Variant == "" || known
	}
	if c.Variant == "" {
		return true
	}
	if c.Variant == Persistent {
		s := v.persistent[c.Backend]
		return slices.Contains(s.Operations, string(p.Op)) && !slices.Contains(s.Except, string(p.DType))
	}
	if m, ok := algorithms.MPICH(p.Op); c.Backend == "mpich" && ok {
		// MPICH takes another in silence where there are fewer elements than ranks.
		return m.Has(c.Variant, p.Ranks) && (!algorithms.NeedsElements(c.Variant) || p.Bytes >= int64(p.Ranks)*p.DType.Size())
	}
	if c.Variant == "two_proc" && p.Ranks != 2 || c.Variant == "neighbor" && p.Ranks%2 != 0 {
		return false
	}
	return slices.Contains(v.algorithms(c.Backend, p.Op), c.Variant)
}

// inPlan says whether settings are a part of the backend's name in a plan: the
// worker makes them, for each communicator.
func inPlan(c tune.Contender) bool {
	return slices.Contains([]string{"nccl", "rccl", "ucx"}, c.Backend)
}

// Settings are the variables of the environment that make a variant, "NAME=VALUE"
// each.
func (v Variants) Settings(c tune.Contender) []string {
	if c.Variant == "" {
		return nil
	}
	if c.Variant == Persistent && (c.Backend == "openmpi" || c.Backend == "mpich") {
		return []string{persistentSwitch + "=1"}
	}
	var env []string
	switch c.Backend {
	case "openmpi":
		env = append(env, "OMPI_MCA_coll_tuned_use_dynamic_rules=1", "OMPI_MCA_coll_tuned_priority=100")
		for _, o := range algorithms.OpenMPICollectives() {
			if number, ok := v.openMPI[o.Name][c.Variant]; ok {
				env = append(env, fmt.Sprintf("OMPI_MCA_coll_tuned_%s_algorithm=%s", o.Name, number))
			}
		}
	case "mpich":
		env = append(env, "MPIR_CVAR_DEVICE_COLLECTIVES=none")
		for _, op := range Ops() {
			if m, ok := algorithms.MPICH(op); ok && slices.Contains(m.Algorithms, c.Variant) {
				env = append(env, fmt.Sprintf("MPIR_CVAR_%s_INTRA_ALGORITHM=%s", strings.ToUpper(m.Name), c.Variant))
			}
		}
	}
	return env
}

// workerWith is the worker with variables set: a script that sets them and
// becomes it.
func workerWith(w launch.Worker, env []string, dir string) (launch.Worker, error) {
	if len(env) == 0 {
		return w, nil
	}
	path, err := filepath.Abs(w.Path)
	if err != nil {
		return w, err
	}
	var b strings.Builder
	b.WriteString("#!/bin/sh\n")
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		fmt.Fprintf(&b, "export %s=%s\n", name, quoted(value))
	}
	fmt.Fprintf(&b, "exec %s \"$@\"\n", quoted(path))
	script := filepath.Join(dir, "worker")
	if err := os.WriteFile(script, []byte(b.String()), 0o755); err != nil {
		return w, err
	}
	return launch.Worker{Path: script, Env: env}, nil
}

// quoted is text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
