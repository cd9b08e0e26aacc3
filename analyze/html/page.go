package html

import (
	"time"

	"mixdown/analyze/gate/output"
	"mixdown/analyze/report"
)

// Page is a report in the making. All fields may be left out; sections of what
// is not there are not shown.
type Page struct {
	// Title is the heading, and the name of the browser's tab.
	Title string

	Analysis *report.Analysis
	// Phases is communication by group, op and phase, the most exposed first.
	Phases []PhaseRow
	// Steps are the times of each rank and step.
	Steps []report.RankSteps
	// Caused is what single ranks made others wait, by step.
	Caused []Caused
	// Timeline is what each rank did when.
	Timeline *Timeline

	// Orders are pictures of pipeline orders: as traced, then others.
	Orders []Picture
	// OrdersNote says what the orders rest on, in words.
	OrdersNote []string

	// Comparison is the result of a gate or a diff; the page is about it then.
	Comparison *output.Document

	// Heat is the table of measurements that a mix was chosen from, or that the page
	// is about.
	Heat *HeatMap

	Replays     []*Replay
	Predictions []*Prediction

	Provenance Provenance

	// PredictionFirst: the page is of a prediction, and the analysis stands beside it.
	PredictionFirst bool
}

// PhaseRow is the communication of one group, op and phase, times summed over
// ranks and steps in ns.
type PhaseRow struct {
	Group    string
	Op       string
	Phase    string // "" when not known
	Count    int
	Total    int64
	Exposed  int64
	Wait     *int64 // nil: not known
	Transfer *int64
}

// Caused is what one rank made others wait in one step, ns.
type Caused struct {
	Step   string
	Rank   int
	Caused int64
}

// Provenance is where a page comes from.
type Provenance struct {
	Tool    string    // program and version
	Command string    // the command line, as a shell takes it
	Args    []string  // the traces among its arguments; nil: not known
	Made    time.Time // zero: not said
	Inputs  []Input
}

// Input is a file that was read.
type Input struct {
	Name   string
	About  string // "rank 3, 40573 events", "replay result"
	SHA256 string // in hex, "" when not known
}

// Note adds something that the reader of the orders should know, once.
func (p *Page) Note(text string) {
	for _, have := range p.OrdersNote {
		if have == text {
			return
		}
	}
	p.OrdersNote = append(p.OrdersNote, text)
}
