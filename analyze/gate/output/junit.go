package output

import (
	"encoding/xml"
	"io"
	"strings"

	"mixdown/analyze/gate"
	"mixdown/analyze/report"
)

// The elements of JUnit's XML that Jenkins, GitLab and others read, as the Ant
// task writes it and testmoapp/junitxml documents it. A check is a test case, its
// metric the class.
type (
	junitSuites struct {
		XMLName  xml.Name   `xml:"testsuites"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Suite    junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitMessage `xml:"failure"`
		Error   *junitMessage `xml:"error"`
		Skipped *junitMessage `xml:"skipped"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes regressions as failures, what can't be told as errors, and
// waived breaches as skipped tests; a warning is a passed test with output.
func writeJUnit(w io.Writer, r *Document) error {
	s := junitSuite{Name: r.tool(), Time: "0"}
	add := func(name, value string) { s.Properties = append(s.Properties, junitProperty{name, clean(value)}) }
	add("outcome", string(r.Outcome))
	before, after := r.sides()
	if r.Policy != "" {
		add("policy", r.Policy)
	}
	if r.Before != nil {
		add(before, r.Before.Source)
	}
	add(after, r.After.Source)
	for i := range r.Checks {
		c := &r.Checks[i]
		one := junitCase{Class: "mixdown." + r.Verb + "." + string(c.Metric), Name: clean(title(c)), Time: "0"}
		m := &junitMessage{Message: clean(message(c)), Type: string(c.Outcome), Text: clean(details(c))}
		switch {
		case c.Outcome == gate.Regression:
			one.Failure = m
			s.Failures++
		case c.Stops():
			one.Error = m
			s.Errors++
		case c.Outcome == gate.Waived:
			one.Skipped = &junitMessage{Message: m.Message}
			s.Skipped++
		default:
			one.Out = clean(message(c))
		}
		s.Cases = append(s.Cases, one)
	}
	s.Tests = len(s.Cases)
	all := junitSuites{Name: s.Name, Tests: s.Tests, Failures: s.Failures, Errors: s.Errors, Skipped: s.Skipped, Suite: s}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", " ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// details are the figures of a check in lines.
func details(c *gate.Check) string {
	before, after, change, interval := figures(c)
	var lines []string
	add := func(name, value string) {
		if value != "" {
			lines = append(lines, name+": "+value)
		}
	}
	add("limit", c.Limit)
	add("baseline", before)
	add("candidate", after)
	add("change", change)
	add("interval", interval)
	add("p", significance(c))
	add("steps", steps(c))
	add("see", advice(c))
	return strings.Join(lines, "\n")
}

// clean makes text printable line by line; XML has no way to write control
// characters.
func clean(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = report.Printable(lines[i])
	}
	return strings.Join(lines, "\n")
}
