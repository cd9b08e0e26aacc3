package gate

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"mixdown/analyze/gate/shift"
	"mixdown/analyze/report"
)

// ErrTooFewSteps: a baseline whose noise can't be known.
var ErrTooFewSteps = errors.New("too few steps")

// SuggestOptions say what policy to write. Start from DefaultSuggestOptions.
type SuggestOptions struct {
	Samples    Samples
	Confidence float64
	// MostOperations is how many kinds of communication have rules of their own.
	MostOperations int
}

// DefaultSuggestOptions are those of "mixdown gate init".
func DefaultSuggestOptions() SuggestOptions {
	return SuggestOptions{Samples: Samples{DefaultWarmup, DefaultMin}, Confidence: DefaultConfidence, MostOperations: 8}
}

// What limits are made of.
const (
	// suggestErrors is how many standard errors of the shift a limit is. A change of
	// twice the limit is then as far from the limit as the limit is from none.
	suggestErrors = 4.0
	// suggestConfidence is that of the noise which few values may hide.
	suggestConfidence = 0.95
	// suggestLeast is the smallest limit, relative to the median: machines differ
	// from day to day by about that.
	suggestLeast = 0.01
	// suggestBetween is how many times the distance between the medians of several
	// baselines a limit is.
	suggestBetween = 2.0
	// suggestMost is the largest limit that is worth a rule.
	suggestMost = 0.5
	// suggestShare is the share of the step from which a kind of communication has
	// a rule of its own, and the part of that which is the least absolute limit.
	suggestShare = 0.01
)

// Noise is what the values of a metric in one or several clean runs are like.
type Noise struct {
	Median  float64 // of the runs' medians
	Spread  float64 // standard deviation between the steps of a run, outliers left out
	Between float64 // largest distance between the runs' medians; 0 for a single run
	Steps   int     // of the run that has fewest
	// Degrees of freedom of Spread: the steps of all runs less their means.
	Degrees int
	// Dependence of each step on the one before, see shift.Dependence.
	Dependence float64
	// Outliers of all runs.
	Outliers int
}

// NoiseOf measures it; every run has at least two values.
func NoiseOf(runs ...[]float64) Noise {
	n := Noise{Steps: len(runs[0]), Dependence: shift.Dependence(runs...)}
	var medians []float64
	var squares, degrees float64
	for _, v := range runs {
		sd, outliers := shift.Spread(v)
		f := float64(len(v) - outliers - 1)
		squares, degrees = squares+sd*sd*f, degrees+f
		n.Outliers += outliers
		n.Steps = min(n.Steps, len(v))
		medians = append(medians, shift.Median(v, 0).Median)
	}
	if degrees > 0 {
		n.Spread, n.Degrees = math.Sqrt(squares/degrees), int(degrees)
	}
	n.Median = shift.Median(medians, 0).Median
	n.Between = slices.Max(medians) - slices.Min(medians)
	return n
}

// Limit is the change that such noise hardly ever shows, in the unit of the
// values: between two runs of as many steps as the shortest of these. It leaves room
// for what so few values may hide of the noise, and for as much dependence between
// steps as a check allows for before it passes.
func (n Noise) Limit() float64 {
	dependence := 0.0
	if n.Steps >= shift.LeastDependent {
		dependence = shift.BoundOf(n.Dependence, 2*n.Steps, ruleOutConfidence)
	}
	sd := shift.SpreadBound(n.Spread, n.Degrees+1, suggestConfidence) * math.Sqrt(shift.Widening(dependence, n.Steps))
	return max(suggestErrors*shift.ErrorOf(sd, n.Steps, n.Steps), suggestBetween*n.Between, suggestLeast*math.Abs(n.Median))
}

// Suggest writes a policy, as commented YAML, whose limits come from the noise of
// clean runs of one job. Several runs show how machines differ from run to run,
// which the steps of one run can't.
func Suggest(runs []*Record, opts SuggestOptions) ([]byte, error) {
	for _, r := range runs {
		if r.Mean == nil {
			return nil, fmt.Errorf("%s: %w: it is the result of a replay; write its rules by hand (mixdown help gates)", r.Name(), ErrNotRecord)
		}
		if n := len(r.Steps) - opts.Samples.Warmup; n < opts.Samples.Min {
			return nil, fmt.Errorf("%s: %w: %d after %d of warm-up, at least %d are needed to know its noise", r.Name(), ErrTooFewSteps, max(n, 0), opts.Samples.Warmup, opts.Samples.Min)
		}
	}
	s := suggestion{runs: runs, opts: opts}
	s.head()
	step, _ := s.noise(Step, nil)
	for _, m := range []Metric{Step, Compute, ExposedComm, Idle} {
		s.rule(m, nil, step.Median)
	}
	s.operations(step.Median)
	s.tail()
	return s.b.Bytes(), nil
}

type suggestion struct {
	runs []*Record
	opts SuggestOptions
	b    bytes.Buffer
}

// noise is that of a metric, false when it is not known of every run.
func (s *suggestion) noise(m Metric, l Labels) (Noise, bool) {
	var lists [][]float64
	for _, r := range s.runs {
		v := r.values(m, l, s.opts.Samples.Warmup)
		if v.unknown != "" || v.absent {
			return Noise{}, false
		}
		lists = append(lists, v.list)
	}
	return NoiseOf(lists...), true
}

func (s *suggestion) head() {
	var names []string
	for _, r := range s.runs {
		names = append(names, report.Printable(r.Name()))
	}
	f := s.runs[0].Facts
	fmt.Fprintf(&s.b, `# A policy of "mixdown gate", made from the noise of %s.
# %s, %s, backend %s. "mixdown help gates" explains every key.
#
# A limit is %v standard errors of the difference between two runs of so many
# steps, as large as these may be, but at least %v %%`, strings.Join(names, " and "), f.world(), cmp.Or(f.Device, "device unknown"), cmp.Or(f.Backend, "unknown"), suggestErrors, 100*suggestLeast)
	if len(s.runs) > 1 {
		fmt.Fprintf(&s.b, " and %v times the distance between these runs.\n", suggestBetween)
	} else {
		s.b.WriteString(".\n# One run doesn't show how runs differ from day to day: name several baselines to know.\n")
	}
	fmt.Fprintf(&s.b, `version: 1
samples:
  warmup: %d  # first steps of each run to leave out
  min: %d     # fewer steps than this are inconclusive
# The chance of any false alarm from noise between steps is below %.2g %%.
confidence: %v
comparable:
  # Items that may differ: %s.
  ignore: []
rules:
`, s.opts.Samples.Warmup, s.opts.Samples.Min, 100*(1-s.opts.Confidence), s.opts.Confidence, joinItems(Items()))
}

// rule writes one, or why there is none.
func (s *suggestion) rule(m Metric, l Labels, step float64) {
	n, ok := s.noise(m, l)
	name := string(m) + l.String()
	if !ok || n.Median == 0 {
		return
	}
	noise := fmt.Sprintf("median %s, noise %s of it, %d steps", m.Unit().Format(n.Median), strings.TrimPrefix(percent(n.Spread/n.Median), "+"), n.Steps)
	if n.Outliers > 0 {
		noise += ", " + counting(n.Outliers, "outlier") + " left out"
	}
	if len(s.runs) > 1 {
		noise += ", runs apart by " + strings.TrimPrefix(percent(n.Between/n.Median), "+")
	}
	limit := n.Limit()
	relative := roundUp(limit / n.Median)
	if relative > suggestMost {
		fmt.Fprintf(&s.b, "  # left out: %s: %s; its limit would be %.0f %%\n", comment(name), noise, 100*relative)
		return
	}
	absolute := max(limit/2, suggestShare*suggestShare*step)
	fmt.Fprintf(&s.b, "  # %s\n  - %s\n", noise, scalar(fmt.Sprintf("%s +%s%% and +%s", name, strconv.FormatFloat(100*relative, 'g', 4, 64), nanoseconds(absolute))))
}

// operations writes rules of the kinds of communication that cost most.
func (s *suggestion) operations(step float64) {
	type candidate struct {
		labels Labels
		n      Noise
	}
	var list []candidate
	seen := map[string]bool{}
	for i := range s.runs[0].Operations {
		o := &s.runs[0].Operations[i]
		l := Labels{ByGroup: o.Group, ByOp: o.Op}
		if strings.ContainsAny(o.Group+o.Op, "*?") || seen[l.String()] {
			continue
		}
		seen[l.String()] = true
		if n, ok := s.noise(ExposedComm, l); ok && n.Median >= suggestShare*step {
			list = append(list, candidate{l, n})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.n.Median, a.n.Median) })
	for _, c := range list[:min(len(list), s.opts.MostOperations)] {
		s.rule(ExposedComm, c.labels, step)
	}
}

func (s *suggestion) tail() {
	s.b.WriteString(`  # The work of a step must not change: without these rules a step with other
  # operations or bytes is not comparable (exit code 4), with them it is a regression.
  # - count[op=*] +-0
  # - bytes[op=*] +-1%
# Accepted breaches, each with a reason and the last day on which it holds.
waivers: []
#  - rule: step*
#    reason: the new data loader is slow until its cache lands
#    expires: 2027-01-31
`)
}

// roundUp rounds a share up to two digits.
func roundUp(share float64) float64 {
	if share <= 0 {
		return 0
	}
	scale := math.Pow(10, 1-math.Floor(math.Log10(share)))
	return math.Ceil(share*scale-1e-9) / scale
}

// nanoseconds writes a limit in time with two digits.
func nanoseconds(ns float64) string {
	for _, u := range []struct {
		name  string
		scale float64
	}{{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}} {
		if ns >= u.scale {
			v, _ := strconv.ParseFloat(strconv.FormatFloat(ns/u.scale, 'g', 2, 64), 64)
			return strconv.FormatFloat(v, 'f', -1, 64) + u.name
		}
	}
	return strconv.FormatFloat(math.Ceil(ns), 'f', 0, 64) + "ns"
}

// scalar writes text as a YAML scalar: quoted where YAML would read something else.
func scalar(text string) string {
	if strings.ContainsAny(text, `"':#&*!|>{}`+"\\\n") || report.Printable(text) != text {
		return "'" + strings.ReplaceAll(report.Printable(text), "'", "''") + "'"
	}
	return text
}

// comment makes text safe for a comment.
func comment(text string) string { return report.Printable(text) }
