package schedule

import (
	"fmt"
	"strings"

	"mixdown/replay/gantt"
	"mixdown/replay/memory"
	"mixdown/replay/schedule"
)

// output is what --format json prints; "mixdown help schedules" documents it.
type output struct {
	schedule.Result
	Sharding    *shardingOutput    `json:"sharding,omitempty"`
	Collectives *collectivesOutput `json:"collectives,omitempty"`
	Memory      []memory.Rank      `json:"memory,omitempty"`
	Against     *againstOutput     `json:"against,omitempty"`
}

type shardingOutput struct {
	Variant      string  `json:"variant"`
	Gathers      []int   `json:"gathers"`    // by rank, as the next two
	Reductions   []int   `json:"reductions"` // one for each stage and time that its buffer is needed
	TrafficBytes []int64 `json:"traffic_bytes"`
}

type collectivesOutput struct {
	Gather  *schedule.Rational `json:"gather"` // of one; null if not given, as the next
	Reduce  *schedule.Rational `json:"reduce"`
	Exposed schedule.Rational  `json:"exposed"` // from the last pass to the end of the last of them
	Step    schedule.Rational  `json:"step"`    // makespan and exposed
}

type againstOutput struct {
	Schedule   string            `json:"schedule"`
	Makespan   schedule.Rational `json:"makespan"`
	Bubble     schedule.Rational `json:"bubble"`
	PeakChunks []int             `json:"peak_chunks"`
	Exposed    schedule.Rational `json:"exposed"`
	Speedup    schedule.Rational `json:"speedup"` // of the schedule against this one, exposed collectives included
	Summary    string            `json:"summary"`
}

func (a *answer) output() output {
	out := output{Result: schedule.NewResult(a.spec.Name, a.line), Memory: a.ranks}
	if a.counts != nil {
		out.Sharding = &shardingOutput{Variant: a.counts.Variant.String(), Gathers: a.counts.Gathers, Reductions: a.counts.Reductions, TrafficBytes: a.traffic()}
	}
	if a.gather != nil || a.reduce != nil {
		out.Collectives = &collectivesOutput{Gather: a.gather, Reduce: a.reduce, Exposed: a.exposed(), Step: a.step()}
	}
	if b := a.against; b != nil {
		summary, err := a.compared()
		if err != nil {
			summary = err.Error()
		}
		out.Against = &againstOutput{
			Schedule: b.spec.String(), Makespan: b.line.Makespan(), Bubble: b.line.Bubble(), PeakChunks: b.line.PeakChunks(),
			Exposed: b.exposed(), Speedup: b.step().Quo(a.step()), Summary: summary,
		}
	}
	return out
}

// traffic is the bytes of each rank's collectives, nil where parameters aren't
// known.
func (a *answer) traffic() []int64 {
	var list []int64
	for r, rank := range a.ranks {
		if rank.Parameters == nil || rank.Stages == 0 {
			return nil
		}
		list = append(list, a.counts.Bytes(r, *rank.Parameters/int64(rank.Stages)))
	}
	return list
}

func (a *answer) writeText(opts *Options) error {
	var b strings.Builder
	r := schedule.NewResult(a.spec.Name, a.line)
	fmt.Fprintf(&b, "%s: %d ranks, %d micro-batches, %d chunks a rank\n", r.Schedule, r.Ranks, r.Microbatches, r.Loops)
	fmt.Fprintf(&b, "makespan %v, bubble %v (%v of the longest rank's span), %d messages\n", r.Makespan, r.Bubble, r.BubbleLongestSpan, r.Messages)
	fmt.Fprintf(&b, "chunks held at most, by rank: %v\n", r.PeakChunks)
	if c := a.counts; c != nil {
		fmt.Fprintf(&b, "sharding %s: gathers by rank %v, reductions %v", c.Variant, c.Gathers, c.Reductions)
		if traffic := a.traffic(); len(traffic) > 0 {
			fmt.Fprintf(&b, ", %s in and out on rank 0", memory.Bytes(traffic[0]))
		}
		b.WriteByte('\n')
	}
	if a.gather != nil || a.reduce != nil {
		fmt.Fprintf(&b, "with gathers of %v and reductions of %v: %v exposed after the last pass, %v in all\n",
			a.time(a.gather), a.time(a.reduce), a.exposed(), a.step())
	}
	if a.ranks != nil {
		fmt.Fprintf(&b, "memory: %s\n", memory.Line(a.ranks, nil))
	}
	if a.against != nil {
		summary, err := a.compared()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "against %s: %s\n", a.against.spec, summary)
	}
	b.WriteByte('\n')
	if err := a.figure().Text(&b, gantt.TextOptions{Width: opts.Width, Colour: opts.Colour}); err != nil {
		return err
	}
	fmt.Fprintln(&b, gantt.Legend)
	_, err := fmt.Fprint(opts.Streams.Out, b.String())
	return err
}
