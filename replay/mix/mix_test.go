package mix_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"mixdown/ingest/comm"
	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
)

func TestFirstMatchingRuleDecides(t *testing.T) {
	m, err := mix.Parse("all_to_all=openmpi, all_reduce@>=1MiB@group:dp=nccl,all_reduce@4KiB-1MiB=mpich,*@<100=tiny,*=gloo")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		op    comm.Op
		bytes int64
		group string
		want  string
	}{
		{comm.AllToAll, 1, "", "openmpi"},
		{comm.AllReduce, 1 << 20, "dp", "nccl"},
		{comm.AllReduce, 1 << 20, "tp", "mpich"},
		{comm.AllReduce, 1<<20 + 1, "tp", "gloo"},
		{comm.AllReduce, 4096, "dp", "mpich"},
		{comm.AllReduce, 4095, "dp", "gloo"},
		{comm.Broadcast, 99, "", "tiny"},
		{comm.Broadcast, 100, "", "gloo"},
		{comm.AllToAllV, 1 << 30, "", "gloo"},
	} {
		if got, _ := m.Backend(c.op, c.bytes, c.group, ""); got != c.want {
			t.Errorf("%s of %d bytes in %q: %s, want %s", c.op, c.bytes, c.group, got, c.want)
		}
	}
}

func TestBadMixesSayWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "empty",
		"gloo":                    "OPERATION=BACKEND",
		"*=":                      "OPERATION=BACKEND",
		"=gloo":                   "OPERATION=BACKEND",
		"alltoall=gloo":           "known are all_reduce",
		"*=gloo,,*=mpich":         "empty",
		"all_reduce@=gloo":        "nothing follows @",
		"all_reduce@big=gloo":     "expected a size",
		"all_reduce@>=1XB=gloo":   `size "1XB"`,
		"all_reduce@>=-1=gloo":    "size",
		"*@>=2KiB@<1KiB=gloo":     "no size can match",
		"*@group:=gloo":           "needs a name",
		"*@>=99999999999GiB=gloo": "size",
		"auto":                    "tuning table",
	} {
		_, err := mix.Parse(text)
		if !errors.Is(err, mix.ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("all_to_all=openmpi,all_reduce@>=1MiB=nccl,*=gloo")
	f.Add("*@group:a@b=c")
	f.Add("traced")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := mix.Parse(text)
		if err != nil && !errors.Is(err, mix.ErrSyntax) {
			t.Errorf("%q: %v is no ErrSyntax", text, err)
		}
		for _, r := range m.Rules {
			if err == nil && (r.Backend == "" || r.Min > r.Max) {
				t.Errorf("%q: accepted the impossible rule %+v", text, r)
			}
		}
	})
}

func TestTracedBackend(t *testing.T) {
	for _, c := range []struct {
		info   string
		onHost bool
		want   string
	}{
		{"nccl", false, "nccl"}, {"gloo", true, "gloo"}, {"cpu:gloo,cuda:nccl", false, "nccl"},
		{"cpu:gloo,cuda:nccl", true, "gloo"}, {"mtia:hccl,cpu:gloo", false, "hccl"}, {"", false, "unknown"}, {"undefined", true, "unknown"},
	} {
		if got := mix.TracedBackend(c.info, c.onHost); got != c.want {
			t.Errorf("%q on host %v: %s, want %s", c.info, c.onHost, got, c.want)
		}
	}
}

func TestDecideUsesWhatAllMembersKnow(t *testing.T) {
	w := write(t, [][]int32{{0, 1}}, "g0", "g0").Workload
	for r, n := range []int64{10, 1000} { // an all_to_allv is small for one member and large for the other
		c := w.Programs[r].Tasks[0].GetCommunication()
		c.Op, c.InCount, c.OutCount, c.Backend = planpb.Op_OP_ALL_TO_ALLV, n, 5, ""
	}
	m, err := mix.Parse("all_to_allv@>=1KiB=openmpi,*=gloo")
	if err != nil {
		t.Fatal(err)
	}
	p, err := mix.Decide(w, m, "x", "gloo")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(mix.Backends(p)); got != "[openmpi]" {
		t.Errorf("backends %s, want openmpi on both members", got)
	}
	if w.Programs[0].Tasks[0].GetCommunication().Backend != "" {
		t.Error("the workload itself was changed")
	}
	m, _ = mix.Parse("broadcast=gloo")
	if _, err := mix.Decide(w, m, "x", "gloo"); !errors.Is(err, mix.ErrNoRule) {
		t.Errorf("no rule matches: %v, want ErrNoRule", err)
	}
}

// TestChannelsBelongToTheLibrary: those of the trace's NCCL say nothing about
// others, nor about NCCL with settings.
func TestChannelsBelongToTheLibrary(t *testing.T) {
	for backend, want := range map[string]int32{"nccl": 24, "rccl": 24, "gloo": 0, "nccl:ring/ch=8": 0} {
		m, err := mix.Parse("*=" + backend)
		if err != nil {
			t.Fatal(err)
		}
		w := held(write(t, both, "g0", "g0"), 24, 0).Workload
		for _, m := range []mix.Mix{m, {Text: mix.Traced}} {
			p, err := mix.Decide(w, m, "x", backend)
			if err != nil {
				t.Fatal(err)
			}
			if got := communication(p, 0, 0).Channels; got != want {
				t.Errorf("%s by %q: %d channels, want %d", backend, m.Text, got, want)
			}
		}
	}
}
