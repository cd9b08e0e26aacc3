package exports

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/tune"
)

var (
	// ErrUnknownFormat: no format of that name.
	ErrUnknownFormat = errors.New("unknown format")
	// ErrNothing: the input holds nothing that the format is about.
	ErrNothing = errors.New("nothing to export")
	// ErrInexpressible: the library has no way to say it, or would misread it.
	ErrInexpressible = errors.New("can't be expressed")
)

// Input is what is exported. One of Table, Mix and Plan is set.
type Input struct {
	Table *tune.Table
	Mix   *mix.Mix
	Plan  *planpb.Plan

	Channels int    // NCCL: channels where a variant names none, 0 for none
	Base     []byte // MPICH: the tree to edit, JSON, or the library that has it
	Device   string // where the buffers are, tune.Host or tune.GPU; UCC
	Version  string // of mixdown, for files that name it
}

// File is a file to write.
type File struct {
	Name string
	Data []byte
}

// Output is what is written, and what to do with it.
type Output struct {
	Files    []File
	Apply    []string // commands and variables; FILE stands for the first file
	Proof    []string // how to see that it took effect
	Warnings []error
}

func (o *Output) warn(format string, args ...any) {
	o.Warnings = append(o.Warnings, fmt.Errorf(format, args...))
}

// Format describes a format.
type Format struct {
	Name, About string
	needs       need
	backend     string // whose decisions it has, "" for all
	explicit    bool   // it can't say "the library's own choice"
	write       func(*job) (*Output, error)
}

// need is what a format is made from.
type need int

const (
	decisions need = iota
	plans
	mixes
)

// Formats lists the formats. A schedule's torch-pipeline-csv is not among them: it
// is written by package schedule.
func Formats() []Format {
	return []Format{
		{"nccl-tuner", "configuration of NCCL's example tuner plugin", decisions, "nccl", true, writeNCCLTuner},
		{"nccl-env", "NCCL_ALGO and NCCL_PROTO, without sizes", decisions, "nccl", false, writeNCCLEnv},
		{"openmpi-rules", "dynamic rules of Open MPI 5.0.7 and later", decisions, "openmpi", false, writeOpenMPIRules2},
		{"openmpi-rules-v1", "dynamic rules of all Open MPI", decisions, "openmpi", false, writeOpenMPIRules1},
		{"openmpi-json", "dynamic rules of Open MPI 6 and later", decisions, "openmpi", false, writeOpenMPIJSON},
		{"ucc", "UCC_TL_*_TUNE", decisions, "ucc", true, writeUCC},
		{"mpich", "selection tree of MPICH", decisions, "mpich", false, writeMPICH},
		{"mscclpp", "which operations MSCCL++ leaves to NCCL", decisions, "", false, writeMSCCLPP},
		{"nccl-tests", "commands that measure each decision again", decisions, "", false, writeNCCLTests},
		{"nccl-tests-matrix", "matrix of each uneven all_to_all of a plan, for alltoallv_perf", plans, "", false, writeMatrices},
		{"pytorch-shim", "Python module that routes torch.distributed by a mix", mixes, "", false, writeShim},
		{"deepspeed-comms", "comms_logger block for DeepSpeed's configuration", mixes, "", false, writeDeepSpeed},
		{"param", "basic traces for PARAM's replay, one for each rank of a plan", plans, "", false, writePARAM},
	}
}

// job is an export in progress.
type job struct {
	Input
	list []Decision
	out  *Output
}

// Write exports the input.
func Write(name string, in Input) (*Output, error) {
	list := Formats()
	i := slices.IndexFunc(list, func(f Format) bool { return f.Name == name })
	if i < 0 {
		var names []string
		for _, f := range list {
			names = append(names, f.Name)
		}
		return nil, fmt.Errorf("%w %q: known are %s", ErrUnknownFormat, name, strings.Join(names, ", "))
	}
	f := list[i]
	j := &job{Input: in, out: &Output{}}
	if err := j.prepare(f); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	out, err := f.write(j)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return out, nil
}

// prepare makes the decisions.
func (j *job) prepare(f Format) error {
	if f.needs == plans {
		if j.Plan == nil {
			return fmt.Errorf("%w: it is made from a plan (\"mixdown plan\" writes one)", ErrNothing)
		}
		return nil
	}
	if f.needs == mixes {
		switch {
		case j.Mix != nil:
		case j.Plan != nil:
			m, err := mix.Parse(j.Plan.Mix)
			if err != nil {
				return err
			}
			j.Mix = &m
		default:
			return fmt.Errorf("%w: it is made from a mix: give --mix, or a plan with one", ErrNothing)
		}
		return nil
	}
	switch {
	case j.Table != nil:
		left := map[string]bool{}
		keep := func(c tune.Contender) bool {
			if c.Variant == persistent && (f.backend == "" || c.Backend == f.backend) { // how the application calls, which no file of a library says
				left[c.String()] = true
				return false
			}
			return (f.backend == "" || c.Backend == f.backend) && (c.Variant != "" || !f.explicit)
		}
		var warnings []error
		j.list, warnings = FromTable(j.Table, keep)
		j.out.Warnings = append(j.out.Warnings, warnings...)
		for _, name := range slices.Sorted(maps.Keys(left)) {
			j.out.warn("%s is left out: only an application can call its library so", name)
		}
		j.warnBeyond()
	case j.Mix != nil:
		var err error
		if j.list, err = FromMix(*j.Mix, comm.Ops()); err != nil {
			return err
		}
		if f.backend != "" {
			j.list = of(j.list, f.backend)
		}
	default:
		return fmt.Errorf("%w: it is made from a table of measurements or from a mix", ErrNothing)
	}
	if len(j.list) == 0 {
		what := "decision"
		if f.backend != "" {
			what += " about " + f.backend
		}
		if f.explicit {
			what += " and its settings"
		}
		return fmt.Errorf("%w: there is no %s in the input", ErrNothing, what)
	}
	return nil
}

// persistent is the variant of MPIs with persistent collectives.
const persistent = "persistent"

// warnBeyond says that what was not measured follows the nearest that was.
func (j *job) warnBeyond() {
	low, high := int64(math.MaxInt64), int64(0)
	for _, d := range j.list {
		low, high = min(low, d.Measured[0]), max(high, d.Measured[1])
	}
	if high > 0 {
		j.out.warn("sizes were measured from %d to %d bytes at most: beyond them the nearest winner stays", low, high)
	}
}
