package schedule

// Result is what `mixdown schedule --format json` prints. Its fields are a
// contract with scripts; durations are in the unit of the costs.
type Result struct {
	SchemaVersion     int      `json:"schema_version"`
	Schedule          string   `json:"schedule"` // the name it was asked for by
	Ranks             int      `json:"ranks"`
	Microbatches      int      `json:"microbatches"`
	Loops             int      `json:"loops"` // chunks per rank, both copies of a stage counted
	Makespan          Rational `json:"makespan"`
	Bubble            Rational `json:"bubble"`
	BubbleLongestSpan Rational `json:"bubble_longest_span"`
	PeakChunks        []int    `json:"peak_chunks"` // by rank
	Messages          int      `json:"messages"`
	Order             Order    `json:"order"`
}

// NewResult gathers what scripts read of a timeline. name is the schedule's, or
// that of the file that the order came from.
func NewResult(name string, t *Timeline) Result {
	return Result{
		SchemaVersion:     1,
		Schedule:          name,
		Ranks:             t.order.Ranks(),
		Microbatches:      t.order.Microbatches(),
		Loops:             t.order.Loops(),
		Makespan:          t.Makespan(),
		Bubble:            t.Bubble(),
		BubbleLongestSpan: t.BubbleLongestSpan(),
		PeakChunks:        t.PeakChunks(),
		Messages:          t.Messages(),
		Order:             t.order,
	}
}
