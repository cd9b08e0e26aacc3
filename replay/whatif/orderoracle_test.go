package whatif

import (
	"fmt"
	"testing"

	"mixdown/replay/schedule"
	"mixdown/replay/sim"
)

// line is what an order costs, written down apart from package sim: what each task
// takes by its place, and messages that go one at a time each way.
type line struct {
	order             schedule.Order
	task              func(place int, a schedule.Action) int64
	occupied, latency func(from, to int) int64
	local             bool
}

// step is what the order takes: places run their actions one after the other, as soon
// as what each needs has come.
func (l *line) step() int64 {
	type what struct {
		forward bool
		stage   int32
		mb      int32
	}
	needs := map[what]int{} // place that needs it
	for place, row := range l.order {
		for _, a := range row {
			switch a.Kind {
			case schedule.Forward:
				needs[what{true, a.Stage - 1, a.Microbatch}] = place
			case schedule.Backward, schedule.Input:
				needs[what{false, a.Stage + 1, a.Microbatch}] = place
			}
		}
	}
	last := int32(l.order.Stages() - 1)
	there := map[what]int64{}
	free := map[[2]int]int64{} // links
	clock := make([]int64, len(l.order))
	next := make([]int, len(l.order))
	for again := true; again; {
		again = false
		for place, row := range l.order {
			for next[place] < len(row) {
				a := row[next[place]]
				forward := a.Kind == schedule.Forward
				if a.Kind.Computes() {
					need := what{forward, a.Stage + 1, a.Microbatch}
					if forward {
						need.stage = a.Stage - 1
					}
					wanted := forward && a.Stage > 0 || (a.Kind == schedule.Backward || a.Kind == schedule.Input) && a.Stage < last && !l.local
					came, ok := there[need]
					if wanted && !ok {
						break
					}
					if wanted {
						clock[place] = max(clock[place], came)
					}
					clock[place] += l.task(place, a)
					made := what{forward, a.Stage, a.Microbatch}
					to, ok := needs[made]
					if ok && a.Kind != schedule.Weight {
						there[made] = clock[place]
						if link := [2]int{place, to}; to != place {
							free[link] = max(free[link], clock[place]) + l.occupied(place, to)
							there[made] = free[link] + l.latency(place, to)
						}
					}
				}
				next[place]++
				again = true
			}
		}
	}
	var step int64
	for _, c := range clock {
		step = max(step, c)
	}
	return step
}

// TestOrderOracle: the answers of orders are those of a simulation that was written
// apart, from the formulas that help gives.
func TestOrderOracle(t *testing.T) {
	const places, mbs = 3, 6
	const occupied, latency = 400, 64
	m := recorded(t, places, mbs, nil, func(s int) float64 { return float64(2 + 2*s) })
	m.ChangeHops(func(int, int, bool, sim.Hop) sim.Hop { return sim.Hop{Occupied: occupied, Latency: latency} })
	for _, spec := range []string{"gpipe", "1f1b", "breadth-first:loops=2", "zb-h1", "depth-first:loops=2", "eager-1f1b"} {
		parsed, err := schedule.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		order, err := m.Fill(parsed).Order()
		if err != nil {
			t.Fatal(err)
		}
		// A stage of the recorded three, or half of one.
		parts := int32(order.Stages() / places)
		whole := func(a schedule.Action) int64 {
			size := int64(2+2*(a.Stage/parts)) / int64(parts)
			switch a.Kind {
			case schedule.Forward:
				return forward * size
			case schedule.Backward:
				return backward * size
			case schedule.Input:
				if a.Stage == 0 {
					return 0
				}
				return backward / 2 * size
			}
			if a.Stage == 0 { // nobody needs the gradient of its input
				return backward * size
			}
			return backward / 2 * size
		}
		base := func() *line {
			return &line{
				order: order, task: func(_ int, a schedule.Action) int64 { return whole(a) },
				occupied: func(int, int) int64 { return occupied }, latency: func(int, int) int64 { return latency },
			}
		}
		of := orderOf(m)
		of.Order, of.Name = order, spec
		for text, change := range map[string]func(*line){
			"latency=+0s":   func(*line) {},
			"latency=+36ns": func(l *line) { l.latency = func(int, int) int64 { return latency + 36 } },
			"latency=-100ns": func(l *line) {
				l.latency, l.occupied = func(int, int) int64 { return 0 }, func(int, int) int64 { return occupied - 36 }
			},
			"bandwidth=x4": func(l *line) { l.occupied = func(int, int) int64 { return occupied / 4 } },
			"free=send": func(l *line) {
				l.latency, l.occupied = func(int, int) int64 { return 0 }, func(int, int) int64 { return 0 }
			},
			"link=1-2:0.1x": func(l *line) {
				l.occupied = func(from, to int) int64 {
					if from+to == 3 && from > 0 && to > 0 {
						return 10 * occupied
					}
					return occupied
				}
			},
			"reshard=4:3": func(l *line) { l.occupied = func(int, int) int64 { return occupied / 4 * 2 } }, // 1/4 (1 + 3/3)
			"slow=1:1.5":  slowPlace(1, 3, 2),
			"slow=2:0.5":  slowPlace(2, 1, 2),
			"lost=0:3":    slowPlace(0, 3, 2),
			"recompute=0.5:0.5": func(l *line) {
				l.task = func(_ int, a schedule.Action) int64 {
					f := a
					f.Kind = schedule.Forward
					again := whole(f) / 2
					switch {
					case a.Kind == schedule.Backward, a.Kind == schedule.Input && a.Stage > 0, a.Kind == schedule.Weight && a.Stage == 0:
						return whole(a) + again
					}
					return whole(a)
				}
			},
			// Of two slices, a quarter of a task being attention: 3/8 + 1/4 (2i + 1)/4.
			"slices=2:0.25": func(l *line) {
				cut := make(schedule.Order, len(l.order))
				for place, row := range l.order {
					for _, a := range row {
						for i := range int32(2) {
							part := a
							if a.Kind != schedule.Forward {
								i = 1 - i
							}
							part.Microbatch = 2*a.Microbatch + i
							cut[place] = append(cut[place], part)
						}
					}
				}
				l.order = cut
				l.task = func(_ int, a schedule.Action) int64 {
					return whole(a)*3/8 + whole(a)*int64(2*(a.Microbatch%2)+1)/16
				}
				l.occupied = func(int, int) int64 { return occupied / 2 }
			},
			"local-learning=0.5": func(l *line) {
				rows := make(schedule.Order, len(l.order))
				for place := range l.order {
					for mb := range int32(mbs) {
						for k := range parts {
							at := int32(place) + k*places
							rows[place] = append(rows[place], schedule.Action{Stage: at, Microbatch: mb, Kind: schedule.Forward}, schedule.Action{Stage: at, Microbatch: mb, Kind: schedule.Backward})
						}
					}
				}
				l.order, l.local = rows, true
				l.task = func(_ int, a schedule.Action) int64 { return whole(a) * 3 / 2 }
			},
		} {
			want := base()
			change(want)
			a, err := suppose(t, of, text)
			if err != nil {
				t.Errorf("%s, %s: %v", spec, text, err)
				continue
			}
			if got := a.Run.Step; got != want.step() {
				t.Errorf("%s, %s takes %d, want %d", spec, text, got, want.step())
			}
			if q, err := Parse(fmt.Sprintf("%s,%s", text, "bandwidth=x1,slow=0:1")); err == nil {
				if same, err := q.Order(of); err != nil || same.Run.Step != a.Run.Step {
					t.Errorf("%s, %s: with what changes nothing it takes %v (%v)", spec, text, same, err)
				}
			}
		}
	}
}

// slowPlace makes tasks of a place take n/d times as long.
func slowPlace(slow int, n, d int64) func(*line) {
	return func(l *line) {
		task := l.task
		l.task = func(place int, a schedule.Action) int64 {
			if place == slow {
				return task(place, a) * n / d
			}
			return task(place, a)
		}
	}
}
