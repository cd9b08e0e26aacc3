package main

import "testing"

func TestVerdict(t *testing.T) {
	many := func(start uint64, worker float64) (list []pair) {
		for i := range 12 {
			noise := float64(i) - 6
			list = append(list, pair{start: start, alone: 100_000 + noise, worker: worker + 2*noise})
		}
		return list
	}
	for _, c := range []struct {
		name  string
		bytes int64
		pairs []pair
		want  verdict
	}{
		{"small, 1 us more", 8, many(1, 101_000), met},
		{"small, 3 us more", 8, many(1, 103_000), over},
		{"large, 2 % more", 1 << 20, many(1, 102_000), met},
		{"large, 5 % more", 1 << 20, many(1, 105_000), over},
		{"large, 5 % more in one start of two", 1 << 20, append(many(1, 105_000), many(2, 102_900)...), notClear},
		{"nothing measured", 8, nil, notClear},
		{"too few to say", 8, many(1, 103_000)[:3], notClear},
	} {
		if got := (&benchCase{bytes: c.bytes, pairs: c.pairs}).verdict(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestPlan(t *testing.T) {
	c := &benchCase{library: "gloo", ranks: 4, op: "send_recv", bytes: 64, calls: 3, before: 1}
	p := c.plan(1000)
	for r, program := range p.Workload.Programs {
		if got, want := len(program.Tasks), c.first()+c.calls*c.perCall(); got != want {
			t.Errorf("rank %d has %d tasks, want %d", r, got, want)
		}
		sends := program.Tasks[c.first()].GetCommunication().Transfers[0].Send
		if sends != (r%2 == 0) {
			t.Errorf("rank %d sends first: %v", r, sends)
		}
	}
}
