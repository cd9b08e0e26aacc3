package launch

import (
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"mixdown/replay/environment"
	"mixdown/replay/plan/planpb"
)

// placed is an experiment whose ranks are where they are about to run, not where
// the traces were made: on this machine, with the environment that the launcher
// hands to all workers. Of workers that others start, onThisHost is false and nothing is
// known. It shares tasks with exp, which is not changed.
func placed(exp *planpb.Experiment, launcher string, onThisHost bool) *planpb.Experiment {
	var here *planpb.Place
	if onThisHost {
		here = &planpb.Place{Environment: environment.Hash(environmentFor(launcher))}
		here.Host, _ = os.Hostname()
	}
	copied := shallow(exp)
	copied.Plans = nil
	for _, p := range exp.Plans {
		copied.Plans = append(copied.Plans, placedPlan(p, here))
	}
	return copied
}

// placedPlan is a plan with all ranks at one place, nil for an unknown one.
func placedPlan(p *planpb.Plan, here *planpb.Place) *planpb.Plan {
	copied := shallow(p)
	if p.GetWorkload() == nil {
		return copied
	}
	copied.Workload = shallow(p.Workload)
	copied.Workload.Programs = nil
	for _, program := range p.Workload.Programs {
		program = shallow(program)
		program.Place = here
		copied.Workload.Programs = append(copied.Workload.Programs, program)
	}
	return copied
}

// shallow is a copy that shares what it holds.
func shallow[M proto.Message](m M) M {
	from := m.ProtoReflect()
	to := from.New()
	from.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		to.Set(field, v)
		return true
	})
	return to.Interface().(M)
}

// environmentFor is the environment of workers that are started in some way, with
// what the user set counting most.
func environmentFor(launcher string) []string {
	return slices.Concat(launchers[launcher].env, os.Environ())
}

// oneSession is a library beside the worker that keeps MPICH's ranks in one session;
// native/session says why.
const oneSession = "mixdown-one-session.so"

// inOneSession adds to the environment of MPICH's launcher what keeps its ranks in one
// session. Without the library they wait by sleeping, and all takes a little longer.
func (w Worker) inOneSession(env []string) []string {
	library := filepath.Join(filepath.Dir(w.Path), oneSession)
	if _, err := os.Stat(library); err != nil {
		return env
	}
	if others := os.Getenv("LD_PRELOAD"); others != "" {
		library += ":" + others
	}
	return append(env, "LD_PRELOAD="+library)
}

// environmentOf is that of an experiment's first rank, "" when it is not known.
func environmentOf(exp *planpb.Experiment) string {
	for _, program := range exp.GetPlans()[0].GetWorkload().GetPrograms() {
		return program.GetPlace().GetEnvironment()
	}
	return ""
}
