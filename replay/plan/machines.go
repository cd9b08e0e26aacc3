package plan

import "mixdown/replay/plan/planpb"

// Machines says of a communication on how many machines those who take part are, in
// a job of that many whose ranks fill one machine after the other; 0 of a job whose
// machines are not known. rank is whose communication it is.
func Machines(w *planpb.Workload, machines int) func(rank int32, c *planpb.Communication) int {
	if machines < 1 {
		return func(int32, *planpb.Communication) int { return 0 }
	}
	each := max(1, (int(w.WorldSize)+machines-1)/machines) // ranks on one
	at := func(rank int32) int32 { return rank / int32(each) }
	groups := make([]int, len(w.Groups))
	for i, g := range w.Groups {
		on := map[int32]bool{}
		for _, r := range g.Ranks {
			on[at(r)] = true
		}
		groups[i] = len(on)
	}
	return func(rank int32, c *planpb.Communication) int {
		if len(c.Transfers) == 0 {
			if g := int(c.Group); g >= 0 && g < len(groups) {
				return groups[g]
			}
			return 0
		}
		for _, t := range c.Transfers {
			if at(t.Peer) != at(rank) {
				return 2 // the slowest of a batch is what it takes
			}
		}
		return 1
	}
}
