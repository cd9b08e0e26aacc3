package plan

import (
	"testing"

	"mixdown/replay/plan/planpb"
)

func TestMachinesUsed(t *testing.T) {
	for _, c := range []struct{ ranks, machines, want int }{{16, 4, 4}, {4, 3, 2}, {10, 4, 4}, {4, 1000, 4}, {4, 0, 0}, {4, -1, 0}, {1, 1, 1}} {
		if got := MachinesUsed(int32(c.ranks), c.machines); got != c.want {
			t.Errorf("%d ranks on %d machines lie on %d, want %d", c.ranks, c.machines, got, c.want)
		}
	}
}

func TestMachines(t *testing.T) {
	w := &planpb.Workload{WorldSize: 16, Groups: []*planpb.Group{
		{Ranks: []int32{0, 1, 2, 3}}, {Ranks: []int32{3, 4}}, {Ranks: []int32{0, 4, 8, 12}}, {Ranks: []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
	}}
	on := NewMachines(w, 4).Of
	for g, want := range []int{1, 2, 4, 4} {
		if got := on(0, &planpb.Communication{Group: int32(g)}); got != want {
			t.Errorf("group %v is on %d machines, want %d", w.Groups[g].Ranks, got, want)
		}
	}
	to := func(peers ...int32) *planpb.Communication {
		c := &planpb.Communication{}
		for _, p := range peers {
			c.Transfers = append(c.Transfers, &planpb.Transfer{Peer: p})
		}
		return c
	}
	if a, b, c := on(5, to(4, 7)), on(5, to(4, 8)), on(3, to(4)); a != 1 || b != 2 || c != 2 {
		t.Errorf("messages are on %d, %d and %d machines, want 1, 2 and 2", a, b, c)
	}
	// 16 ranks on 3 machines: 6, 6 and 4.
	if got := NewMachines(w, 3).Of(0, &planpb.Communication{Group: 2}); got != 3 {
		t.Errorf("on three machines: %d", got)
	}
	if unknown := NewMachines(w, 0); unknown.Of(0, to(9)) != 0 || unknown.Of(0, &planpb.Communication{}) != 0 || unknown.Count() != 0 || unknown.Apart(0, 15) {
		t.Error("what is not known is 0")
	}
}
