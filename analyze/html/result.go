package html

import (
	"encoding/json"
	"errors"
	"fmt"

	"mixdown/analyze/report"
)

// ErrResult: a file is no result that a page can show.
var ErrResult = errors.New("no result of analyze, replay or simulate")

// Plan is one plan that was run in a replay.
type Plan struct {
	Name       string     `json:"name"`
	Mix        string     `json:"mix"`
	Schedule   string     `json:"schedule"`
	Iterations []int64    `json:"iterations_ns"`
	Median     int64      `json:"median_ns"`
	Speedup    float64    `json:"speedup"`
	CI95       [2]float64 `json:"ci95"`
	Coverage   float64    `json:"ci_coverage"`
	Predicted  *float64   `json:"predicted_speedup"`
	Verified   bool       `json:"data_verified"`
	Memory     *float64   `json:"activation_memory"` // null: the traced order
	Reasons    []struct {
		Rule string `json:"rule"`
		Text string `json:"text"`
	} `json:"reasons"` // of a mix that was chosen
	Fidelity *struct {
		TraceStep    int64   `json:"trace_step_ns"`
		ReplayedStep int64   `json:"replayed_step_ns"`
		Ratio        float64 `json:"ratio"`
	} `json:"fidelity"` // of the baseline
}

// Replay is the result of "mixdown replay", as its JSON has it.
type Replay struct {
	SchemaVersion int    `json:"schema_version"`
	Device        string `json:"device"`
	DeviceName    string `json:"device_name"`
	WorldSize     int    `json:"world_size"`
	Workers       int    `json:"workers"`
	Step          string `json:"step"`
	Operations    int    `json:"operations"`
	Estimated     int    `json:"operations_estimated"`
	Backends      []struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"backends"`
	Substitutions []struct {
		Traced   string `json:"traced"`
		Replayed string `json:"replayed"`
	} `json:"substitutions"`
	Baseline    Plan                 `json:"baseline"`
	Variants    []Plan               `json:"variants"`
	Traced      *report.CriticalPath `json:"traced_step"`
	Diagnostics []report.Diagnostic  `json:"diagnostics"`
}

// Order is one pipeline order as it was predicted.
type Order struct {
	Name              string   `json:"name"`
	Schedule          string   `json:"schedule"`
	Step              int64    `json:"step_ns"`
	Bubble            float64  `json:"bubble"`
	BubbleLongestSpan float64  `json:"bubble_longest_span"`
	Memory            float64  `json:"activation_memory"` // in multiples of the traced order's; 0: not known, of what-ifs alone
	Messages          int      `json:"messages"`
	Predicted         float64  `json:"predicted_speedup"`
	WithinError       bool     `json:"within_error"`
	Pareto            *bool    `json:"pareto"`
	Assumptions       []string `json:"assumptions"`
	Apply             string   `json:"apply"` // the command that writes it for PyTorch

	// Of a mix of backends instead of an order.
	Mix     string   `json:"mix"`
	MixStep *int64   `json:"mix_step_ns"`
	Reasons []string `json:"reasons"`

	// WhatIfs are what was supposed besides, with what it costs; null: nothing.
	WhatIfs []struct {
		Name string `json:"name"`
		Cost string `json:"cost"`
	} `json:"what_ifs"`

	Held []struct {
		Rank  int    `json:"rank"`
		Total *int64 `json:"total_bytes"`
	} `json:"memory"`
	Fidelity *OrderFidelity `json:"fidelity"` // of the baseline
}

// OrderFidelity says how close playing the traced order comes to the trace.
type OrderFidelity struct {
	TraceStep     int64   `json:"trace_step_ns"`
	SimulatedStep int64   `json:"simulated_step_ns"`
	Ratio         float64 `json:"ratio"`
}

// Prediction is the result of "mixdown simulate", as its JSON has it.
type Prediction struct {
	SchemaVersion int                 `json:"schema_version"`
	WorldSize     int                 `json:"world_size"`
	Ranks         []int               `json:"ranks"`
	Microbatches  int                 `json:"microbatches"`
	Stages        int                 `json:"stages"`
	Baseline      *Order              `json:"baseline"` // null: no order was asked for
	Workload      *Workload           `json:"workload"` // null: no mix was asked for
	Variants      []Order             `json:"variants"`
	Searched      int                 `json:"searched"`
	Diagnostics   []report.Diagnostic `json:"diagnostics"`
}

// Workload is the traced step with its own backend, as it was played.
type Workload struct {
	Step     string        `json:"step"`
	Backend  string        `json:"backend"`
	Fidelity OrderFidelity `json:"fidelity"`
}

// orders are the variants that are orders, mixes those that are mixes, and supposed
// those that suppose what is not so.
func (s *Prediction) orders() []*Order {
	return s.pick(func(o *Order) bool { return o.MixStep == nil && o.WhatIfs == nil })
}

func (s *Prediction) mixes() []*Order {
	return s.pick(func(o *Order) bool { return o.MixStep != nil && o.WhatIfs == nil })
}

func (s *Prediction) supposed() []*Order {
	return s.pick(func(o *Order) bool { return o.WhatIfs != nil })
}

func (s *Prediction) pick(want func(*Order) bool) []*Order {
	var list []*Order
	for i := range s.Variants {
		if want(&s.Variants[i]) {
			list = append(list, &s.Variants[i])
		}
	}
	return list
}

// analysisJSON is an analysis whose breakdown is read as rows of the JSON.
type analysisJSON struct {
	report.Analysis
	Breakdown []breakdownJSON `json:"breakdown"`
}

// breakdownJSON is what a page needs of a row of the breakdown.
type breakdownJSON struct {
	Group    *string `json:"group"`
	Op       *string `json:"op"`
	Phase    *string `json:"phase"`
	Count    int     `json:"count"`
	Total    int64   `json:"total_ns"`
	Exposed  int64   `json:"exposed_ns"`
	Wait     *int64  `json:"wait_ns"`
	Transfer *int64  `json:"transfer_ns"`
}

// AddResult adds the JSON of a verb to the page and says which verb's it is.
func (p *Page) AddResult(data []byte) (kind string, err error) {
	var head struct {
		SchemaVersion int             `json:"schema_version"`
		Run           json.RawMessage `json:"run"`
		Device        string          `json:"device"`
		Baseline      *struct {
			Fidelity map[string]json.RawMessage `json:"fidelity"`
		} `json:"baseline"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return "", fmt.Errorf("%w: %w", ErrResult, err)
	}
	if head.SchemaVersion != report.SchemaVersion {
		return "", fmt.Errorf("%w: schema_version is %d, known is %d", ErrResult, head.SchemaVersion, report.SchemaVersion)
	}
	switch {
	case head.Run != nil:
		return "analyze", p.addAnalysis(data)
	case head.Device == "none", head.Baseline != nil && head.Baseline.Fidelity["simulated_step_ns"] != nil: // nothing ran
		var s Prediction
		if err := json.Unmarshal(data, &s); err != nil {
			return "", fmt.Errorf("%w: %w", ErrResult, err)
		}
		p.Predictions = append(p.Predictions, &s)
		return "simulate", nil
	case head.Baseline == nil:
		return "", fmt.Errorf("%w: it has neither run nor baseline", ErrResult)
	}
	var r Replay
	if err := json.Unmarshal(data, &r); err != nil {
		return "", fmt.Errorf("%w: %w", ErrResult, err)
	}
	p.Replays = append(p.Replays, &r)
	return "replay", nil
}

// addAnalysis takes over an analysis. A page has one.
func (p *Page) addAnalysis(data []byte) error {
	if p.Analysis != nil {
		return fmt.Errorf("%w: a page shows one analysis, and this is a second: \"mixdown diff\" compares two", ErrResult)
	}
	var a analysisJSON
	if err := json.Unmarshal(data, &a); err != nil {
		return fmt.Errorf("%w: %w", ErrResult, err)
	}
	p.Analysis, p.Steps, p.Phases = &a.Analysis, a.StepsByRank, sumPhases(a.Breakdown)
	return nil
}
