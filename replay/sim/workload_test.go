package sim

import (
	"errors"
	"math/rand/v2"
	"testing"

	"mixdown/replay/plan/planpb"
)

// randomWorkload is a workload that runs to its end: operations are dealt out
// in one order, and tasks depend on earlier ones only.
func randomWorkload(rng *rand.Rand) *planpb.Workload {
	ranks := 2 + rng.IntN(4)
	w := &planpb.Workload{WorldSize: int32(ranks)}
	all := make([]int32, ranks)
	for r := range ranks {
		all[r] = int32(r)
		p := &planpb.Program{Rank: int32(r), StartOffsetNs: rng.Int64N(50)}
		for range 1 + rng.IntN(3) {
			p.Streams = append(p.Streams, &planpb.Stream{})
		}
		w.Programs = append(w.Programs, p)
	}
	w.Groups = []*planpb.Group{{Ranks: all}, {Ranks: all[:2]}}
	add := func(r int, t *planpb.Task) {
		p := w.Programs[r]
		t.Id, t.Stream = int32(len(p.Tasks)), int32(rng.IntN(len(p.Streams)))
		for range rng.IntN(3) {
			if t.Id > 0 {
				t.Deps = append(t.Deps, int32(rng.IntN(int(t.Id))))
			}
		}
		p.Tasks = append(p.Tasks, t)
	}
	seq := [2]int64{}
	match := int64(0)
	for range 30 {
		switch rng.IntN(4) {
		case 0, 1:
			add(rng.IntN(ranks), &planpb.Task{Kind: &planpb.Task_Span{Span: &planpb.Span{DurationNs: rng.Int64N(100)}}})
		case 2:
			g := rng.IntN(2)
			for _, r := range w.Groups[g].Ranks {
				add(int(r), &planpb.Task{Kind: &planpb.Task_Communication{Communication: &planpb.Communication{Group: int32(g), Seq: seq[g], Op: planpb.Op_OP_ALL_REDUCE, InCount: int64(g) + 1}}})
			}
			seq[g]++
		case 3:
			match++
			from := rng.IntN(ranks)
			to := (from + 1) % ranks
			for _, r := range []int{from, to} {
				peer := from + to - r
				add(r, &planpb.Task{Kind: &planpb.Task_Communication{Communication: &planpb.Communication{
					Op: planpb.Op_OP_BATCH, Transfers: []*planpb.Transfer{
						{Send: r == from, Peer: int32(peer), Count: 5, Match: match},
						{Send: r != from, Peer: int32(peer), Count: 9, Match: match},
					},
				}}})
			}
		}
	}
	return w
}

// slowly plays a workload by going over all tasks until nothing changes any
// more: an oracle that shares nothing with the player.
func slowly(w *planpb.Workload, cost CommunicationCost) int64 {
	type side struct{ r, i int }
	end := map[side]int64{}
	var step int64
	start := func(s side) (int64, bool) {
		p := w.Programs[s.r]
		t := p.Tasks[s.i]
		at := p.StartOffsetNs
		for i := range s.i {
			needed := p.Tasks[i].Stream == t.Stream
			for _, d := range t.Deps {
				needed = needed || int(d) == i
			}
			if !needed {
				continue
			}
			e, ok := end[side{s.r, i}]
			if !ok {
				return 0, false
			}
			at = max(at, e)
		}
		return at, true
	}
	for again := true; again; {
		again = false
		for r, p := range w.Programs {
			for i, t := range p.Tasks {
				me := side{r, i}
				if _, ok := end[me]; ok {
					continue
				}
				at, ok := start(me)
				if !ok {
					continue
				}
				c := t.GetCommunication()
				if c == nil {
					at += t.GetSpan().GetDurationNs()
				} else if len(c.Transfers) == 0 {
					for _, other := range w.Groups[c.Group].Ranks {
						for j, u := range w.Programs[other].Tasks {
							if d := u.GetCommunication(); d != nil && len(d.Transfers) == 0 && d.Group == c.Group && d.Seq == c.Seq {
								s, there := start(side{int(other), j})
								at, ok = max(at, s), ok && there
							}
						}
					}
					at += cost(Meeting{Communication: c, Ranks: len(w.Groups[c.Group].Ranks)})
				} else {
					peer := int(c.Transfers[0].Peer)
					for j, u := range w.Programs[peer].Tasks {
						if d := u.GetCommunication(); d != nil && len(d.Transfers) > 0 && d.Transfers[0].Match == c.Transfers[0].Match {
							s, there := start(side{peer, j})
							at, ok = max(at, s), ok && there
						}
					}
					at += 9 // the longer of both transfers
				}
				if ok {
					end[me], again = at, true
					step = max(step, at)
				}
			}
		}
	}
	return step
}

func TestPlayWorkload(t *testing.T) {
	cost := func(m Meeting) int64 {
		if m.Transfer {
			return m.Count
		}
		return m.Communication.InCount * int64(max(m.Ranks/2, 1))
	}
	for seed := range uint64(300) {
		w := randomWorkload(rand.New(rand.NewPCG(seed, 7)))
		run, err := PlayWorkload(w, cost)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if want := slowly(w, cost); run.Step != want {
			t.Fatalf("seed %d: step %d, want %d", seed, run.Step, want)
		}
	}
}

func TestPlayWorkloadStuck(t *testing.T) {
	w := randomWorkload(rand.New(rand.NewPCG(1, 1)))
	w.Programs[0].Tasks = append(w.Programs[0].Tasks, &planpb.Task{Id: int32(len(w.Programs[0].Tasks)), Kind: &planpb.Task_Communication{
		Communication: &planpb.Communication{Seq: 99, Op: planpb.Op_OP_BARRIER},
	}})
	if _, err := PlayWorkload(w, func(Meeting) int64 { return 0 }); !errors.Is(err, ErrPlan) {
		t.Errorf("a member that never comes: %v", err)
	}
}

func BenchmarkPlayWorkload(b *testing.B) {
	// A million tasks: 100 ranks, 5,000 times a span and an all_reduce.
	w := &planpb.Workload{Groups: []*planpb.Group{{}}}
	for r := range int32(100) {
		w.Groups[0].Ranks = append(w.Groups[0].Ranks, r)
		p := &planpb.Program{Rank: r, Streams: []*planpb.Stream{{}, {}}}
		for i := range int32(5000) {
			p.Tasks = append(p.Tasks,
				&planpb.Task{Id: 2 * i, Kind: &planpb.Task_Span{Span: &planpb.Span{DurationNs: 10}}},
				&planpb.Task{Id: 2*i + 1, Stream: 1, Deps: []int32{2 * i}, Kind: &planpb.Task_Communication{Communication: &planpb.Communication{Seq: int64(i)}}})
		}
		w.Programs = append(w.Programs, p)
	}
	for b.Loop() {
		if _, err := PlayWorkload(w, func(Meeting) int64 { return 7 }); err != nil {
			b.Fatal(err)
		}
	}
}

// Times that no trace should have, from a dataset that someone else made, are played
// without a panic.
func TestImpossibleTimes(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 8))
		w := randomWorkload(rng)
		for _, p := range w.Programs {
			for _, task := range p.Tasks {
				if task.GetCommunication() != nil {
					task.Origin = &planpb.Origin{Rank: p.Rank, Ts: rng.Int64N(2000) - 1000, Dur: rng.Int64N(2000) - 1000, Issued: rng.Int64N(2000)}
				}
			}
		}
		g := NewGraph(w)
		// Such times may contradict each other: then tasks wait for each other.
		if _, err := g.Fidelity(); err != nil && !errors.Is(err, ErrPlan) {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
