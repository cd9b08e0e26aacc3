package report

import (
	"bytes"
	"strings"
	"testing"
)

// TestNamesFromTracesAreNoMarkdown: a name is text, whatever it holds, and does
// not end its cell.
func TestNamesFromTracesAreNoMarkdown(t *testing.T) {
	const name = "\x1b[2Ja|b`c`<script>[x](http://evil) ![](i) **b** _i_ ~~s~~ #1 @all www.evil.com\nrow | 2 \\"
	a := &Analysis{Run: Run{Backend: name, Steps: []Step{{Name: name}}}, Communication: []Communication{{Group: name, Op: "x|y", DType: &[]string{name}[0]}},
		Ranks: []Rank{{}, {}}, Diagnostics: []Diagnostic{{Code: name, Example: name}}}
	var b bytes.Buffer
	if err := a.WriteMarkdown(&b, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, bad := range []string{"\x1b", "<script", "](", "`c`", " **", "![", "@all", "www.", "://", " #1"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q came through:\n%s", bad, text)
		}
	}
	columns := 0
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		n := strings.Count(strings.NewReplacer(`\\`, "", `\|`, "").Replace(line), "|")
		if columns != 0 && n != columns {
			t.Errorf("a row with %d bars in a table with %d: %s", n, columns, line)
		}
		columns = n
	}
}
