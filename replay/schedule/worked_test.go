package schedule

import (
	"slices"
	"testing"
)

// TestWorked holds the numbered worked examples, forward 1 and backward 2 per
// chunk unless the case says otherwise.
func TestWorked(t *testing.T) {
	for _, c := range []struct {
		name, schedule string
		shape          Shape
		costs          Costs
		makespan       string
		bubble         string
		span           string
		peaks          []int
		messages       int
	}{
		{name: "1 GPipe", schedule: "gpipe", shape: Shape{Ranks: 4, Microbatches: 4}, bubble: "3/7"},
		{name: "2 1F1B", schedule: "1f1b", shape: Shape{Ranks: 4, Microbatches: 8}, bubble: "3/11", peaks: []int{4, 3, 2, 1}},
		{name: "3 1F1B", schedule: "1f1b", shape: Shape{Ranks: 8, Microbatches: 32}, bubble: "7/39"},
		{name: "4 1F1B", schedule: "1f1b", shape: Shape{Ranks: 16, Microbatches: 64}, bubble: "15/79"},
		{name: "5 DFS", schedule: "depth-first", shape: Shape{Ranks: 4, Microbatches: 8, Loops: 2}, bubble: "3/19", peaks: []int{11, 9, 7, 5}, messages: 112},
		{name: "6 DFS", schedule: "depth-first", shape: Shape{Ranks: 4, Microbatches: 8, Loops: 4}, bubble: "3/35", peaks: []int{19, 17, 15, 13}, messages: 240},
		{name: "7 DFS", schedule: "depth-first", shape: Shape{Ranks: 8, Microbatches: 16, Loops: 4}, bubble: "7/71", peaks: []int{39, 37, 35, 33, 31, 29, 27, 25}},
		{name: "8 BFS", schedule: "breadth-first", shape: Shape{Ranks: 4, Microbatches: 8, Loops: 4}, makespan: "105", bubble: "3/35", peaks: []int{32, 32, 32, 32}, messages: 240},
		{name: "9 BFS", schedule: "breadth-first", shape: Shape{Ranks: 4, Microbatches: 5, Loops: 2}, bubble: "3/13"},
		{name: "10 BFS", schedule: "breadth-first", shape: Shape{Ranks: 8, Microbatches: 9, Loops: 4}, bubble: "7/43"},
		{name: "11 BFS m<p", schedule: "breadth-first", shape: Shape{Ranks: 4, Microbatches: 2, Loops: 2}, makespan: "27"},
		{name: "11 BFS m=1", schedule: "breadth-first", shape: Shape{Ranks: 8, Microbatches: 1, Loops: 4}, makespan: "96"},
		{name: "12 eager", schedule: "eager-1f1b", shape: Shape{Ranks: 8, Microbatches: 32}, peaks: []int{15, 13, 11, 9, 7, 5, 3, 1}},
		{name: "13 ZB-H1", schedule: "zb-h1", shape: Shape{Ranks: 4, Microbatches: 8}, bubble: "1/9"},
		{name: "13 ZB-H1 p8", schedule: "zb-h1", shape: Shape{Ranks: 8, Microbatches: 24}, bubble: "7/79"},
		{name: "13 ZB-H1 2,3,1", schedule: "zb-h1", shape: Shape{Ranks: 4, Microbatches: 8}, costs: costs(2, 4, 1), makespan: "60"},
		{name: "14 ZB-H2 2,3,1", schedule: "zb-h2", shape: Shape{Ranks: 4, Microbatches: 8}, costs: costs(2, 4, 1), span: "57"},
		{name: "15 ZBV", schedule: "zbv", shape: Shape{Ranks: 4, Microbatches: 8}, makespan: "51", span: "48", peaks: []int{8, 8, 8, 8}, messages: 96},
		{name: "16 DualPipeV", schedule: "dualpipev", shape: Shape{Ranks: 4, Microbatches: 10}, makespan: "66"},
		{name: "16 DualPipeV 2,3,1", schedule: "dualpipev", shape: Shape{Ranks: 4, Microbatches: 10}, costs: costs(2, 4, 1), makespan: "139"},
		{name: "17 Chimera D4", schedule: "chimera", shape: Shape{Ranks: 4, Microbatches: 4}, costs: costs(1, 1, 0), bubble: "1/5"},
		{name: "17 Chimera D8", schedule: "chimera", shape: Shape{Ranks: 8, Microbatches: 8}, costs: costs(1, 1, 0), bubble: "3/11"},
		{name: "hybrid", schedule: "hybrid", shape: Shape{Ranks: 4, Microbatches: 8, Loops: 2, Rounds: 2}, makespan: "66"},
		{name: "hybrid, one round", schedule: "hybrid", shape: Shape{Ranks: 4, Microbatches: 8, Loops: 2, Rounds: 1}, makespan: "57"},
		{name: "DFS g=m", schedule: "depth-first", shape: Shape{Ranks: 4, Microbatches: 8, Loops: 2, Group: 8}, makespan: "57", peaks: []int{15, 13, 11, 9}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.costs.Forward.Sign() == 0 {
				c.costs = DefaultCosts()
			}
			line := evaluateShape(t, c.schedule, c.shape, c.costs)
			check := func(what, want string, got Rational) {
				if want != "" && got.String() != want {
					t.Errorf("%s: got %s, want %s", what, got, want)
				}
			}
			check("makespan", c.makespan, line.Makespan())
			check("bubble", c.bubble, line.Bubble())
			check("longest span", c.span, line.LongestSpan())
			if c.peaks != nil && !slices.Equal(line.PeakChunks(), c.peaks) {
				t.Errorf("peaks: got %v, want %v", line.PeakChunks(), c.peaks)
			}
			if c.messages != 0 {
				wantMessages(t, line, c.messages)
			}
		})
	}
	if peak := slices.Max(evaluateShape(t, "dualpipev", Shape{Ranks: 4, Microbatches: 10}, DefaultCosts()).PeakChunks()); peak != 9 {
		t.Errorf("16 DualPipeV: peak %d, want 9", peak)
	}
}

// TestWorkedLatency is example 18: four ranks, the same work per rank cut in
// four chunks (1 and 2 each) or left whole (4 and 8).
func TestWorkedLatency(t *testing.T) {
	makespan := func(name string, m, v int, tf, tb int64, hop Rational) string {
		c := costs(tf, tb, 0)
		c.Hop = hop
		return evaluateShape(t, name, Shape{Ranks: 4, Microbatches: m, Loops: v}, c).Makespan().String()
	}
	for _, c := range []struct {
		hop              Rational
		bfs, dfs, gp, ob string
	}{
		{Ratio(1, 2), "108", "120", "135", "140"},
		{Int(1), "111", "135", "138", "148"},
	} {
		got := []string{
			makespan("breadth-first", 8, 4, 1, 2, c.hop), makespan("depth-first", 8, 4, 1, 2, c.hop),
			makespan("gpipe", 8, 1, 4, 8, c.hop), makespan("1f1b", 8, 1, 4, 8, c.hop),
		}
		if want := []string{c.bfs, c.dfs, c.gp, c.ob}; !slices.Equal(got, want) {
			t.Errorf("hop %s: BFS DFS GPipe 1F1B take %v, want %v", c.hop, got, want)
		}
	}
	half := Ratio(1, 2)
	if b, d := makespan("breadth-first", 4, 4, 1, 2, half), makespan("depth-first", 4, 4, 1, 2, half); b != "72" || d != "72" {
		t.Errorf("m=p: BFS %s and DFS %s, want 72", b, d)
	}
}

// overlapRows is the table on when a gradient reduction may start: four ranks,
// eight micro-batches, the same work per rank.
var overlapRows = []struct {
	name, schedule string
	loops          int
	forward        int64 // of a chunk; its backward takes twice as long
	makespan       string
	peak           int
	ready          []Gradient // of rank 0
}{
	{"GPipe", "gpipe", 1, 4, "132", 8, []Gradient{{0, 0, Int(132)}}},
	{"1F1B", "1f1b", 1, 4, "132", 4, []Gradient{{0, 0, Int(132)}}},
	{"DFS v=2", "depth-first", 2, 2, "114", 11, []Gradient{{0, 4, Int(98)}, {0, 0, Int(114)}}},
	{"BFS v=2", "breadth-first", 2, 2, "114", 16, []Gradient{{0, 4, Int(82)}, {0, 0, Int(114)}}},
	{"DFS v=4", "depth-first", 4, 1, "105", 19, []Gradient{{0, 12, Int(81)}, {0, 8, Int(89)}, {0, 4, Int(97)}, {0, 0, Int(105)}}},
	{"BFS v=4", "breadth-first", 4, 1, "105", 32, []Gradient{{0, 12, Int(57)}, {0, 8, Int(73)}, {0, 4, Int(89)}, {0, 0, Int(105)}}},
}

func TestGradientReady(t *testing.T) {
	for _, c := range overlapRows {
		t.Run(c.name, func(t *testing.T) {
			line := evaluateShape(t, c.schedule, Shape{Ranks: 4, Microbatches: 8, Loops: c.loops}, costs(c.forward, 2*c.forward, 0))
			if line.Makespan().String() != c.makespan || line.PeakChunks()[0] != c.peak {
				t.Errorf("makespan %s, peak %d; want %s, %d", line.Makespan(), line.PeakChunks()[0], c.makespan, c.peak)
			}
			got := line.Gradients()
			got = slices.DeleteFunc(got, func(g Gradient) bool { return g.Rank != 0 })
			if !slices.EqualFunc(got, c.ready, func(a, b Gradient) bool {
				return a.Stage == b.Stage && a.Ready.Equal(b.Ready)
			}) {
				t.Errorf("gradients of rank 0: got %v, want %v", got, c.ready)
			}
		})
	}
}
