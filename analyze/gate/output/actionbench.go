package output

import (
	"fmt"
	"io"
	"strconv"
)

// benchmark is an entry of the JSON that benchmark-action/github-action-benchmark
// reads with tool: customSmallerIsBetter or customBiggerIsBetter (its README).
type benchmark struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	Range string  `json:"range,omitempty"`
	Extra string  `json:"extra,omitempty"`
}

func writeSmaller(w io.Writer, r *Document) error { return writeBenchmarks(w, r, false) }
func writeBigger(w io.Writer, r *Document) error  { return writeBenchmarks(w, r, true) }

// writeBenchmarks writes the candidate's medians of the metrics of which more is
// worse, or of those of which more is better: the action takes one kind a file.
func writeBenchmarks(w io.Writer, r *Document, bigger bool) error {
	list := []benchmark{}
	written := map[string]bool{}
	for i := range r.Checks {
		c := &r.Checks[i]
		if c.Metric.HigherIsBetter() != bigger || c.Candidate == nil || c.Candidate.N == 0 || written[c.Name()] {
			continue
		}
		written[c.Name()] = true
		b := benchmark{Name: clean(c.Name()), Unit: string(c.Unit), Value: c.Candidate.Median, Extra: clean(message(c))}
		if c.Low != nil && c.Change != nil { // the interval is that of the change
			b.Range = "± " + strconv.FormatFloat((*c.High-*c.Low)/2, 'g', 4, 64)
		}
		b.Extra = fmt.Sprintf("%s\nsteps: %s", b.Extra, steps(c))
		list = append(list, b)
	}
	return encode(w, list)
}
