package megatron

import (
	"errors"

	"mixdown/ingest/diagnostic"
)

// ErrNoPipeline: the trace has no forward or backward span of a pipeline stage.
var ErrNoPipeline = errors.New("no forward or backward spans of a pipeline")

// Codes of the diagnostics of a Pipeline, beside those of package chrome.
const (
	CodeStageConflict = "stage-conflict" // "pp_rank" and the process id differ; "pp_rank" taken
	CodeStageUnknown  = "stage-unknown"  // neither says the stage; span kept without it
	CodeNoMicrobatch  = "no-microbatch"  // forward or backward span that does not say of which micro-batch
	CodeUntimed       = "untimed-span"   // span without a usable start or end left out
	CodeBadIndex      = "bad-index"      // negative or fractional index taken as unknown
	CodeOpenSpan      = "open-span"      // begun and never ended: left out
	CodeLimit         = "span-limit"     // MaxSpans reached, the rest was not read
)

// Kind is what a span does.
type Kind uint8

// The kinds of Span.
const (
	Other Kind = iota
	Forward
	Backward
)

// String returns the name of k.
func (k Kind) String() string {
	switch k {
	case Forward:
		return "forward"
	case Backward:
		return "backward"
	}
	return "other"
}

// Index is a number that a span may not tell.
type Index struct {
	N     int
	Known bool
}

// Span is one stretch of work of one stage.
type Span struct {
	Kind Kind
	Name string // as the tracer has it
	Run  string // thread id: traces of several runs may be merged into one file

	Stage      Index // pipeline rank
	Chunk      Index // model chunk of the stage
	Microbatch Index
	Iteration  Index

	Start, Dur int64 // ns
	Offset     int64 // of the beginning event, in bytes
}

// End is when the span ended, in ns.
func (s *Span) End() int64 { return s.Start + s.Dur }

// Mark is a moment, such as "iteration begin".
type Mark struct {
	Name      string
	Run       string
	Stage     Index
	Iteration Index
	TS        int64 // ns
	Offset    int64
}

// Pipeline is what a trace says about the pipeline.
type Pipeline struct {
	Source string // the file, as the user named it
	Spans  []Span // by start, then offset
	Marks  []Mark // by time, then offset

	Truncated   bool // the file ends early
	Diagnostics diagnostic.Set
}

// Runs lists the runs, in the order of their first span.
func (p *Pipeline) Runs() []string {
	var runs []string
	seen := map[string]bool{}
	for i := range p.Spans {
		if r := p.Spans[i].Run; !seen[r] {
			seen[r] = true
			runs = append(runs, r)
		}
	}
	return runs
}
