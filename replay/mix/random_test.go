package mix_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
)

// randomPlan makes ranks that take part in the same operations, in one order or
// not quite, with or without damage.
func randomPlan(t testing.TB, rng *rand.Rand, backends []string, streams int, disorder, damage bool) (*planpb.Plan, []string) {
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
	suffix := func() string {
		return "/" + fmt.Sprint(rng.IntN(streams))
	}
	for range rng.IntN(6) {
		on := "@" + backends[rng.IntN(len(backends))]
		a := rng.IntN(n)
		b := (a + 1 + rng.IntN(n-1)) % n
		switch kind := rng.IntN(6); {
		case kind < 3 && len(groups) > 0:
			g := rng.IntN(len(groups))
			for _, r := range groups[g] {
				words[r] = append(words[r], fmt.Sprintf("g%d%s%s", g, on, suffix()))
			}
		case kind == 3:
			words[a] = append(words[a], fmt.Sprintf("x%d%s%s", b, on, suffix()))
			words[b] = append(words[b], fmt.Sprintf("x%d%s%s", a, on, suffix()))
		default:
			words[a] = append(words[a], fmt.Sprintf("s%d%s%s", b, on, suffix()))
			words[b] = append(words[b], fmt.Sprintf("r%d%s%s", a, on, suffix()))
		}
		if rng.IntN(3) == 0 {
			r := rng.IntN(n)
			words[r] = append(words[r], []string{"c", "h", "w"}[rng.IntN(3)]+suffix())
		}
	}
	texts := make([]string, n)
	for r := range words {
		if disorder && rng.IntN(3) == 0 {
			rng.Shuffle(len(words[r]), func(i, j int) { words[r][i], words[r][j] = words[r][j], words[r][i] })
		}
		if damage && len(words[r]) > 0 && rng.IntN(8) == 0 {
			i := rng.IntN(len(words[r]))
			words[r] = slices.Delete(words[r], i, i+1)
		}
		for i := range words[r] {
			for i > 0 && rng.IntN(3) == 0 {
				words[r][i] += fmt.Sprint("<", rng.IntN(i))
			}
		}
		texts[r] = strings.Join(words[r], " ")
	}
	return write(t, groups, texts...), texts
}

// TestCheckAgreesWithExecution: a plan is accepted exactly when it ends.
func TestCheckAgreesWithExecution(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	ended, hung, circles := 0, 0, 0
	for i := range 16000 {
		p, texts := randomPlan(t, rng, []string{"gloo", "openmpi"}, 1+i%3, true, i%4 == 0)
		err := mix.Check(p)
		if runs(p, rng) {
			ended++
			if err != nil {
				t.Fatalf("%v ends but is refused: %v", texts, err)
			}
			continue
		}
		hung++
		if err == nil {
			t.Fatalf("%v hangs but is accepted", texts)
		}
		if errors.Is(err, mix.ErrDeadlock) {
			circles++
		}
	}
	t.Logf("%d plans end, %d hang, %d of them in a circle", ended, hung, circles)
	if ended < 3000 || circles < 1500 || hung-circles < 200 {
		t.Errorf("%d plans ended, %d hung, %d of them in a circle: too few of one kind to show anything", ended, hung, circles)
	}
}

// TestOneOrderIsAccepted: where all ranks run their operations in one order, on
// one stream, nothing can hang, whatever the groups and libraries.
func TestOneOrderIsAccepted(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		p, texts := randomPlan(t, rng, []string{"gloo", "openmpi", "nccl"}, 1, false, false)
		if err := mix.Check(p); err != nil {
			t.Fatalf("%v: %v", texts, err)
		}
	}
}

// TestNoAcceptedPlanHangsOnGPUs: kernels that nothing orders may run one after
// the other in any order, different on each rank. No accepted plan hangs in any
// of them. The check is careful, so some that can't hang are refused too.
func TestNoAcceptedPlanHangsOnGPUs(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	accepted, refused, careful := 0, 0, 0
	for i := range 6000 {
		p, texts := randomPlan(t, rng, [][]string{{"nccl"}, {"nccl", "gloo"}}[i%2], 1+i%3, i%5 == 0, false)
		err := mix.Check(p)
		hangs := canHang(p)
		switch {
		case err == nil && hangs:
			t.Fatalf("%q in groups %v can hang but is accepted", texts, p.Workload.Groups)
		case err == nil:
			accepted++
		case hangs:
			refused++
		default:
			careful++
		}
	}
	t.Logf("%d accepted, %d refused, %d refused though they can't hang", accepted, refused, careful)
	if accepted < 1000 || refused < 500 {
		t.Errorf("%d plans accepted, %d refused: too few of one kind to show anything", accepted, refused)
	}
}
