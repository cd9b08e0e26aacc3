package speedup

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"mixdown/analyze/report"
)

// writeCodecs writes what compression costs beside what it gains: time in the codecs,
// and accuracy.
func (r *Report) writeCodecs(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	any := false
	for _, v := range r.Variants {
		for _, c := range v.Codecs {
			if !any {
				fmt.Fprintf(t, "\ncompression\tcodec\toperations\tsmaller\tof the step, in the codec\tlargest error\trelative error (L2)\n")
				any = true
			}
			fmt.Fprintf(t, "%s\t%s\t%d\t%.2fx\t%s\t%s\t%s\n", report.Printable(v.Name), c.Name, c.Operations, c.Ratio,
				report.Duration(c.Time), errorText(c.MaxAbs), errorText(c.Relative))
		}
	}
	t.Flush()
	if any {
		b.WriteString("Errors are on random numbers up to 1, rounding of the library's own included; a job's data may fare better or worse.\n")
	}
}

func errorText(value *float64) string {
	if value == nil {
		return "not checked"
	}
	return fmt.Sprintf("%.2g", *value)
}
