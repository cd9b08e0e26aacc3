package schedule

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestStageCosts: a stage that takes twice as long sets the pace.
func TestStageCosts(t *testing.T) {
	c := costs(1, 2, 0)
	c.Stages = map[int]StageCosts{1: {Forward: Int(2), Backward: Int(4)}}
	line := evaluateShape(t, "gpipe", Shape{Ranks: 3, Microbatches: 5}, c)
	// First and last stage: 1+1 before and after the slow one, and 2+2.
	wantNumber(t, "makespan", line.Makespan(), Int(5*6+1+1+2+2))
	wantNumber(t, "busy", line.Busy(1), Int(30))
	wantNumber(t, "busy", line.Busy(2), Int(15))
	wantNumber(t, "bubble", line.Bubble(), Int(1).Sub(Ratio(60, 3*36)))
}

// TestLargeNumbers: times too large for 64 bits are as exact as small ones.
func TestLargeNumbers(t *testing.T) {
	o := specOrder(t, "breadth-first:ranks=4,microbatches=8,loops=4")
	small := mustEvaluate(t, o, costs(1, 2, 0))
	scale, err := ParseRational("123456789012345678901234567890/97")
	if err != nil {
		t.Fatal(err)
	}
	c := costs(1, 2, 0)
	c.Forward, c.Backward = c.Forward.Mul(scale), c.Backward.Mul(scale)
	large := mustEvaluate(t, o, c)
	wantNumber(t, "makespan", large.Makespan(), small.Makespan().Mul(scale))
	wantNumber(t, "bubble", large.Bubble(), small.Bubble())
	wantNumber(t, "start", large.Start(3, 40), small.Start(3, 40).Mul(scale))
	if _, ok := large.times.(moments[largeInstant]); !ok {
		t.Error("the large numbers were not needed")
	}
}

func TestTransfersTakePlace(t *testing.T) {
	read := func(text string) Order {
		o, err := ReadCSV(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	c := costs(1, 2, 0)
	c.Hop = Int(10)
	// Rank 1 posts its second receive when its first forward is done: the
	// hop of micro-batch 1 begins at 12 only.
	late := read("0F0,0SEND_F0,0F1,0SEND_F1\n1RECV_F0,1F0,1RECV_F1,1F1\n")
	wantNumber(t, "late receive", mustEvaluate(t, late, c).Makespan(), Int(1+10+1+10+1))
	early := read("0F0,0SEND_F0,0F1,0SEND_F1\n1RECV_F0,1RECV_F1,1F0,1F1\n")
	wantNumber(t, "early receive", mustEvaluate(t, early, c).Makespan(), Int(2+10+1))
	unnamed := read("0F0,0F1\n1F0,1F1\n")
	wantNumber(t, "unnamed", mustEvaluate(t, unnamed, c).Makespan(), Int(2+10+1))
}

func TestStageActions(t *testing.T) {
	o, err := ReadCSV(strings.NewReader("0UNSHARD,0F0,0B0,0REDUCE_GRAD,0RESHARD\n"))
	if err != nil {
		t.Fatal(err)
	}
	line := mustEvaluate(t, o, DefaultCosts())
	wantNumber(t, "makespan", line.Makespan(), Int(3))
	wantNumber(t, "span", line.Span(0), Int(3))
	wantNumber(t, "bubble", line.Bubble(), Int(0))
}

func TestInferencePeak(t *testing.T) {
	line := evaluateShape(t, "inference", Shape{Ranks: 4, Microbatches: 8, Loops: 2}, DefaultCosts())
	wantNumber(t, "makespan", line.Makespan(), Int(8*2+3))
	wantPeaks(t, line.PeakChunks(), func(int) int { return 1 })
	wantMessages(t, line, (4*2-1)*8)
	if g := line.Gradients(); len(g) != 0 {
		t.Errorf("gradients in inference: %v", g)
	}
}

func TestBlocked(t *testing.T) {
	for _, c := range []struct{ name, csv, want string }{
		{
			"two ranks", "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n",
			"the order can't run to its end: rank 0 at 0B0 waits for 1B0 on rank 1 behind 1F1; rank 1 at 1F1 waits for 0F1 on rank 0 behind 0B0",
		}, {
			"own rank", "0B0,0F0\n1F0,1B0\n",
			"the order can't run to its end: rank 0 at 0B0 waits for 0F0 later on the same rank",
		}, {
			"shortest of two", "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n2F1,2F0,2B0,2B1\n",
			"rank 0 at 0B0 waits for 1B0 on rank 1 behind 1F1; rank 1 at 1F1 waits for 0F1 on rank 0 behind 0B0",
		}, {
			"receive before send", "0F0,0B0\n1F0,1B0,1SEND_B0\n",
			"",
		}, {
			"weight before input", "0F0,0W0,0I0\n",
			"rank 0 at 0W0 waits for 0I0 later on the same rank",
		}, {
			"send before forward", "0SEND_F0,0F0\n1RECV_F0,1F0\n",
			"rank 0 at 0SEND_F0 waits for 0F0 later on the same rank",
		}, {
			"receives of both behind the other's send", "0F0,0RECV_B0,0SEND_F0,0B0\n1F0,1RECV_F0,1B0,1SEND_B0\n",
			"rank 1 at 1F0 waits for 1RECV_F0 later on the same rank",
		}, {
			"pair", "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,(1F1;1B0)OVERLAP_F_B,1B1\n",
			"rank 0 at 0B0 waits for 1B0 on rank 1 behind 1F1; rank 1 at 1F1 waits for 0F1 on rank 0 behind 0B0",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := ReadCSV(strings.NewReader(c.csv))
			if err != nil {
				t.Fatal(err)
			}
			_, err = Evaluate(o, DefaultCosts())
			var stuck *BlockedError
			if c.want == "" {
				if errors.As(err, &stuck) || !errors.Is(err, ErrOrder) {
					t.Errorf("got %v, want ErrOrder", err)
				}
				return
			}
			if !errors.As(err, &stuck) || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("\n got %v\nwant ...%s", err, c.want)
			}
		})
	}
}

func TestIncomplete(t *testing.T) {
	for csv, want := range map[string]string{
		"0F0,0B0,1F1\n":                "0F1 is missing: the order names stages up to 1 and micro-batches up to 1",
		"0F0,0F0,0B0\n":                "0F0 stands twice, on rank 0 and on rank 0",
		"0F0,0F1,0B0\n":                "0B1 is missing, with 0F1 present",
		"0F0,0I0\n":                    "0W0 is missing, with 0I0 present",
		"0F0,0B0,0W0\n":                "0B0 stands beside a part of itself",
		"0F0\n0B0\n":                   "what a forward keeps is not moved",
		"0F0,0B0\n\n1F0,1B0\n":         "rank 1 does nothing",
		"0B0\n":                        "no forward in it",
		"16777215F0\n":                 "0F0 is missing",
		"0F0,0SEND_F0\n1F0\n":          "1RECV_F0 is missing, with 0SEND_F0 present",
		"0F0\n1RECV_F0,1F0\n":          "0SEND_F0 is missing, with 1RECV_F0 present",
		"0F0,0B0\n1F0,1SEND_F0,1B0\n":  "no stage comes after stage 1",
		"0F0,0SEND_B0,0B0\n1F0,1B0\n":  "no stage comes before stage 0",
		"0F0,1RECV_F0\n1F0,0SEND_F0\n": "0SEND_F0 is on rank 1, but 0F0 on rank 0",
		"0F0,0SEND_F0,1RECV_F0\n1F0\n": "1RECV_F0 is on rank 0, but 1F0 on rank 1",
		"0F0,0RECV_B0\n1F0,1SEND_B0\n": "1SEND_B0 stands without an action",
		strings.Repeat("0F0,", 3) + "0F16777215,0B0\n": "0F1 is missing",
	} {
		o, err := ReadCSV(strings.NewReader(csv))
		if err != nil {
			t.Fatalf("%q: %v", csv, err)
		}
		_, err = Evaluate(o, DefaultCosts())
		if !errors.Is(err, ErrOrder) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want ...%s...", csv, err, want)
		}
		if v := o.Validate(); v == nil || v.Error() != err.Error() {
			t.Errorf("%q: Validate says %v, Evaluate %v", csv, v, err)
		}
	}
	for _, o := range []Order{
		{}, {{{Kind: Kind(99)}}}, {{{Kind: Forward, Stage: -1}}}, {{{Kind: Forward, Microbatch: NoMicrobatch}}},
		{{{Kind: Unshard, Microbatch: 3}}}, {{{Kind: Forward, Overlap: true}}}, {{{Kind: Forward, Overlap: true}, {Kind: Weight}}},
	} {
		if err := o.Validate(); !errors.Is(err, ErrOrder) {
			t.Errorf("%v: got %v, want ErrOrder", o, err)
		}
	}
}

func TestBadCosts(t *testing.T) {
	o := specOrder(t, "gpipe:ranks=2,microbatches=2")
	hop := DefaultCosts()
	hop.Hop = Int(-1)
	stage := DefaultCosts()
	stage.Stages = map[int]StageCosts{1: {Forward: Int(-2)}}
	for want, c := range map[string]Costs{
		"no action takes any time":               {},
		"hop=-1 is negative":                     hop,
		"stage 1: a duration is negative":        stage,
		"weight=3 is longer than backward=2":     costs(1, 2, 3),
		"a duration is negative (forward=-1, ba": costs(-1, 2, 0),
	} {
		if _, err := Evaluate(o, c); !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want ...%s...", err, want)
		}
	}
}

// TestFast holds the size that must not take noticeably long: about a second,
// checked with room for slow machines.
func TestFast(t *testing.T) {
	if testing.Short() {
		t.Skip("large")
	}
	for _, name := range []string{"breadth-first", "depth-first"} {
		begin := time.Now()
		line := evaluateShape(t, name, Shape{Ranks: 64, Microbatches: 512, Loops: 8}, DefaultCosts())
		r := NewResult(name, line)
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%s took %v", name, took)
		}
		wantNumber(t, "makespan", r.Makespan, Int((512*8+63)*3))
	}
}

func BenchmarkEvaluate(b *testing.B) {
	for _, name := range []string{"breadth-first", "depth-first"} {
		b.Run(fmt.Sprintf("%s-64x512x8", name), func(b *testing.B) {
			for b.Loop() {
				evaluateShape(b, name, Shape{Ranks: 64, Microbatches: 512, Loops: 8}, DefaultCosts())
			}
		})
	}
}
