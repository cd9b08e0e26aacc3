package mix_test

import (
	"errors"
	"strings"
	"testing"

	"mixdown/ingest/comm"
	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
)

func TestBackendsWithSettings(t *testing.T) {
	for text, want := range map[string]string{
		"*=nccl:ring/ll128":               "nccl:ring/ll128",
		"all_reduce@>=1MiB=nccl:ch=8":     "nccl:ch=8",
		"all_reduce=nccl:tree/ch=4,*=ucc": "nccl:tree/ch=4",
		"*=rccl:tree/ch=4":                "rccl:tree/ch=4",
		"*=ucx:tcp":                       "ucx:tcp",
		"*=ucx:sysv/cma/rndv=65536":       "ucx:sysv/cma/rndv=65536",
		"all_reduce@>=1KiB=ucx:rndv=1":    "ucx:rndv=1",
	} {
		m, err := mix.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, ok := m.Backend(comm.AllReduce, 1<<30, "", ""); !ok || got != want {
			t.Errorf("%s: all_reduce goes to %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"*=nccl:fast":         "neither an algorithm",
		"*=nccl:":             "neither an algorithm",
		"*=nccl:ring/tree":    "two algorithms",
		"*=nccl:ll/simple":    "two protocols",
		"*=nccl:ch=0":         "neither an algorithm",
		"*=nccl:ch=4/ch=8":    "two numbers of channels",
		"*=gloo:ring":         "only nccl, rccl and ucx have settings",
		"all_reduce=:ch=8":    "only nccl, rccl and ucx have settings",
		"*=nccl:ring/ch=99":   "ch=1 to ch=64",
		"*=ucx:tls":           `"tls" is neither a transport`,
		"*=ucx:tcp/rndv=":     `"rndv=" is neither a transport`,
		"*=ucx:tcp/rndv=-1":   "nor rndv=BYTES",
		"*=ucx:rndv=1/rndv=2": "two sizes of rndv",
	} {
		if _, err := mix.Parse(text); !errors.Is(err, mix.ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Channels that settings say count where kernels compete for SMs (W1).
func TestSettingsBoundSMs(t *testing.T) {
	for backend, want := range map[string]bool{"nccl": true, "nccl:ring/ch=4": false, "nccl:ch=64": true} {
		p := write(t, [][]int32{{0, 1}, {0, 2}}, "g0@nccl/0 g1@nccl/1", "g0@nccl/0", "g1@nccl/1")
		for _, program := range p.Workload.Programs {
			for _, task := range program.Tasks {
				task.GetCommunication().Backend = backend
			}
		}
		caps := mix.Known()
		caps.SMs = 132
		if r := mix.Inspect(p, mix.CheckOptions{Capabilities: &caps}); r.Has("W1") != want || len(r.Errors) > 0 {
			t.Errorf("%s: %+v, want a warning of SMs: %v", backend, r, want)
		}
	}
}

// A backend with settings is checked as its library is.
func TestSettingsShareTheLibrary(t *testing.T) {
	if got := mix.Library("nccl:ring/ll128"); got != "nccl" {
		t.Errorf("library %q", got)
	}
	make := func(backend string) *planpb.Plan {
		p := write(t, [][]int32{{0, 1}}, "g0@"+backend+"/0 g0@"+backend+"/0", "g0@"+backend+"/0 g0@"+backend+"/0")
		for _, program := range p.Workload.Programs {
			for _, task := range program.Tasks {
				c := task.GetCommunication()
				c.Backend += ":tree"
				c.ReduceOp = planpb.ReduceOp_REDUCE_OP_BXOR
				c.Dtype = planpb.DType_DTYPE_INT32
			}
		}
		return p
	}
	if err := mix.Check(make("nccl")); !errors.Is(err, mix.ErrInvalidPlan) || !strings.Contains(err.Error(), "bxor") {
		t.Errorf("nccl:tree reduces with bxor: %v", err)
	}
}
