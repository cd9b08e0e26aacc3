package output

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"mixdown/analyze/gate"
	"mixdown/analyze/report"
)

// annotationLimit is how many annotations of a level GitHub shows of a step; the
// rest it drops without a word.
const annotationLimit = 10

// Levels of annotations.
const (
	errorLevel   = "error"
	warningLevel = "warning"
	noticeLevel  = "notice"
)

// WriteAnnotations writes GitHub's workflow commands: errors for regressions,
// warnings for breaches that only warn and for what can't be told, notices for
// waived breaches. The last annotation of a level that has too many counts the
// others.
func WriteAnnotations(w io.Writer, r *Document) error {
	type annotation struct {
		title, text string
		line        int
	}
	levels := map[string][]annotation{}
	add := func(level, title, text string, line int) {
		levels[level] = append(levels[level], annotation{title, text, line})
	}
	for i := range r.Checks {
		c := &r.Checks[i]
		text := message(c)
		if a := advice(c); a != "" {
			text += "\nsee: " + a
		}
		switch c.Outcome {
		case gate.Regression:
			add(errorLevel, "regression: "+c.Name(), text, c.Line)
		case gate.Warning:
			add(warningLevel, c.Name(), text, c.Line)
		case gate.Inconclusive:
			add(warningLevel, "inconclusive: "+c.Name(), text, c.Line)
		case gate.Waived:
			add(noticeLevel, "waived: "+c.Name(), text, c.Line)
		}
	}
	for _, line := range comparisonLines(r, gate.Differs) {
		add(errorLevel, "not comparable", line, 0)
	}
	var b bytes.Buffer
	for _, level := range []string{errorLevel, warningLevel, noticeLevel} {
		list := levels[level]
		if n := len(list); n > annotationLimit {
			list = append(list[:annotationLimit-1:annotationLimit-1], annotation{title: r.tool(), text: fmt.Sprintf("and %d more: see the job's summary", n-annotationLimit+1)})
		}
		for _, a := range list {
			place := ""
			if r.Policy != "" {
				place = fmt.Sprintf("file=%s,line=%d,", property(r.Policy), max(a.line, 1))
			}
			fmt.Fprintf(&b, "::%s %stitle=%s::%s\n", level, place, property(a.title), data(a.text))
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// data escapes the text of a workflow command, as @actions/core does.
func data(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(report.Printable(line), "%", "%25")
	}
	return strings.Join(lines, "%0A")
}

// property escapes the value of a property of a workflow command.
func property(text string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(data(text))
}
