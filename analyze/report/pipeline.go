package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mixdown/analyze/pipeline"
)

// Pipeline is the pipeline of one copy of the model.
type Pipeline struct {
	Ranks        []int  `json:"ranks"` // in the order of their first stages
	Stages       int    `json:"stages"`
	StageRanks   []*int `json:"stage_ranks"` // by stage: the rank that holds it, null when not known
	Loops        int    `json:"loops"`       // most stages on one rank
	Microbatches int    `json:"microbatches"`
	Evidence     string `json:"evidence"`

	// Schedule is the schedule that ran, as --schedule takes it; null when it is
	// none of those known. Exact: every rank ran exactly that order; ScheduleText
	// says in words how others differ.
	Schedule     *string `json:"schedule"`
	ScheduleText string  `json:"schedule_text"`
	Exact        bool    `json:"schedule_exact"`

	Steps []PipelineStep `json:"steps"`
}

// PipelineStep is one step of a pipeline.
type PipelineStep struct {
	Name string `json:"name"`
	// Makespan is from the first task of any rank to the end of the last, null
	// where the clocks of the ranks don't compare; LongestSpan that of one rank.
	// The bubbles are the idle shares of both.
	Makespan          *int64   `json:"makespan_ns"`
	LongestSpan       int64    `json:"longest_span_ns"`
	Bubble            *float64 `json:"bubble"`
	BubbleLongestSpan *float64 `json:"bubble_longest_span"`
	BusiestRank       int      `json:"busiest_rank"`

	Ranks []PipelineRank `json:"ranks"`
	Order [][]string     `json:"order"` // by rank, as PyTorch writes actions

	compact []string // the same in short, for people
}

// PipelineRank is how a rank of a pipeline spent a step; see pipeline.Idle. Busy
// and the others but Span and Straggler are the makespan together.
type PipelineRank struct {
	Rank      int   `json:"rank"`
	Stages    []int `json:"stages"`
	Span      int64 `json:"span_ns"`
	Busy      int64 `json:"busy_ns"`
	WarmUp    int64 `json:"warmup_ns"`
	Drain     int64 `json:"drain_ns"`
	Waiting   int64 `json:"waiting_ns"`
	Straggler int64 `json:"waiting_for_busiest_ns"` // part of waiting
	Sending   int64 `json:"sending_ns"`
	Launch    int64 `json:"launch_ns"`
	Unknown   int64 `json:"unknown_ns"`
}

// ScheduleName is what an order of tasks is called.
type ScheduleName struct {
	Spec  string // as --schedule takes it, "" when it is none of those known
	Text  string // in words
	Exact bool
}

// Pipelines describes pipelines. The name of a schedule is for those to give
// who know the schedules; nil leaves it open.
func Pipelines(list []*pipeline.Pipeline, name func(*pipeline.Step) ScheduleName) []Pipeline {
	var out []Pipeline
	for _, p := range list {
		d := Pipeline{
			Ranks: p.Ranks, Stages: p.Stages(), Loops: p.Loops, Microbatches: p.Microbatches, Evidence: p.Evidence,
			Steps: []PipelineStep{},
		}
		held := make([][]int, len(p.Ranks))
		for stage, place := range p.StagePlace {
			if place == pipeline.Unknown {
				d.StageRanks = append(d.StageRanks, nil)
				continue
			}
			d.StageRanks = append(d.StageRanks, &p.Ranks[place])
			held[place] = append(held[place], stage)
		}
		if name != nil && len(p.Steps) > 0 {
			n := name(&p.Steps[0])
			d.ScheduleText, d.Exact = n.Text, n.Exact
			if n.Spec != "" {
				d.Schedule = &n.Spec
			}
		}
		for i := range p.Steps {
			d.Steps = append(d.Steps, describeStep(p, &p.Steps[i], held))
		}
		out = append(out, d)
	}
	return out
}

func describeStep(p *pipeline.Pipeline, s *pipeline.Step, held [][]int) PipelineStep {
	b := s.Bubbles()
	d := PipelineStep{Name: s.Name, LongestSpan: b.LongestSpan, BusiestRank: p.Ranks[b.Busiest]}
	if b.Makespan != pipeline.Unknown {
		d.Makespan = &b.Makespan
	}
	if share, ok := b.Share(); ok {
		d.Bubble = &share
	}
	if share, ok := b.ShareOfLongest(); ok {
		d.BubbleLongestSpan = &share
	}
	for place := range b.Places {
		t := &b.Places[place]
		stages := held[place]
		if stages == nil {
			stages = []int{}
		}
		d.Ranks = append(d.Ranks, PipelineRank{
			Rank: p.Ranks[place], Stages: stages, Span: t.Span, Busy: t.Busy,
			WarmUp: t.Idle.WarmUp, Drain: t.Idle.Drain, Waiting: t.Idle.Waiting, Straggler: t.Idle.Straggler,
			Sending: t.Idle.Sending, Launch: t.Idle.Launch, Unknown: t.Idle.Unknown,
		})
		d.Order = append(d.Order, s.Text(place))
		d.compact = append(d.compact, s.Compact(place))
	}
	return d
}

// typical is the step of median makespan.
func (p *Pipeline) typical() *PipelineStep {
	if len(p.Steps) == 0 {
		return nil
	}
	length := func(s *PipelineStep) int64 {
		if s.Makespan != nil {
			return *s.Makespan
		}
		return s.LongestSpan
	}
	order := make([]int, len(p.Steps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(length(&p.Steps[a]), length(&p.Steps[b])) })
	return &p.Steps[order[(len(order)-1)/2]]
}

// shownOrders is of how many ranks text shows an order that has no name.
const shownOrders = 8

// shownPipelines is how many of equal pipelines text shows.
const shownPipelines = 2

func (a *Analysis) writePipelines(p *Page, opts TextOptions) {
	for i := range a.Pipeline {
		if i == shownPipelines && opts.Rows >= 0 {
			p.Headingf("... and %d more pipelines (--rows -1 shows all)", len(a.Pipeline)-shownPipelines)
			return
		}
		a.Pipeline[i].writeText(p, opts)
	}
}

func (d *Pipeline) writeText(p *Page, opts TextOptions) {
	p.Headingf("%s", d.title())
	for _, line := range d.lines() {
		p.Linef("  %s", line)
	}
	s := d.typical()
	if s == nil {
		return
	}
	var columns []Column
	for _, head := range s.heads() {
		columns = append(columns, Column{Head: head})
	}
	columns[slices.Index(s.heads(), "sending")].Kind = Spare
	g := NewGrid(columns...)
	shown := opts.limit(len(s.Ranks))
	for i := range s.Ranks[:shown] {
		g.Row(s.Ranks[i].cells()...)
	}
	p.Grid(g)
	p.more(len(s.Ranks)-shown, "ranks")
}

// heads are what the cells of a rank mean.
func (s *PipelineStep) heads() []string {
	return []string{"rank", "stages", "busy", "warm-up", "drain", "waiting", "of it for rank " + strconv.Itoa(s.BusiestRank), "sending", "launch", "unknown"}
}

func (r *PipelineRank) cells() []string {
	return []string{
		strconv.Itoa(r.Rank), Ranges(r.Stages), Duration(r.Busy), Duration(r.WarmUp), Duration(r.Drain), Duration(r.Waiting),
		Duration(r.Straggler), Duration(r.Sending), Duration(r.Launch), Duration(r.Unknown),
	}
}

// title names the pipeline and its schedule.
func (d *Pipeline) title() string {
	schedule := d.ScheduleText
	if schedule == "" {
		schedule = "schedule not looked up"
	}
	return fmt.Sprintf("Pipeline of ranks %s: %d stages, %d micro-batches, %s", Ranges(d.Ranks), d.Stages, d.Microbatches, schedule)
}

// lines is the bubble in words.
func (d *Pipeline) lines() []string {
	lines := []string{"told by " + d.Evidence}
	if d.Schedule == nil && len(d.Steps) > 0 {
		for i, row := range d.Steps[0].compact[:min(len(d.Ranks), shownOrders)] {
			lines = append(lines, fmt.Sprintf("rank %d: %s", d.Ranks[i], row))
		}
	}
	s := d.typical()
	if s == nil {
		return append(lines, "no step of it is in the traces")
	}
	step := ""
	if s.Name != "" {
		step = " of " + Printable(s.Name)
	}
	switch {
	case s.Bubble != nil && s.BubbleLongestSpan != nil:
		lines = append(lines, fmt.Sprintf("bubble%s: %.1f %% of the makespan of %s (%.1f %% of the longest rank's span of %s)",
			step, 100**s.Bubble, Duration(*s.Makespan), 100**s.BubbleLongestSpan, Duration(s.LongestSpan)))
	case s.BubbleLongestSpan != nil:
		lines = append(lines, fmt.Sprintf("bubble%s: %.1f %% of the longest rank's span of %s (the clocks of the ranks don't compare)",
			step, 100**s.BubbleLongestSpan, Duration(s.LongestSpan)))
	}
	return lines
}

func (a *Analysis) markdownPipelines(b *strings.Builder) {
	for i := range a.Pipeline {
		d := &a.Pipeline[i]
		s := d.typical()
		fmt.Fprintf(b, "\n## %s\n\n", escaped(d.title()))
		for _, line := range d.lines() {
			b.WriteString("- " + escaped(line) + "\n")
		}
		if s == nil {
			continue
		}
		t := newMarkdownTable(b, "", "", s.heads()...)
		for i := range s.Ranks {
			t.row(s.Ranks[i].cells()...)
		}
	}
}
