package shim

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/replay/mix"
)

// FileName is what the module is to be called: its own text refers to it so.
const FileName = "mixdown_shim.py"

//go:embed module.py
var module string

// Write writes the Python module for a mix.
func Write(w io.Writer, m mix.Mix, opts Options) error {
	rules, err := rulesOf(m, opts)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	head(&b, rules, opts)
	body := module
	for _, part := range []struct{ before, after string }{
		{"VERSION = \"\"\n", "VERSION = " + quote(opts.Version) + "\n"},
		{"RULES = ()\n", table(rules)},
	} {
		if strings.Count(body, part.before) != 1 {
			return fmt.Errorf("module.py: %q is there %d times", part.before, strings.Count(body, part.before))
		}
		body = strings.Replace(body, part.before, part.after, 1)
	}
	b.WriteString(body)
	_, err = w.Write(b.Bytes())
	return err
}

// head says how to use the module and what it was made of. All that others chose
// is quoted: nothing in a name ends a comment.
func head(b *bytes.Buffer, rules []rule, opts Options) {
	fmt.Fprintf(b, "# Written by mixdown %s.\n", bare(opts.Version))
	b.WriteString("# To apply it, put these two lines at the top of the training script, before other imports of torch.distributed:\n")
	b.WriteString("#     import mixdown_shim\n#     mixdown_shim.install()\n#\n")
	b.WriteString("# Its rules, the first that matches decides (PyTorch's name of the backend behind them):\n")
	for i, r := range rules {
		fmt.Fprintf(b, "#     %d. %s  -> %s%s\n", i+1, quote(r.String()), quote(r.backend), remark(r))
	}
	b.WriteString("#\n")
}

// remark is what there is to know about a rule.
func remark(r rule) string {
	switch {
	case !r.sized():
	case r.Op == comm.AllToAllV || r.Op == comm.Batch:
		return "  (only within sized(): members know no common size)"
	case r.Op == comm.AllToAll:
		return "  (all_to_all with lists only within sized())"
	case r.Op == "":
		return "  (uneven all_to_all and batches only within sized())"
	}
	return ""
}

// table is the rules in Python.
func table(rules []rule) string {
	var b strings.Builder
	b.WriteString("RULES = (\n")
	for _, r := range rules {
		most := "None"
		if n := r.most(); n < math.MaxInt64 {
			most = strconv.FormatInt(n, 10)
		}
		fmt.Fprintf(&b, "    Rule(%s, op=%s, least=%d, most=%s, group=%s, backend=%s),\n",
			quote(r.String()), optional(string(r.Op)), r.Min, most, optional(r.Group), quote(r.backend))
	}
	b.WriteString(")\n")
	return b.String()
}

func optional(s string) string {
	if s == "" {
		return "None"
	}
	return quote(s)
}

// quote is a Python string of printable ASCII. Go's escapes are all Python's too,
// in text that is valid UTF-8.
func quote(s string) string { return strconv.QuoteToASCII(strings.ToValidUTF8(s, "?")) }

// bare is text for a comment, without quotation marks.
func bare(s string) string {
	q := quote(s)
	return q[1 : len(q)-1]
}
