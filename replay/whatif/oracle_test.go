package whatif

import (
	"math/rand/v2"
	"slices"
	"testing"

	"mixdown/replay/fold"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
)

// A job is a small host-only one, in the way in which a person would write it down: each
// rank computes, issues all_reduces that run beside, one at a time, and waits for them.
// All ranks issue the same ones in the same order.
type job struct {
	count []int64   // elements of each all_reduce
	takes []int64   // ns, of each
	ranks [][]doing // by rank
	late  []int64   // ns after which each rank starts
}

// doing is one of: compute so long (ns > 0), issue an all_reduce (issue), wait for one.
type doing struct {
	ns          int64
	issue, wait int // -1: none
}

func compute(ns int64) doing { return doing{ns, -1, -1} }
func issue(op int) doing     { return doing{0, op, -1} }
func wait(op int) doing      { return doing{0, -1, op} }

// random makes a job of 2 to 4 ranks and up to 10 things that each does. The ranks have
// different times, but do the same.
func random(r *rand.Rand) *job {
	j := &job{ranks: make([][]doing, 2+r.IntN(3))}
	var open []int
	add := func(each func() doing) {
		for rank := range j.ranks {
			j.ranks[rank] = append(j.ranks[rank], each())
		}
	}
	for range j.ranks {
		j.late = append(j.late, r.Int64N(50))
	}
	add(func() doing { return compute(1 + r.Int64N(300)) })
	for range 2 + r.IntN(8) {
		switch n := len(j.count); {
		case r.IntN(3) == 0:
			j.count, j.takes = append(j.count, []int64{1000, 2000, 3000}[r.IntN(3)]), append(j.takes, 1+r.Int64N(200))
			open = append(open, n)
			add(func() doing { return issue(n) })
		case r.IntN(2) == 0 && len(open) > 0:
			k := r.IntN(len(open))
			add(func() doing { return wait(open[k]) })
			open = slices.Delete(open, k, k+1)
		}
		add(func() doing { return compute(1 + r.Int64N(300)) })
	}
	return j
}

// step is what it takes: an all_reduce begins when the last rank has issued it and
// all have ended the one before, and ends at once on all of them.
func (j *job) step() int64 {
	end := make([]int64, len(j.count))
	for op := range end {
		for rank := range j.ranks {
			end[op] = max(end[op], j.reaches(rank, op, end[:op]))
		}
		if op > 0 {
			end[op] = max(end[op], end[op-1])
		}
		end[op] += j.takes[op]
	}
	var last int64
	for rank := range j.ranks {
		last = max(last, j.reaches(rank, len(end), end))
	}
	for _, e := range end {
		last = max(last, e)
	}
	return last
}

// reaches is when a rank issues an operation, or ends, with the ends of those before.
func (j *job) reaches(rank, op int, end []int64) int64 {
	at := j.late[rank]
	for _, d := range j.ranks[rank] {
		switch {
		case d.issue == op:
			return at
		case d.wait >= 0 && d.wait < len(end):
			at = max(at, end[d.wait])
		}
		at += d.ns
	}
	return at
}

func (j *job) clone() *job {
	c := *j
	c.takes, c.late = slices.Clone(j.takes), slices.Clone(j.late)
	c.ranks = make([][]doing, len(j.ranks))
	for rank := range j.ranks {
		c.ranks[rank] = slices.Clone(j.ranks[rank])
	}
	return &c
}

// workload is the job as the planner would write it.
func (j *job) workload() *planpb.Workload {
	w := &planpb.Workload{WorldSize: int32(len(j.ranks)), Groups: []*planpb.Group{{Name: "0", Description: "dp"}}}
	for rank, list := range j.ranks {
		w.Groups[0].Ranks = append(w.Groups[0].Ranks, int32(rank))
		var tasks []*planpb.Task
		at := map[int]int32{}
		last := int32(-1)
		var pending []int32
		for _, d := range list {
			switch {
			case d.issue >= 0:
				at[d.issue] = int32(len(tasks))
				tasks = append(tasks, reduction(int64(d.issue), j.count[d.issue], last))
			case d.wait >= 0:
				pending = append(pending, at[d.wait])
			default:
				last = int32(len(tasks))
				tasks = append(tasks, work(0, d.ns, pending...))
				pending = nil
			}
		}
		p := programOf(int32(rank), tasks...)
		p.StartOffsetNs = j.late[rank]
		w.Programs = append(w.Programs, p)
	}
	return w
}

const latencyShare = 0.25 // of what an all_reduce takes, without regard to its size

func (j *job) asStep() Step {
	takes := slices.Clone(j.takes)
	return Step{
		Workload: j.workload(),
		Costs: func(*planpb.Workload) sim.CommunicationCost {
			return func(m sim.Meeting) int64 { return takes[m.Communication.Seq] }
		},
		Fixed: func(sim.Meeting) (float64, bool) { return latencyShare, true },
		Ratio: func(_ sim.Meeting, _, times int) (float64, bool) { return float64(times), true },
	}
}

// each changes what every all_reduce takes.
func (j *job) each(do func(op int, ns float64) float64) {
	for op := range j.takes {
		j.takes[op] = max(int64(do(op, float64(j.takes[op]))+1e-6), 0)
	}
}

// supposed are what-ifs, and what they mean by their formulas.
var supposed = map[string]func(*job){
	"free=*":                func(j *job) { j.each(func(int, float64) float64 { return 0 }) },
	"free=all_reduce@>=8KB": func(j *job) { j.large(func(float64) float64 { return 0 }) },
	"bandwidth=x4":          func(j *job) { j.each(func(_ int, t float64) float64 { return t/4 + t*3/16 }) }, // t/4 + (t - t/4)/4
	"bandwidth=all_reduce@>=8KB:0.5x": func(j *job) {
		j.large(func(t float64) float64 { return t/4 + t*3/2 })
	},
	"latency=+17ns":              func(j *job) { j.each(func(_ int, t float64) float64 { return t + 17 }) },
	"latency=-50ns":              func(j *job) { j.each(func(_ int, t float64) float64 { return t - 50 }) },
	"link=0-1:0.5x":              func(j *job) { j.each(func(_ int, t float64) float64 { return t/4 + t*3/2 }) },
	"bandwidth=x4,latency=+17ns": func(j *job) { j.each(func(_ int, t float64) float64 { return t/4 + t*3/16 + 17 }) },
	"latency=-50ns,bandwidth=x2,free=all_reduce@>=8KB": func(j *job) {
		j.each(func(op int, t float64) float64 {
			if j.count[op]*4 >= 8000 {
				return 0
			}
			return t/4 + t*3/8 - 50
		})
	},
	// 4 bytes an element, 100 and 50 ns for 1000 bytes.
	"compress=2x:10GB/s:20GB/s": func(j *job) {
		j.each(func(op int, t float64) float64 { return t/4 + t*3/8 + float64(4*j.count[op])*(0.1+0.05) })
	},
	"compress=2x:10GB/s:20GB/s,bandwidth=x2": func(j *job) {
		j.each(func(op int, t float64) float64 { return t/4 + t*3/16 + float64(4*j.count[op])*(0.1+0.05) })
	},
	"slow=0:2.5": func(j *job) {
		j.compute(func(ns int64) int64 { return int64(2.5 * float64(ns)) }, 0)
	},
	"slow=1:0.5,slow=1:3": func(j *job) { j.compute(func(ns int64) int64 { return 3 * (ns / 2) }, 1) },
	"straggler=heal": func(j *job) {
		var late []int64
		for i := range j.ranks[0] {
			var list []int64
			for rank := range j.ranks {
				list = append(list, j.ranks[rank][i].ns)
			}
			for rank := range j.ranks {
				j.ranks[rank][i].ns = min(j.ranks[rank][i].ns, lowerMedian(list))
			}
		}
		late = append(late, j.late...)
		for rank := range j.late {
			j.late[rank] = min(j.late[rank], lowerMedian(late))
		}
	},
	"overlap=full": func(j *job) {
		for rank := range j.ranks {
			j.ranks[rank] = slices.DeleteFunc(j.ranks[rank], func(d doing) bool { return d.wait >= 0 })
		}
	},
	"overlap=none": func(j *job) {
		for rank, list := range j.ranks {
			j.ranks[rank] = nil
			for _, d := range list {
				j.ranks[rank] = append(j.ranks[rank], d)
				if d.issue >= 0 {
					j.ranks[rank] = append(j.ranks[rank], wait(d.issue))
				}
			}
		}
	},
	"world-size=24": func(j *job) {
		j.each(func(_ int, t float64) float64 { return t * 24 / float64(len(j.ranks)) })
	},
}

// large changes what all_reduces of 8 KB and more take.
func (j *job) large(do func(float64) float64) {
	j.each(func(op int, t float64) float64 {
		if j.count[op]*4 >= 8000 {
			return do(t)
		}
		return t
	})
}

// compute changes what a rank computes.
func (j *job) compute(do func(ns int64) int64, rank int) {
	for i := range j.ranks[rank] {
		j.ranks[rank][i].ns = do(j.ranks[rank][i].ns)
	}
}

func lowerMedian(list []int64) int64 {
	list = slices.Clone(list)
	slices.Sort(list)
	return list[(len(list)-1)/2]
}

// TestOracle: the answers are those of a simulation that was written apart, from the
// formulas that help gives.
func TestOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	answered := map[string]int{}
	for range 300 {
		j := random(r)
		if got, err := ask(t, j.asStep(), "slow=0:1"); err != nil || got != j.step() {
			t.Fatalf("%v takes %d (%v), want %d", j, got, err, j.step())
		}
		for text, change := range supposed {
			got, err := ask(t, j.asStep(), text)
			if err != nil {
				continue // nothing in it is concerned
			}
			answered[text]++
			changed := j.clone()
			change(changed)
			if want := changed.step(); got != want {
				t.Fatalf("%s: %v takes %d, want %d", text, j, got, want)
			}
		}
	}
	for text := range supposed {
		if answered[text] < 50 {
			t.Errorf("%s was answered %d times of 300", text, answered[text])
		}
	}
}

// TestFoldedAlike: where all ranks do the same in the same time, one of them says what
// all say, whatever is supposed.
func TestFoldedAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		j := random(r)
		for rank := range j.ranks {
			j.ranks[rank], j.late[rank] = j.ranks[0], j.late[0]
		}
		for ranks := 1; ranks <= len(j.ranks); ranks++ {
			for text := range supposed {
				if q, err := Parse(text); err != nil || slices.ContainsFunc(q.Kinds(), func(k Kind) bool { return k.AllRanks }) {
					continue
				}
				whole := j.asStep()
				want, err := ask(t, whole, text)
				f, err2 := fold.Fold(whole.Workload, ranks)
				if err2 != nil {
					t.Fatal(err2)
				}
				small := whole
				small.Workload, small.Sizes, small.Late = f.Workload, f.Size, f.Late
				small.Costs = func(w *planpb.Workload) sim.CommunicationCost { return f.Cost(whole.Costs(w)) }
				got, err2 := ask(t, small, text)
				if got != want || (err == nil) != (err2 == nil) {
					t.Fatalf("%s: %d of %d ranks take %d (%v), all %d (%v)", text, ranks, len(j.ranks), got, err2, want, err)
				}
			}
		}
	}
}
