package schedule

import (
	"fmt"
	"slices"
	"testing"
)

// The figures in this file are those of exact simulations and closed forms
// gathered in the project's reference on pipeline schedules. Tests carry the
// name of their row.

// costs is forward, full backward and its weight part, without hops.
func costs(forward, backward, weight int64) Costs {
	return Costs{StageCosts: StageCosts{Forward: Int(forward), Backward: Int(backward), Weight: Int(weight)}}
}

func mustOrder(t testing.TB, name string, s Shape) Order {
	t.Helper()
	o, err := Spec{Name: name, Shape: s}.Order()
	if err != nil {
		t.Fatalf("%s %+v: %v", name, s, err)
	}
	return o
}

func mustEvaluate(t testing.TB, o Order, c Costs) *Timeline {
	t.Helper()
	line, err := Evaluate(o, c)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func evaluateShape(t testing.TB, name string, s Shape, c Costs) *Timeline {
	t.Helper()
	return mustEvaluate(t, mustOrder(t, name, s), c)
}

func wantNumber(t *testing.T, what string, got, want Rational) {
	t.Helper()
	if !got.Equal(want) {
		t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

func wantPeaks(t *testing.T, got []int, want func(rank int) int) {
	t.Helper()
	for r := range got {
		if got[r] != want(r) {
			t.Errorf("peak of rank %d: got %d, want %d (all: %v)", r, got[r], want(r), got)
		}
	}
}

func wantMessages(t *testing.T, line *Timeline, want int) {
	t.Helper()
	if got := line.Messages(); got != want {
		t.Errorf("messages: got %d, want %d", got, want)
	}
}

// grid calls f in a subtest for some p, m and forward:backward.
func grid(t *testing.T, ranks, microbatches []int, f func(t *testing.T, p, m int, tf, tb int64)) {
	for _, p := range ranks {
		for _, m := range microbatches {
			for _, c := range [][2]int64{{1, 1}, {1, 2}, {3, 5}, {2, 1}} {
				t.Run(fmt.Sprintf("p%dm%d-%d:%d", p, m, c[0], c[1]), func(t *testing.T) { f(t, p, m, c[0], c[1]) })
			}
		}
	}
}

func TestFormulaGPipe(t *testing.T) {
	grid(t, []int{1, 2, 4, 7}, []int{1, 3, 4, 8, 13}, func(t *testing.T, p, m int, tf, tb int64) {
		line := evaluateShape(t, "gpipe", Shape{Ranks: p, Microbatches: m}, costs(tf, tb, 0))
		wantNumber(t, "makespan", line.Makespan(), Int(int64(m+p-1)*(tf+tb)))
		wantNumber(t, "bubble", line.Bubble(), Ratio(int64(p-1), int64(m+p-1)))
		wantPeaks(t, line.PeakChunks(), func(int) int { return m })
		wantMessages(t, line, 2*(p-1)*m)
	})
}

func TestFormula1F1B(t *testing.T) {
	grid(t, []int{1, 2, 4, 7}, []int{7, 8, 13, 28}, func(t *testing.T, p, m int, tf, tb int64) {
		line := evaluateShape(t, "1f1b", Shape{Ranks: p, Microbatches: m}, costs(tf, tb, 0))
		wantNumber(t, "makespan", line.Makespan(), Int(int64(m+p-1)*(tf+tb)))
		wantNumber(t, "bubble", line.Bubble(), Ratio(int64(p-1), int64(m+p-1)))
		wantPeaks(t, line.PeakChunks(), func(r int) int { return min(m, p-r) })
		wantMessages(t, line, 2*(p-1)*m)
	})
}

func TestFormulaEager1F1B(t *testing.T) {
	grid(t, []int{1, 2, 4, 7}, []int{7, 8, 13, 28}, func(t *testing.T, p, m int, tf, tb int64) {
		line := evaluateShape(t, "eager-1f1b", Shape{Ranks: p, Microbatches: m}, costs(tf, tb, 0))
		wantNumber(t, "makespan", line.Makespan(), Int(int64(m+p-1)*(tf+tb)))
		wantNumber(t, "bubble", line.Bubble(), Ratio(int64(p-1), int64(m+p-1)))
		wantPeaks(t, line.PeakChunks(), func(r int) int { return min(m, 2*(p-r)-1) })
		wantMessages(t, line, 2*(p-1)*m)
	})
}

func TestFormulaDepthFirst(t *testing.T) {
	for _, v := range []int{2, 3, 4} {
		grid(t, []int{2, 4, 6}, []int{12, 24}, func(t *testing.T, p, m int, tf, tb int64) {
			line := evaluateShape(t, "depth-first", Shape{Ranks: p, Microbatches: m, Loops: v}, costs(tf, tb, 0))
			wantNumber(t, "makespan", line.Makespan(), Int(int64(m*v+p-1)*(tf+tb)))
			wantNumber(t, "bubble", line.Bubble(), Ratio(int64(p-1), int64(m*v+p-1)))
			wantPeaks(t, line.PeakChunks(), func(r int) int { return min(m*v, 2*(p-1-r)+(v-1)*p+1) })
			wantMessages(t, line, 2*(p*v-1)*m)
		})
	}
}

func TestFormulaDepthFirstGroups(t *testing.T) {
	for _, s := range []Shape{
		{Ranks: 2, Microbatches: 5, Loops: 2, Group: 3}, {Ranks: 4, Microbatches: 8, Loops: 2, Group: 8},
		{Ranks: 4, Microbatches: 10, Loops: 3, Group: 5}, {Ranks: 4, Microbatches: 11, Loops: 3, Group: 7},
		{Ranks: 3, Microbatches: 13, Loops: 4, Group: 5}, {Ranks: 4, Microbatches: 20, Loops: 2, Group: 16},
	} {
		p, m, v, g := s.Ranks, s.Microbatches, s.Loops, s.Group
		t.Run(fmt.Sprintf("p%dm%dv%dg%d", p, m, v, g), func(t *testing.T) {
			line := evaluateShape(t, "interleaved", s, costs(1, 2, 0))
			wantNumber(t, "makespan", line.Makespan(), Int(int64(m*v+p-1)*3))
			wantNumber(t, "bubble", line.Bubble(), Ratio(int64(p-1), int64(m*v+p-1)))
			wantPeaks(t, line.PeakChunks(), func(r int) int { return min(m*v, 2*(p-1-r)+(v-1)*g+1) })
			wantMessages(t, line, 2*(p*v-1)*m)
		})
	}
}

func TestFormulaBreadthFirst(t *testing.T) {
	for _, v := range []int{1, 2, 4} {
		for _, order := range []MicrobatchOrder{FIFO, LIFO} {
			grid(t, []int{2, 4, 7}, []int{7, 8, 9, 13}, func(t *testing.T, p, m int, tf, tb int64) {
				line := evaluateShape(t, "breadth-first", Shape{Ranks: p, Microbatches: m, Loops: v, BackwardOrder: order}, costs(tf, tb, 0))
				wantNumber(t, "makespan", line.Makespan(), Int(int64(m*v+p-1)*(tf+tb)))
				wantNumber(t, "bubble", line.Bubble(), Ratio(int64(p-1), int64(m*v+p-1)))
				wantPeaks(t, line.PeakChunks(), func(int) int { return m * v })
				wantMessages(t, line, 2*(p*v-1)*m)
			})
		}
	}
}

func TestFormulaBreadthFirstFewMicrobatches(t *testing.T) {
	for _, v := range []int{1, 2, 4} {
		grid(t, []int{4, 7}, []int{1, 2, 3}, func(t *testing.T, p, m int, tf, tb int64) {
			line := evaluateShape(t, "breadth-first", Shape{Ranks: p, Microbatches: m, Loops: v}, costs(tf, tb, 0))
			passes := (v-1)*p + m + p - 1
			wantNumber(t, "makespan", line.Makespan(), Int(int64(passes)*(tf+tb)))
			wantNumber(t, "bubble", line.Bubble(), Int(1).Sub(Ratio(int64(m*v), int64(passes))))
			wantPeaks(t, line.PeakChunks(), func(int) int { return m * v })
			wantMessages(t, line, 2*(p*v-1)*m)
		})
	}
}

func TestFormulaHybrid(t *testing.T) {
	for _, v := range []int{1, 2, 4} {
		for _, d := range []int{1, 2, 3} {
			grid(t, []int{2, 4}, []int{12, 24}, func(t *testing.T, p, m int, tf, tb int64) {
				line := evaluateShape(t, "hybrid", Shape{Ranks: p, Microbatches: m, Loops: v, Rounds: d}, costs(tf, tb, 0))
				wantNumber(t, "makespan", line.Makespan(), Int(int64(m*v+d*(p-1))*(tf+tb)))
				wantNumber(t, "bubble", line.Bubble(), Ratio(int64(d*(p-1)), int64(m*v+d*(p-1))))
				wantPeaks(t, line.PeakChunks(), func(int) int { return m / d * v })
				wantMessages(t, line, 2*(p*v-1)*m)
			})
		}
	}
}

// zeroBubbleTimes are (forward, input gradient, weight gradient).
var zeroBubbleTimes = [][3]int64{{1, 1, 1}, {2, 3, 1}, {2, 2, 1}, {5, 6, 4}}

func TestFormulaZBH1(t *testing.T) {
	for _, x := range zeroBubbleTimes {
		for _, p := range []int{2, 4, 8} {
			for _, m := range []int{2 * p, 2*p + 3, 3 * p} {
				f, i, w := x[0], x[1], x[2]
				t.Run(fmt.Sprintf("p%dm%d-%v", p, m, x), func(t *testing.T) {
					line := evaluateShape(t, "zb-h1", Shape{Ranks: p, Microbatches: m}, costs(f, i+w, w))
					work := Int(int64(m) * (f + i + w))
					wantNumber(t, "makespan", line.Makespan(), work.Add(Int(int64(p-1)*(f+i-w))))
					wantNumber(t, "bubble", line.Bubble(), Int(1).Sub(work.Quo(line.Makespan())))
					wantPeaks(t, line.PeakChunks(), func(int) int { return p })
					wantMessages(t, line, 2*(p-1)*m)
				})
			}
		}
	}
}

func TestFormulaZBH2(t *testing.T) {
	for _, x := range zeroBubbleTimes {
		for _, p := range []int{2, 4, 8} {
			for _, m := range []int{2 * p, 2*p + 3, 3 * p} {
				f, i, w := x[0], x[1], x[2]
				t.Run(fmt.Sprintf("p%dm%d-%v", p, m, x), func(t *testing.T) {
					line := evaluateShape(t, "zb-h2", Shape{Ranks: p, Microbatches: m}, costs(f, i+w, w))
					work := Int(int64(m) * (f + i + w))
					wantNumber(t, "longest span", line.LongestSpan(), work.Add(Int(int64(p-1)*(f+i-2*w))))
					wantPeaks(t, line.PeakChunks(), func(int) int { return 2*p - 1 })
					wantMessages(t, line, 2*(p-1)*m)
					if x == [3]int64{1, 1, 1} {
						wantNumber(t, "makespan", line.Makespan(), work.Add(Int(int64(p-1))))
						wantNumber(t, "bubble by span", line.BubbleLongestSpan(), Int(0))
					}
				})
			}
		}
	}
}

func TestFormulaZBV(t *testing.T) {
	for _, p := range []int{2, 4, 8} {
		for _, m := range []int{2 * p, 2*p + 3, 3 * p} {
			t.Run(fmt.Sprintf("p%dm%d", p, m), func(t *testing.T) {
				line := evaluateShape(t, "zbv", Shape{Ranks: p, Microbatches: m}, costs(1, 2, 1))
				work := int64(2 * m * 3)
				wantNumber(t, "longest span", line.LongestSpan(), Int(work))
				wantNumber(t, "bubble by span", line.BubbleLongestSpan(), Int(0))
				wantNumber(t, "makespan", line.Makespan(), Int(work+int64(p-1)))
				wantPeaks(t, line.PeakChunks(), func(int) int { return 2 * p })
				wantMessages(t, line, 4*(p-1)*m)
			})
		}
	}
}

func TestFormulaDualPipeV(t *testing.T) {
	for _, p := range []int{2, 4, 8} {
		for _, m := range []int{2 * p, 2*p + 3, 3 * p} {
			t.Run(fmt.Sprintf("p%dm%d", p, m), func(t *testing.T) {
				line := evaluateShape(t, "dualpipev", Shape{Ranks: p, Microbatches: m}, costs(1, 2, 1))
				wantNumber(t, "makespan", line.Makespan(), Int(int64(2*m*3+2*(p-1))))
				if peak := slices.Max(line.PeakChunks()); peak != 2*p+1 {
					t.Errorf("highest peak %d, want %d (all: %v)", peak, 2*p+1, line.PeakChunks())
				}
				wantMessages(t, line, 4*(p-1)*m)
			})
		}
	}
}

func TestFormulaChimera(t *testing.T) {
	for _, p := range []int{4, 6, 8} {
		t.Run(fmt.Sprintf("p%d", p), func(t *testing.T) {
			d := int64(p)
			o := mustOrder(t, "chimera", Shape{Ranks: p, Microbatches: p})
			equal := mustEvaluate(t, o, costs(1, 1, 0))
			wantNumber(t, "bubble 1:1", equal.Bubble(), Ratio(d-2, 2*d+d-2))
			wantNumber(t, "bubble 1:2", mustEvaluate(t, o, costs(1, 2, 0)).Bubble(), Ratio(2*(d-2), 3*d+2*(d-2)))
			// D/2+1 ... D, rising to the middle.
			wantPeaks(t, equal.PeakChunks(), func(r int) int { return p/2 + 1 + min(r, p-1-r) })
		})
	}
}

func TestBitPipe(t *testing.T) {
	equal := map[int]Rational{4: Ratio(1, 9), 6: Ratio(1, 7), 8: Ratio(3, 19)}
	greedy := map[int]Rational{4: Ratio(1, 7), 6: Ratio(2, 11), 8: Ratio(13, 61)}
	for p, want := range equal {
		o := mustOrder(t, "bitpipe", Shape{Ranks: p, Microbatches: p})
		wantNumber(t, fmt.Sprintf("bubble 1:1, p=%d", p), mustEvaluate(t, o, costs(1, 1, 0)).Bubble(), want)
		// The reference's greedy order for 1:2 assumes 1:2.
		o = opposite(p, p, vPath(p), 1, 2)
		wantNumber(t, fmt.Sprintf("bubble 1:2, p=%d", p), mustEvaluate(t, o, costs(1, 2, 0)).Bubble(), greedy[p])
	}
}

// TestLatency checks the closed forms for hops of c.
func TestLatency(t *testing.T) {
	extra := func(t *testing.T, name string, s Shape, tf, tb int64, c Rational) Rational {
		t.Helper()
		with := costs(tf, tb, 0)
		with.Hop = c
		o := mustOrder(t, name, s)
		return mustEvaluate(t, o, with).Makespan().Sub(mustEvaluate(t, o, costs(tf, tb, 0)).Makespan())
	}
	for _, p := range []int{2, 4, 8} {
		for _, m := range []int{2 * p, 4 * p} {
			for _, c := range []Rational{Ratio(1, 10), Ratio(1, 4), Ratio(1, 2)} {
				s := Shape{Ranks: p, Microbatches: m}
				n := func(k int) Rational { return c.Mul(Int(int64(k))) }
				wantNumber(t, "gpipe", extra(t, "gpipe", s, 1, 2, c), n(2*(p-1)))
				wantNumber(t, "eager 1f1b", extra(t, "eager-1f1b", s, 1, 2, c), n(2*(p-1)))
				wantNumber(t, "1f1b", extra(t, "1f1b", s, 1, 2, c), n(2*((p-1)*m/p+p-2)))
				for _, v := range []int{2, 4} {
					s.Loops = v
					wantNumber(t, "depth-first", extra(t, "depth-first", s, 1, 2, c), n(2*(p*v-1)))
				}
			}
		}
	}
}

func TestLatencyBreadthFirst(t *testing.T) {
	larger := func(a, b Rational) Rational {
		if a.Cmp(b) > 0 {
			return a
		}
		return b
	}
	for _, p := range []int{2, 4, 8} {
		for _, m := range []int{1, p - 1, p, p + 1, 2 * p, 4 * p} {
			for _, v := range []int{1, 2, 4} {
				for _, c := range []Rational{Int(0), Ratio(1, 4), Ratio(1, 2), Int(1), Int(5)} {
					with := costs(1, 2, 0)
					with.Hop = c
					line := evaluateShape(t, "breadth-first", Shape{Ranks: p, Microbatches: m, Loops: v}, with)
					num := func(n int) Rational { return Int(int64(n)) }
					turn := larger(num(m), num(p).Mul(Int(1).Add(c))).Add(larger(num(2*m), num(p).Mul(Int(2).Add(c))))
					want := num(v - 1).Mul(turn).Add(num(p - 1).Mul(Int(3).Add(c.Add(c)))).Add(num(3 * m))
					wantNumber(t, fmt.Sprintf("p%d m%d v%d c%s", p, m, v, c), line.Makespan(), want)
				}
			}
		}
	}
}

// TestLatencySlack: slightly more micro-batches than ranks, m >= p(1+c/forward),
// and breadth-first pays for hops only once in each direction.
func TestLatencySlack(t *testing.T) {
	for _, p := range []int{2, 4, 8} {
		for _, v := range []int{1, 2, 4} {
			for _, c := range []Rational{Ratio(1, 4), Ratio(1, 2), Int(1)} {
				with := costs(1, 2, 0)
				with.Hop = c
				pays := func(m int) Rational {
					o := mustOrder(t, "breadth-first", Shape{Ranks: p, Microbatches: m, Loops: v})
					return mustEvaluate(t, o, with).Makespan().Sub(mustEvaluate(t, o, costs(1, 2, 0)).Makespan())
				}
				least := c.Mul(Int(int64(2 * (p - 1))))
				enough := 2 * p
				for m := p; m <= 2*p; m++ {
					if Int(int64(m)).Cmp(Int(int64(p)).Mul(Int(1).Add(c))) >= 0 {
						enough = m
						break
					}
				}
				wantNumber(t, fmt.Sprintf("p%d v%d m%d c%s", p, v, enough, c), pays(enough), least)
				if v > 1 && pays(p).Cmp(least) <= 0 {
					t.Errorf("p%d v%d c%s: no slack at m=p, but only %s is paid", p, v, c, pays(p))
				}
			}
		}
	}
}

// TestDualPipeVOfTheSource: with F = I = W the makespan is the source's,
// work + (PP/2-1)(F&B + B - 3W) for PP stages; with others it isn't.
func TestDualPipeVOfTheSource(t *testing.T) {
	for _, x := range [][3]int64{{1, 1, 1}, {2, 2, 2}, {2, 3, 1}} {
		f, b, w := x[0], x[1]+x[2], x[2]
		line := evaluateShape(t, "dualpipev", Shape{Ranks: 4, Microbatches: 10}, costs(f, b, w))
		source := Int(2*10*(f+b) + (8/2-1)*((f+b)+b-3*w))
		if same := line.Makespan().Equal(source); same != (x[1] == x[0] && x[2] == x[0]) {
			t.Errorf("%v: makespan %s, by the source %s", x, line.Makespan(), source)
		}
	}
}
