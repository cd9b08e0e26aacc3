package schedule

// Placement says which rank holds which stage.
type Placement uint8

const (
	Loop Placement = iota // stage s on rank s mod p: every chunk runs from rank 0 to p-1
	V                     // every second chunk runs back, from rank p-1 to 0
)

// String is "loop" or "v".
func (p Placement) String() string {
	if p == V {
		return "v"
	}
	return "loop"
}

// Stage is the stage that is chunk number `chunk` of a rank.
func (p Placement) Stage(ranks, rank, chunk int) int {
	if p == V && chunk%2 == 1 {
		rank = ranks - 1 - rank
	}
	return chunk*ranks + rank
}

// Rank is the rank that holds a stage.
func (p Placement) Rank(ranks, stage int) int {
	rank := stage % ranks
	if p == V && stage/ranks%2 == 1 {
		rank = ranks - 1 - rank
	}
	return rank
}
