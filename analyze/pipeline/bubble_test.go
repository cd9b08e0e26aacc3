package pipeline

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestBubbles is two places whose every ns is known.
func TestBubbles(t *testing.T) {
	s := Step{Comparable: true, Tasks: [][]Task{
		{
			{Phase: Forward, Start: 100, End: 200},
			{Phase: Forward, Start: 210, End: 310, Held: 4},                               // 4 sending, 6 launch
			{Phase: Backward, Start: 600, End: 700, Remote: true, Arrived: 580, Held: 15}, // 270 waiting, 15 sending, 5 launch
			{Phase: Backward, Start: 720, End: 800, Remote: true, Arrived: Unknown},       // 20 unknown
		},
		{
			{Phase: Forward, Stage: 1, Start: 250, End: 400, Remote: true, Arrived: 240},
			{Phase: Backward, Stage: 1, Start: 390, End: 900, Remote: false, Arrived: Unknown}, // overlaps by 10
		},
	}}
	b := s.Bubbles()
	want := []PlaceTime{
		{Busy: 380, Span: 700, Idle: Idle{Drain: 100, Waiting: 270, Sending: 19, Launch: 11, Unknown: 20, Straggler: 270}},
		{Busy: 650, Span: 650, Idle: Idle{WarmUp: 150}},
	}
	for i := range want {
		if b.Places[i] != want[i] {
			t.Errorf("place %d: %+v, want %+v", i, b.Places[i], want[i])
		}
	}
	if b.Makespan != 800 || b.LongestSpan != 700 || b.Busiest != 1 {
		t.Errorf("%+v", b)
	}
	if share, ok := b.Share(); !ok || math.Abs(share-(1-1030.0/1600)) > 1e-12 {
		t.Errorf("share %v, %v", share, ok)
	}
	if share, ok := b.ShareOfLongest(); !ok || math.Abs(share-(1-1030.0/1400)) > 1e-12 {
		t.Errorf("share of longest %v, %v", share, ok)
	}
	s.Comparable = false
	if b := s.Bubbles(); b.Makespan != Unknown || b.Places[1].Idle.WarmUp != 0 {
		t.Errorf("without comparable clocks: %+v", b)
	}
	if b := (&Step{Comparable: true}).Bubbles(); b.Makespan != Unknown {
		t.Errorf("without tasks: %+v", b)
	}
}

// TestBubblesAddUp: whatever the tasks, busy and idle are the makespan.
func TestBubblesAddUp(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := Step{Comparable: r.IntN(4) > 0}
		any := false
		for range 1 + r.IntN(5) {
			var tasks []Task
			at := r.Int64N(1000)
			for range r.IntN(20) {
				start := at + r.Int64N(50) - 10
				if len(tasks) > 0 {
					start = max(start, tasks[len(tasks)-1].Start) // tasks are by start
				}
				task := Task{Phase: Phase(r.IntN(4)), Start: start, End: start + r.Int64N(100), Remote: r.IntN(2) > 0,
					Arrived: Unknown, Held: r.Int64N(60) - 10}
				if r.IntN(3) > 0 {
					task.Arrived = start - 50 + r.Int64N(80)
				}
				at = task.End
				tasks = append(tasks, task)
				any = true
			}
			s.Tasks = append(s.Tasks, tasks)
		}
		b := s.Bubbles()
		for place := range b.Places {
			p := &b.Places[place]
			for _, n := range []int64{p.Busy, p.Span, p.Idle.WarmUp, p.Idle.Drain, p.Idle.Waiting, p.Idle.Sending, p.Idle.Launch, p.Idle.Unknown, p.Idle.Straggler} {
				if n < 0 {
					t.Fatalf("seed %d, place %d: %+v", seed, place, p)
				}
			}
			whole := b.Makespan
			if !s.Comparable || !any {
				whole = p.Span
			}
			if p.Busy+p.Idle.Total() != whole || p.Span > b.LongestSpan || p.Idle.Straggler > p.Idle.Waiting {
				t.Fatalf("seed %d, place %d: %+v is not %d in all", seed, place, p, whole)
			}
		}
	}
}

func TestCompact(t *testing.T) {
	for text, want := range map[string]string{
		"0F0 0F1 0F2 0F3 0B0 0F4 0B1 0F5 0B2 0F6 0B3 0F7 0B4 0B5 0B6 0B7": "0F0..0F3 (0B0 0F4)..(0B3 0F7) 0B4..0B7",
		"3F0 3B0 3F1 3B1 3F2 3B2": "(3F0 3B0)..(3F2 3B2)",
		"2F0 2F1 2F2 2B2 2B1 2B0": "2F0..2F2 2B2..2B0",
		"0F0 1F0":                 "0F0 1F0",
		"0F0 0F1":                 "0F0 0F1",
		"":                        "",
	} {
		s := Step{Tasks: [][]Task{nil}}
		for _, one := range strings.Fields(text) {
			a, _ := readAction(one)
			s.Tasks[0] = append(s.Tasks[0], Task{Phase: a.phase, Stage: a.stage, Microbatch: a.microbatch})
		}
		if got := s.Compact(0); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
		if got := strings.Join(s.Text(0), " "); got != text {
			t.Errorf("text %s", got)
		}
	}
}
