package mix_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
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

// collectives builds a plan in which each rank runs the listed operations, one
// after the other on one stream. "g0@gloo" is the next collective of group 0 on
// gloo; "s1", "r1" are a send to and a receive from rank 1, "x1" both at once.
func collectives(groups [][]int32, ranks ...string) *planpb.Plan {
	w := &planpb.Workload{WorldSize: int32(len(ranks))}
	for i, g := range groups {
		w.Groups = append(w.Groups, &planpb.Group{Name: fmt.Sprint(i), Ranks: g})
	}
	type pair struct{ from, to int32 }
	for r, text := range ranks {
		p := &planpb.Program{Rank: int32(r), Streams: []*planpb.Stream{{Name: "host"}}}
		next := map[int32]int64{}
		sent, received := map[pair]int64{}, map[pair]int64{}
		for i, word := range strings.Fields(text) {
			c := &planpb.Communication{Op: planpb.Op_OP_ALL_REDUCE, Dtype: planpb.DType_DTYPE_FLOAT32, Backend: "gloo"}
			what, backend, ok := strings.Cut(word, "@")
			if ok {
				c.Backend = backend
			}
			n := int32(what[1] - '0')
			send := func() {
				k := pair{int32(r), n}
				sent[k]++
				c.Transfers = append(c.Transfers, &planpb.Transfer{Send: true, Peer: n, Match: sent[k]})
			}
			recv := func() {
				k := pair{n, int32(r)}
				received[k]++
				c.Transfers = append(c.Transfers, &planpb.Transfer{Peer: n, Match: received[k]})
			}
			switch what[0] {
			case 'g':
				c.Group, c.Seq = n, next[n]
				next[n]++
			case 's':
				c.Op = planpb.Op_OP_SEND
				send()
			case 'r':
				c.Op = planpb.Op_OP_RECV
				recv()
			case 'x':
				c.Op = planpb.Op_OP_BATCH
				send()
				recv()
			}
			p.Tasks = append(p.Tasks, &planpb.Task{Id: int32(i), Kind: &planpb.Task_Communication{Communication: c}})
		}
		w.Programs = append(w.Programs, p)
	}
	return &planpb.Plan{Name: "test", Workload: w}
}

func TestCheck(t *testing.T) {
	both := [][]int32{{0, 1}, {0, 1}}
	ring := [][]int32{{0, 1}, {1, 2}, {2, 0}}
	for _, c := range []struct {
		name string
		plan *planpb.Plan
		want error
		says string
	}{
		{"same order", collectives(both, "g0 g1 g0", "g0 g1 g0"), nil, ""},
		{"two groups in opposite order", collectives(both, "g0 g1", "g1 g0"), mix.ErrDeadlock, `group "1"`},
		{"opposite order on two backends", collectives(both, "g0@gloo g1@openmpi", "g1@openmpi g0@gloo"), mix.ErrDeadlock, "openmpi"},
		{"a ring of three groups, each rank in another order", collectives(ring, "g0 g2", "g1 g0", "g2 g1"), mix.ErrDeadlock, "rank 2"},
		{"a ring of three groups in one order", collectives(ring, "g0 g2", "g0 g1", "g1 g2"), nil, ""},
		{"send before receive on both sides", collectives([][]int32{{0, 1}}, "s1 r1", "s0 r0"), mix.ErrDeadlock, "send"},
		{"one sends first, the other receives first", collectives([][]int32{{0, 1}}, "s1 r1", "r0 s0"), nil, ""},
		{"both at once", collectives([][]int32{{0, 1}}, "x1 x1", "x0 x0"), nil, ""},
		{"a member is missing", collectives([][]int32{{0, 1}}, "g0 g0", "g0"), mix.ErrInvalidPlan, "1 members"},
		{"members on different backends", collectives([][]int32{{0, 1}}, "g0@gloo", "g0@mpich"), mix.ErrInvalidPlan, "mpich"},
		{"a send that nobody receives", collectives([][]int32{{0, 1}}, "s1", ""), mix.ErrInvalidPlan, "never receives"},
		{"ends of a transfer on different backends", collectives([][]int32{{0, 1}}, "s1@gloo", "r0@mpich"), mix.ErrInvalidPlan, "mpich"},
	} {
		err := mix.Check(c.plan)
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		} else if err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q does not mention %q", c.name, err, c.says)
		}
	}
}

// TestCheckAgainstExecution runs random plans on an executor that knows only the
// rules of blocking communication: a plan is accepted exactly when it ends.
func TestCheckAgainstExecution(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	ended, hung := 0, 0
	for range 3000 {
		n := 2 + rng.IntN(3)
		var groups [][]int32
		for range 1 + rng.IntN(3) {
			var g []int32
			for r := range n {
				if rng.IntN(3) > 0 {
					g = append(g, int32(r))
				}
			}
			if len(g) > 1 {
				groups = append(groups, g)
			}
		}
		words := make([][]string, n)
		for range rng.IntN(6) {
			if len(groups) > 0 && rng.IntN(2) == 0 {
				g := rng.IntN(len(groups))
				for _, r := range groups[g] {
					words[r] = append(words[r], fmt.Sprintf("g%d", g))
				}
				continue
			}
			a := rng.IntN(n)
			b := (a + 1 + rng.IntN(n-1)) % n
			words[a] = append(words[a], fmt.Sprintf("s%d", b))
			words[b] = append(words[b], fmt.Sprintf("r%d", a))
		}
		texts := make([]string, n)
		for r := range words {
			if rng.IntN(3) == 0 {
				rng.Shuffle(len(words[r]), func(i, j int) { words[r][i], words[r][j] = words[r][j], words[r][i] })
			}
			texts[r] = strings.Join(words[r], " ")
		}
		if len(groups) == 0 {
			groups = [][]int32{{0, 1}}
		}
		p := collectives(groups, texts...)
		err := mix.Check(p)
		if execute(p) {
			ended++
			if err != nil {
				t.Fatalf("%v ends but is refused: %v", texts, err)
			}
		} else {
			hung++
			if !errors.Is(err, mix.ErrDeadlock) {
				t.Fatalf("%v hangs but check says %v", texts, err)
			}
		}
	}
	if ended < 100 || hung < 100 {
		t.Errorf("%d plans ended and %d hung: too few of one kind to show anything", ended, hung)
	}
}

// execute steps through a plan: an operation ends when every rank that takes
// part in it stands at it. It reports whether all ranks get to their end.
func execute(p *planpb.Plan) bool {
	w := p.Workload
	at := make([]int, len(w.Programs))
	current := func(r int32) *planpb.Communication {
		if at[r] >= len(w.Programs[r].Tasks) {
			return nil
		}
		return w.Programs[r].Tasks[at[r]].GetCommunication()
	}
	for moved := true; moved; {
		moved = false
		for r := range w.Programs {
			c := current(int32(r))
			if c == nil {
				continue
			}
			var parties []int32
			ready := true
			if c.Op == planpb.Op_OP_ALL_REDUCE {
				parties = w.Groups[c.Group].Ranks
				for _, q := range parties {
					o := current(q)
					ready = ready && o != nil && o.Op == c.Op && o.Group == c.Group && o.Seq == c.Seq
				}
			} else {
				peer := c.Transfers[0].Peer
				parties = []int32{int32(r), peer}
				o := current(peer)
				ready = o != nil && len(o.Transfers) == 1 && o.Transfers[0].Peer == int32(r) &&
					o.Transfers[0].Send != c.Transfers[0].Send && o.Transfers[0].Match == c.Transfers[0].Match
			}
			if ready {
				for _, q := range parties {
					at[q]++
				}
				moved = true
			}
		}
	}
	for r := range w.Programs {
		if at[r] < len(w.Programs[r].Tasks) {
			return false
		}
	}
	return true
}

func TestDecideUsesWhatAllMembersKnow(t *testing.T) {
	w := collectives([][]int32{{0, 1}}, "g0", "g0").Workload
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
