package speedup

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"mixdown/analyze/report"
)

// SchemaVersion is that of the JSON written by this package.
const SchemaVersion = 1

// Report is the result of "mixdown replay".
type Report struct {
	SchemaVersion int       `json:"schema_version"`
	Device        string    `json:"device"` // "host": buffers in host memory; "cuda" or "hip": on GPUs
	DeviceName    string    `json:"device_name,omitempty"`
	WorldSize     int       `json:"world_size"`
	Workers       int       `json:"workers"`
	Step          string    `json:"step"`
	Operations    int       `json:"operations"` // communications of one step, each rank's counted
	Estimated     int       `json:"operations_estimated"`
	Backends      []Backend `json:"backends"`
	// Hosts are those of a replay on several, absent for one on this host alone.
	Hosts         []Host         `json:"hosts,omitempty"`
	Substitutions []Substitution `json:"substitutions"`
	Folded        *Folded        `json:"folded"` // null: all ranks ran
	Baseline      Baseline       `json:"baseline"`
	Variants      []Variant      `json:"variants"`
	// Searched is how many orders the search found of which the best ran; absent without
	// one that was made for this replay.
	Searched int `json:"searched,omitempty"`
	// PredictionOff is how far predicted speedups were from measured ones, as a share of
	// these, in the mean; null where none was predicted.
	PredictionOff *float64 `json:"prediction_off"`
	// Traced is what the traced step could gain at most, where the trace ran.
	Traced      *report.CriticalPath `json:"traced_step"` // null when not known
	Diagnostics []report.Diagnostic  `json:"diagnostics"`
}

// Backend is a library that took part.
type Backend struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Host took part in a replay on several.
type Host struct {
	Name      string `json:"name"` // with its address
	Ranks     []int  `json:"ranks"`
	Interface string `json:"interface,omitempty"` // by which it reaches the others
	CPUs      string `json:"cpus,omitempty"`      // that its ranks may run on, as Linux lists them
	NUMA      string `json:"numa,omitempty"`      // nodes of their memory
	// ClockBound is how far its idea of a common start may be off, RoundTrip the
	// shortest time to it and back, ns.
	ClockBound int64 `json:"clock_bound_ns"`
	RoundTrip  int64 `json:"round_trip_ns"`
}

// String is a line on the host.
func (h Host) String() string {
	text := fmt.Sprintf("on %s: ranks %s", report.Printable(h.Name), report.Ranges(h.Ranks))
	if h.Interface != "" {
		text += ", by " + report.Printable(h.Interface)
	}
	if h.CPUs != "" {
		text += ", CPUs " + report.Printable(h.CPUs)
	}
	if h.NUMA != "" {
		text += ", memory of nodes " + report.Printable(h.NUMA)
	}
	return fmt.Sprintf("%s; %s to it and back, clock within %s", text, report.Duration(h.RoundTrip), report.Duration(h.ClockBound))
}

// Substitution names a backend of the trace and what ran in its place.
type Substitution struct {
	Traced   string `json:"traced"`
	Replayed string `json:"replayed"`
}

// Folded says that some ranks ran for all.
type Folded struct {
	From    int     `json:"ranks"` // of the job's programs
	Kept    []int32 `json:"kept"`  // global ranks that ran
	Resized int     `json:"resized_operations"`
	Alone   int     `json:"operations_as_time"` // of groups of which one rank ran
}

// Baseline is the traced plan as it was replayed.
type Baseline struct {
	Name       string   `json:"name"`
	Mix        string   `json:"mix"`
	Iterations []int64  `json:"iterations_ns"`
	Median     int64    `json:"median_ns"`
	Verified   bool     `json:"data_verified"`
	Fidelity   Fidelity `json:"fidelity"`
}

// Fidelity says how close the replay of the unchanged plan came to the trace.
type Fidelity struct {
	TraceStep    int64   `json:"trace_step_ns"`
	ReplayedStep int64   `json:"replayed_step_ns"`
	Ratio        float64 `json:"ratio"`
}

// Variant is an alternative, measured in turns with the baseline.
type Variant struct {
	Name       string     `json:"name"`
	Mix        string     `json:"mix"`
	Schedule   string     `json:"schedule"`
	Iterations []int64    `json:"iterations_ns"`
	Median     int64      `json:"median_ns"`
	Speedup    float64    `json:"speedup"`
	CI95       [2]float64 `json:"ci95"`
	Coverage   float64    `json:"ci_coverage"`
	Predicted  *float64   `json:"predicted_speedup"` // null: not simulated
	Verified   bool       `json:"data_verified"`
	// Memory is the activations that the fullest rank holds with another schedule,
	// in multiples of the traced order's; null where the order is the traced one.
	Memory *float64 `json:"activation_memory"`
	// Codecs are what codecs did to the payloads; null where none are compressed.
	Codecs []Codec `json:"codecs"`
	// Reasons say why each rule stands in a mix that was chosen; null otherwise.
	Reasons []Reason `json:"reasons"`
	// BaselineIterations are those the variant ran in turns with.
	BaselineIterations []int64 `json:"baseline_iterations_ns"`
	BaselineMedian     int64   `json:"baseline_median_ns"`
}

// Codec is what one codec did to a variant's payloads in a step, all ranks together.
// Its error is against the exact results, on random numbers of the data check.
type Codec struct {
	Name            string   `json:"codec"`
	Operations      int64    `json:"operations"`
	Bytes           int64    `json:"bytes"` // that it compressed
	CompressedBytes int64    `json:"compressed_bytes"`
	Ratio           float64  `json:"ratio"`
	Time            int64    `json:"codec_ns"`          // of the step: median over iterations, on the rank that needs most
	MaxAbs          *float64 `json:"max_abs_error"`     // null: data was not checked
	Relative        *float64 `json:"relative_l2_error"` // likewise
}

// Reason says why a rule stands in a chosen mix.
type Reason struct {
	Rule string `json:"rule"`
	Text string `json:"text"`
}

// Finish computes what follows from the iterations.
func (r *Report) Finish(traceStep int64) error {
	r.Baseline.Median = Median(r.Baseline.Iterations)
	r.Baseline.Fidelity = Fidelity{TraceStep: traceStep, ReplayedStep: r.Baseline.Median}
	if traceStep > 0 {
		r.Baseline.Fidelity.Ratio = float64(r.Baseline.Median) / float64(traceStep)
	}
	off, predicted := 0.0, 0
	for i := range r.Variants {
		v := &r.Variants[i]
		s, err := Compare(v.BaselineIterations, v.Iterations)
		if err != nil {
			return fmt.Errorf("variant %q: %w", v.Name, err)
		}
		v.Median, v.BaselineMedian = Median(v.Iterations), Median(v.BaselineIterations)
		v.Speedup, v.CI95, v.Coverage = s.Speedup, s.Interval, s.Coverage
		if v.Predicted != nil && v.Speedup > 0 {
			off += math.Abs(*v.Predicted/v.Speedup - 1)
			predicted++
		}
		for _, w := range s.Warnings {
			r.Warn("few-iterations", w.Error())
		}
	}
	if predicted > 0 {
		off /= float64(predicted)
		r.PredictionOff = &off
	}
	return nil
}

// Warn adds a diagnostic, counted when it is there already.
func (r *Report) Warn(code, text string) { r.WarnTimes(code, 1, text) }

// WarnTimes is Warn for what was found so many times.
func (r *Report) WarnTimes(code string, times int64, text string) {
	for i := range r.Diagnostics {
		if r.Diagnostics[i].Code == code {
			r.Diagnostics[i].Count += times
			return
		}
	}
	r.Diagnostics = append(r.Diagnostics, report.Diagnostic{Code: code, Count: times, Example: text})
}

// Verified says whether the data of every plan was compared and right.
func (r *Report) Verified() bool {
	ok := r.Baseline.Verified
	for _, v := range r.Variants {
		ok = ok && v.Verified
	}
	return ok
}

// drawSpeedups draws each speedup with its interval on one axis; | is no change.
func (r *Report) drawSpeedups(b *strings.Builder, look report.Look) {
	if len(r.Variants) == 0 {
		return
	}
	low, high, name := 1.0, 1.0, 0
	for _, v := range r.Variants {
		low, high = min(low, v.CI95[0]), max(high, v.CI95[1])
		name = max(name, utf8.RuneCountInString(v.Name))
	}
	margin := max(0.05*(high-low), 0.01)
	low, high = max(low-margin, 0), high+margin
	name = min(name, look.Width()/3)
	columns := min(look.Width()-name-4, 60)
	left, right := fmt.Sprintf("%.2f", low), fmt.Sprintf("%.2f", high)
	fmt.Fprintf(b, "\n%-*s  %s%*s\n", name, "speedup", left, columns-len(left), right)
	for _, v := range r.Variants {
		text := []rune(report.Printable(v.Name))
		if len(text) > name {
			text = append(text[:name-1:name-1], '~')
		}
		line := fmt.Sprintf("%-*s  %s", name, string(text), look.Interval(v.CI95[0], v.Speedup, v.CI95[1], 1, low, high, columns))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer, look report.Look) error {
	var b strings.Builder
	step := r.Step
	if step == "" {
		step = "the whole trace"
	}
	where := "in host memory (says nothing about GPUs)"
	if r.Device != "host" {
		where = "on GPUs (" + report.Printable(r.DeviceName) + ")"
	}
	fmt.Fprintf(&b, "Replayed %s: %d communications on %d workers, buffers %s", report.Printable(step), r.Operations, r.Workers, where)
	b.WriteString("\n")
	for _, x := range r.Backends {
		fmt.Fprintf(&b, "  %s: %s\n", x.Name, report.Printable(x.Version))
	}
	for _, h := range r.Hosts {
		fmt.Fprintf(&b, "  %s\n", h)
	}
	for _, s := range r.Substitutions {
		fmt.Fprintf(&b, "  the traced %s is replaced by %s\n", s.Traced, s.Replayed)
	}
	if f := r.Folded; f != nil {
		fmt.Fprintf(&b, "  folded %d -> %d ranks: of ranks that do the same some ran, in smaller groups (%d operations); %d operations of groups with one of them ran as time\n",
			f.From, len(f.Kept), f.Resized, f.Alone)
	}
	if r.Searched > 0 {
		fmt.Fprintf(&b, "  of %d orders that fit, by a search, those predicted best ran\n", r.Searched)
	}
	if r.Estimated > 0 {
		fmt.Fprintf(&b, "  %d communications have estimated splits\n", r.Estimated)
	}
	b.WriteString("\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	optional := func(have func(Variant) bool) func(string) string {
		shown := slices.ContainsFunc(r.Variants, have)
		return func(text string) string {
			if !shown {
				return ""
			}
			return text + "\t"
		}
	}
	simulated := optional(func(v Variant) bool { return v.Predicted != nil })
	ordered := optional(func(v Variant) bool { return v.Memory != nil })
	number := func(format string, value *float64) string {
		if value == nil {
			return "-"
		}
		return fmt.Sprintf(format, *value)
	}
	fmt.Fprintf(t, "plan\tstep (median)\tspeedup\t95 %% interval\t%s%sn\tdata\n", simulated("predicted"), ordered("activations held"))
	fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s%s%d\t%s\n", r.Baseline.Name+" = "+r.Baseline.Mix, report.Duration(r.Baseline.Median), "1", "", simulated(""), ordered("1.00x"), len(r.Baseline.Iterations), verified(r.Baseline.Verified))
	for _, v := range r.Variants {
		fmt.Fprintf(t, "%s\t%s\t%.3f\t%.3f .. %.3f\t%s%s%d\t%s\n", v.Name, report.Duration(v.Median), v.Speedup, v.CI95[0], v.CI95[1],
			simulated(number("%.3f", v.Predicted)), ordered(number("%.2fx", v.Memory)), len(v.Iterations), verified(v.Verified))
	}
	t.Flush()
	r.drawSpeedups(&b, look)
	if r.PredictionOff != nil {
		fmt.Fprintf(&b, "\nPredicted speedups were %.1f %% off the measured ones in the mean.\n", 100**r.PredictionOff)
	}
	for _, v := range r.Variants {
		if len(v.Reasons) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s is %s\n", v.Name, report.Printable(v.Mix))
		for _, reason := range v.Reasons {
			fmt.Fprintf(&b, "  %s: %s\n", report.Printable(reason.Rule), report.Printable(reason.Text))
		}
	}
	r.writeCodecs(&b)
	f := r.Baseline.Fidelity
	if r.Traced != nil {
		fmt.Fprintf(&b, "\nWhere the trace was made: %s.\n", report.GainText(r.Traced.Free, r.Traced.FreeByOp))
	}
	fmt.Fprintf(&b, "\nFidelity: the unchanged plan took %s, the traced step %s (ratio %.2f).\n", report.Duration(f.ReplayedStep), report.Duration(f.TraceStep), f.Ratio)
	if len(r.Diagnostics) > 0 {
		b.WriteString("\nDiagnostics\n")
		for _, d := range r.Diagnostics {
			fmt.Fprintf(&b, "  %s\n", d)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func verified(ok bool) string {
	if ok {
		return "verified"
	}
	return "NOT VERIFIED"
}
