// The deadlock check against execution on a GPU that runs one kernel at a time:
// plans that it accepts end there, of those that it refuses for what they share a
// GPU (E4) some hang.
package native_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
)

// randomWorkload is a few operations that all ranks take part in in one order, but
// on streams that each rank chooses, with a dependency here and there.
func randomWorkload(rng *rand.Rand, size int) *planpb.Workload {
	const streams = 3
	b := newBuilder(size, streams, "")
	groups := []int{0}
	for range 2 {
		var members []int
		for _, r := range rng.Perm(size) {
			if rng.IntN(3) > 0 {
				members = append(members, r)
			}
		}
		if len(members) > 1 {
			groups = append(groups, b.group(members...))
		}
	}
	for range 2 + rng.IntN(5) {
		// It is made on stream 0, then its tasks move.
		first := make([]int, size)
		for r := range size {
			first[r] = len(b.w.Programs[r].Tasks)
		}
		b.backend = []string{"nccl", "nccl", "gloo"}[rng.IntN(3)]
		switch from := rng.IntN(size); rng.IntN(4) {
		case 0:
			b.sendRecv(0, from, (from+1+rng.IntN(size-1))%size, f32, 64, 0)
		case 1:
			b.ring(groups[rng.IntN(len(groups))], f32, 64, 0)
		default:
			b.collective(opAR, f32, plus, groups[rng.IntN(len(groups))], 0, 64, 0)
		}
		for r, p := range b.w.Programs {
			for _, task := range p.Tasks[first[r]:] {
				task.Stream = int32(rng.IntN(streams))
				for task.Id > 0 && rng.IntN(2) == 0 {
					task.Deps = append(task.Deps, int32(rng.IntN(int(task.Id))))
				}
			}
		}
	}
	return b.w
}

// sorted makes random plans until there are so many that the check accepts, and so
// many that it refuses by E4 alone.
func sorted(t *testing.T, rng *rand.Rand, size, accepted, refused int) (good, bad []*planpb.Workload) {
	for range 100_000 {
		if len(good) == accepted && len(bad) == refused {
			return good, bad
		}
		w := randomWorkload(rng, size)
		report := mix.Inspect(&planpb.Plan{Workload: w}, mix.CheckOptions{})
		switch {
		case len(report.Errors) == 0 && len(good) < accepted:
			good = append(good, w)
		case len(report.Errors) == 1 && report.Errors[0].Code == "E4" && len(bad) < refused:
			bad = append(bad, w)
		}
	}
	t.Fatalf("only %d plans are accepted and %d refused by E4", len(good), len(bad))
	return nil, nil
}

// oneKernel is a GPU that runs one kernel at a time, in an order that the kernels
// that are ready draw lots for.
func oneKernel(t *testing.T, seed uint64, jitter time.Duration) []string {
	return gpu(t, onCUDA, "MIXDOWN_FAKE_SLOTS=1", fmt.Sprint("MIXDOWN_FAKE_SEED=", seed), fmt.Sprint("MIXDOWN_FAKE_JITTER_US=", jitter.Microseconds()))
}

func TestAcceptedPlansEnd(t *testing.T) {
	need(t, filepath.Dir(worker(t)), "gloo")
	rng := rand.New(rand.NewPCG(5, 6))
	for _, size := range []int{2, 3, 4} {
		t.Run(fmt.Sprint(size, " ranks"), func(t *testing.T) {
			plans, _ := sorted(t, rng, size, 60, 0)
			e := onGPU(onCUDA, plans...)
			e.Settings.Warmup, e.Settings.Iterations = 0, 3
			start(t, e, launch{env: oneKernel(t, uint64(size), 500*time.Microsecond)}).done(t, e)
			t.Logf("%d plans ended %d times each", len(plans), e.Settings.Iterations+1)
		})
	}
}

// patience is for how long no task may end until a run counts as hung.
const patience = 2 * time.Second

func TestRefusedPlansHang(t *testing.T) {
	need(t, filepath.Dir(worker(t)), "gloo")
	rng := rand.New(rand.NewPCG(7, 8))
	hung, ended := 0, 0
	for _, size := range []int{2, 3} {
		_, plans := sorted(t, rng, size, 0, 16)
		t.Run(fmt.Sprint(size, " ranks"), func(t *testing.T) {
			// All at once: most of the time goes to seeing that nothing happens.
			jobs, over := make([]*job, len(plans)), make([]chan struct{}, len(plans))
			for i, w := range plans {
				e := onGPU(onCUDA, w)
				e.Settings.Warmup, e.Settings.Iterations, e.Settings.Verify = 0, 30, false
				jobs[i], over[i] = start(t, e, launch{env: oneKernel(t, uint64(i), 2*time.Millisecond)}), make(chan struct{})
				go func() {
					jobs[i].wait()
					close(over[i])
				}()
			}
			for i, stuck := range stuck(t, jobs, over) {
				j := jobs[i]
				if stuck {
					j.stop(t)
					<-over[i]
					hung++
				} else {
					ended++
				}
				for r, code := range j.codes {
					if want := map[bool]int{true: 3, false: 0}[stuck]; code != want {
						t.Errorf("plan %d: worker %d ended with %d, want %d:\n%s%s", i, r, code, want, j.messages(t), j.out.String())
					}
				}
			}
		})
	}
	t.Logf("of %d plans that are refused for sharing a GPU %d hung", hung+ended, hung)
	if hung < 5 {
		t.Errorf("only %d of %d hung: the emulated GPU shows nothing", hung, hung+ended)
	}
}

// stuck waits until each job is over, or no task of it ends any more, which it is then.
func stuck(t *testing.T, jobs []*job, over []chan struct{}) []bool {
	type sign struct {
		of   uint64
		last time.Time
	}
	signs, found := make([]sign, len(jobs)), make([]bool, len(jobs))
	for i := range signs {
		signs[i].last = time.Now()
	}
	for open := len(jobs); open > 0; time.Sleep(20 * time.Millisecond) {
		open = 0
		for i, j := range jobs {
			select {
			case <-over[i]:
				continue
			default:
			}
			if found[i] {
				continue
			}
			open++
			var now uint64
			for r := range j.size {
				s := j.slot(t, r)
				now += s.ended + uint64(s.state)<<32
			}
			if now != signs[i].of {
				signs[i] = sign{now, time.Now()}
			}
			found[i] = time.Since(signs[i].last) > patience
		}
	}
	return found
}
