package mix

import (
	"fmt"
	"math"
	"strings"

	"mixdown/replay/plan/planpb"
)

// Of is the mix of some rules, with the text that Parse reads them from.
func Of(rules ...Rule) Mix {
	text := make([]string, len(rules))
	for i, r := range rules {
		text[i] = r.String()
	}
	return Mix{Text: strings.Join(text, ","), Rules: rules}
}

// String is the rule as Parse reads it.
func (r Rule) String() string {
	op := string(r.Op)
	if op == "" {
		op = "*"
	}
	hi := r.Max
	if hi == 0 {
		hi = math.MaxInt64
	}
	switch {
	case r.Min > 0 && hi < math.MaxInt64:
		op += fmt.Sprintf("@%s-%s", formatSize(r.Min), formatSize(hi))
	case r.Min > 0:
		op += "@>=" + formatSize(r.Min)
	case hi < math.MaxInt64:
		op += "@<=" + formatSize(hi)
	}
	if r.Group != "" {
		op += "@group:" + r.Group
	}
	return op + "=" + r.Backend
}

// formatSize writes a size as ParseSize reads it, in the largest unit without
// a fraction.
func formatSize(n int64) string {
	for _, u := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n > 0 && n%u.bytes == 0 {
			return fmt.Sprintf("%d%s", n/u.bytes, u.name)
		}
	}
	return fmt.Sprintf("%dB", n)
}

// SizeOf tells the size by which a mix decides on each communication of a rank
// of a workload, in bytes.
func SizeOf(w *planpb.Workload) func(rank int32, c *planpb.Communication) int64 {
	return measure(w).of
}
