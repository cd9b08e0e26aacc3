package output_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mixdown/analyze/gate"
	"mixdown/analyze/gate/output"
)

// hostile is a name that breaks out of every format that does not escape it.
const hostile = "evil\n::error::x\x1b[31m<script>|`]]>%0A,\"'&@team"

// steps are n values around ms.
func steps(ms float64, n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(ms * 1e6 * (1 + 0.001*float64(i%5)))
	}
	return out
}

// run is a record whose all_reduce takes ms in each of so many groups.
func run(ms float64, groups ...string) *gate.Record {
	t := gate.Times{Rank: -1, Step: steps(100, 12), Compute: steps(70, 12), Comm: steps(20, 12), Exposed: steps(20, 12), Hidden: steps(0, 12), Memory: steps(1, 12), Idle: steps(9, 12)}
	r := &gate.Record{Source: "traces " + hostile, Mean: &t, Max: &t, Facts: gate.Facts{WorldSize: 2, RanksRead: 2, Device: "gpu", Backend: hostile}}
	for i := range 12 {
		r.Steps = append(r.Steps, fmt.Sprint("step ", i))
	}
	for _, g := range groups {
		r.Operations = append(r.Operations, gate.Operation{
			Group: g, Op: "all_reduce", Size: "1..2 MiB", Phase: "backward", Ranks: 2, Count: slices.Repeat([]int64{4}, 12), Bytes: slices.Repeat([]int64{1 << 20}, 12),
			BusBytes: slices.Repeat([]int64{1 << 20}, 12), Comm: steps(ms, 12), Exposed: steps(ms, 12), Hidden: steps(0, 12), Wait: steps(0, 12), Transfer: steps(ms, 12),
		})
	}
	return r
}

// result has a regression, a warning, a waived breach, an inconclusive check, an
// improvement and a pass.
func result(t *testing.T) *output.Document {
	t.Helper()
	p, err := gate.ReadPolicy(strings.NewReader(`version: 1
rules:
  - step +5%
  - {name: regression, check: "exposed_comm[group=*] +5%"}
  - {name: warning, check: "comm[group=*] +5%", level: warn}
  - {name: waived, check: "transfer[op=all_reduce] +5%"}
  - wait[op=broadcast] +5%
  - busbw[op=all_reduce] -5%
  - step <= 300ms
waivers: [{rule: waived, reason: "a, b: c", expires: 2027-01-01}]
`), "ci/gate policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r, err := gate.Evaluate(run(10, hostile), run(12, hostile), p, time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	got := map[gate.Outcome]int{}
	for _, c := range r.Checks {
		got[c.Outcome]++
	}
	if got[gate.Regression] != 2 || got[gate.Warning] != 1 || got[gate.Waived] != 1 || got[gate.Inconclusive] != 1 || got[gate.Pass] != 2 {
		t.Fatalf("%v\n%s", got, write(t, output.Text, output.OfGate(r)))
	}
	return output.OfGate(r)
}

// many has a regression in each of n groups.
func many(t *testing.T, n int) *output.Document {
	t.Helper()
	var groups []string
	for i := range n {
		groups = append(groups, fmt.Sprintf("group %04d %s", i, strings.Repeat("x", 200)))
	}
	p := gate.DefaultPolicy()
	p.File = "gate.yaml"
	if err := p.Add("exposed_comm[group=group*] +5%"); err != nil {
		t.Fatal(err)
	}
	r, err := gate.Evaluate(run(10, groups[:min(n, 10)]...), run(12, groups[:min(n, 10)]...), p, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for one := r.Checks[0]; len(r.Checks) < n; { // more would take long to test
		one.Labels = gate.Labels{gate.ByGroup: groups[len(r.Checks)]}
		r.Checks = append(r.Checks, one)
	}
	return output.OfGate(r)
}

func write(t *testing.T, f output.Format, r *output.Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := output.Write(&b, f, r, output.Options{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestNoFormatLetsNamesOut: control characters are nowhere, and every format is
// written twice alike.
func TestNoFormatLetsNamesOut(t *testing.T) {
	r := result(t)
	for _, name := range output.Formats() {
		f := output.Format(name)
		text := write(t, f, r)
		if text == "" || text != write(t, f, r) {
			t.Errorf("%s: %d bytes, or not the same twice", f, len(text))
		}
		if i := strings.IndexFunc(text, func(c rune) bool { return c < ' ' && c != '\n' }); i >= 0 {
			t.Errorf("%s: a control character: %q", f, text[max(i-20, 0):i+20])
		}
	}
	if err := output.Write(io.Discard, "pdf", r, output.Options{}); !errors.Is(err, output.ErrFormat) {
		t.Errorf("pdf: %v", err)
	}
}

// TestText has every outcome, and the command that shows the cause.
func TestText(t *testing.T) {
	text := write(t, output.Text, result(t))
	for _, s := range []string{"regression: 2 checks of 7", "warning", "waived until 2027-01-01: a, b: c", "the selector matches nothing", "see: mixdown diff", "all_reduce 1..2 MiB backward", "the transfer itself"} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), s) {
			t.Errorf("no %q in\n%s", s, text)
		}
	}
	if text := write(t, output.Text, many(t, 100)); !strings.Contains(text, "and 60 more checks") {
		t.Errorf("%s", text)
	}
}

// TestMarkdownIsSafeAndSmall: what GitHub would render of hostile names is text,
// tables have as many cells as heads, and large results are cut with a count.
func TestMarkdownIsSafeAndSmall(t *testing.T) {
	text := regexp.MustCompile("``.*``").ReplaceAllString(write(t, output.Markdown, result(t)), "") // code is shown as it stands
	for _, bad := range []string{"<script", "@team", "\n::error"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q in\n%s", bad, text)
		}
	}
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "|") && strings.Count(line, "|") != 10 {
			t.Errorf("cells: %s", line)
		}
	}
	r := many(t, 3000)
	for _, limit := range []int{8 << 10, 100 << 10, output.SummaryLimit} {
		var b bytes.Buffer
		if err := output.WriteSummary(&b, r, limit); err != nil {
			t.Fatal(err)
		}
		if b.Len() > limit || !strings.Contains(b.String(), "more checks are not shown") {
			t.Errorf("limit %d: %d bytes", limit, b.Len())
		}
	}
}

// TestJUnit holds the XML against the rules of the schema that Jenkins and GitLab
// read by (windyroad/JUnit-Schema): nesting, required attributes, counts, at most
// one of failure, error and skipped, before system-out.
func TestJUnit(t *testing.T) {
	text := write(t, output.JUnit, result(t))
	var suites struct {
		XMLName                          xml.Name `xml:"testsuites"`
		Tests, Failures, Errors, Skipped int      `xml:",attr"`
		Suites                           []struct {
			Name     string `xml:"name,attr"`
			Tests    int    `xml:"tests,attr"`
			Failures int    `xml:"failures,attr"`
			Errors   int    `xml:"errors,attr"`
			Skipped  int    `xml:"skipped,attr"`
			Time     string `xml:"time,attr"`
			Cases    []struct {
				Class string `xml:"classname,attr"`
				Name  string `xml:"name,attr"`
				Inner []struct {
					XMLName xml.Name
					Message string `xml:"message,attr"`
				} `xml:",any"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(text), &suites); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	s := suites.Suites[0]
	if len(suites.Suites) != 1 || s.Tests != len(s.Cases) || s.Tests != 7 || s.Failures != 2 || s.Errors != 1 || s.Skipped != 1 || s.Time == "" {
		t.Errorf("%+v", s)
	}
	count := map[string]int{}
	names := map[string]bool{}
	for _, c := range s.Cases {
		if c.Class == "" || c.Name == "" || len(c.Inner) != 1 || names[c.Class+c.Name] {
			t.Errorf("%+v", c)
		}
		names[c.Class+c.Name] = true
		count[c.Inner[0].XMLName.Local]++
	}
	if count["failure"] != 2 || count["error"] != 1 || count["skipped"] != 1 || count["system-out"] != 3 {
		t.Errorf("%v", count)
	}
}

// TestSARIF holds the log against what the schema of SARIF 2.1.0 requires, and
// GitHub beyond it: version, tool.driver.name, message.text, a level and kind of
// the lists, a rule for every ruleIndex, a location with a relative URI and a
// line, fingerprints, at most 5000 results. examples/ci/check.sh asks the schema
// itself.
func TestSARIF(t *testing.T) {
	var log struct {
		Schema  string `json:"$schema"`
		Version string `json:"version"`
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name  string
					Rules []struct{ ID string }
				}
			}
			Results []struct {
				RuleID    string
				RuleIndex int
				Kind      string
				Level     string
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
				PartialFingerprints map[string]string
				Suppressions        []struct{ Kind, Justification string }
			}
		}
	}
	if err := json.Unmarshal([]byte(write(t, output.SARIF, result(t))), &log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || !strings.HasSuffix(log.Schema, "sarif-2.1.0.json") || len(log.Runs) != 1 {
		t.Fatalf("%+v", log)
	}
	d := log.Runs[0]
	if d.Tool.Driver.Name == "" || len(d.Tool.Driver.Rules) != 7 || len(d.Results) != 5 {
		t.Errorf("%d rules, %d results", len(d.Tool.Driver.Rules), len(d.Results))
	}
	prints := map[string]bool{}
	for _, r := range d.Results {
		known := r.RuleIndex >= 0 && r.RuleIndex < len(d.Tool.Driver.Rules) && d.Tool.Driver.Rules[r.RuleIndex].ID == r.RuleID
		if !known || r.Message.Text == "" || !slices.Contains([]string{"none", "note", "warning", "error"}, r.Level) || (r.Kind != "fail") != (r.Level == "none") {
			t.Errorf("%+v", r)
		}
		l := r.Locations[0].PhysicalLocation
		if l.ArtifactLocation.URI != "ci/gate%20policy.yaml" || l.Region.StartLine < 3 {
			t.Errorf("%+v", l)
		}
		for _, p := range r.PartialFingerprints {
			if prints[p] {
				t.Errorf("fingerprint %s twice", p)
			}
			prints[p] = true
		}
		if (r.RuleID == "waived") != (len(r.Suppressions) == 1) {
			t.Errorf("%+v", r)
		}
	}
	if err := json.Unmarshal([]byte(write(t, output.SARIF, many(t, 5003))), &log); err != nil {
		t.Fatal(err)
	}
	if n := len(log.Runs[0].Results); n != 5000 || !strings.Contains(log.Runs[0].Results[n-1].Message.Text, "and 3 more") {
		t.Errorf("%d results", n)
	}
}

// command is GitHub's grammar of workflow commands (actions/runner,
// src/Runner.Common/ActionCommand.cs).
var command = regexp.MustCompile(`^::(error|warning|notice) file=([^,:]+),line=([0-9]+),title=([^,:]+)::(.+)$`)

// TestAnnotations: one line each in GitHub's grammar, at most ten of a level, the
// last of which counts the rest.
func TestAnnotations(t *testing.T) {
	levels := map[string]int{}
	for _, line := range strings.Split(strings.TrimSuffix(write(t, output.GitHub, result(t)), "\n"), "\n") {
		m := command.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("no command: %s", line)
			continue
		}
		levels[m[1]]++
	}
	if levels["error"] != 2 || levels["warning"] != 2 || levels["notice"] != 1 {
		t.Errorf("%v", levels)
	}
	text := write(t, output.GitHub, many(t, 25))
	if n := strings.Count(text, "::error "); n != 10 || !strings.Contains(text, "::and 16 more") {
		t.Errorf("%d annotations\n%s", n, text)
	}
}

// TestBenchfmt holds the file against the grammar of the Go benchmark format:
// lines of "key: value" whose keys begin in lower case, and results whose name
// begins with Benchmark and an upper-case letter, an iteration count, and pairs of
// value and unit. examples/ci/check.sh has benchstat read it.
func TestBenchfmt(t *testing.T) {
	config := regexp.MustCompile(`^[a-z][^\sA-Z]*:[ \t].+$`)
	bench := regexp.MustCompile(`^Benchmark[A-Z][^\s]* [1-9][0-9]*( [-+0-9.e]+ [^\s]+)+$`)
	key, results := "", map[string]int{}
	for _, line := range strings.Split(write(t, output.Benchfmt, result(t)), "\n") {
		switch {
		case line == "", strings.HasPrefix(line, "# "): // readers skip other lines
		case bench.MatchString(line):
			results[key]++
		case config.MatchString(line):
			if k, v, _ := strings.Cut(line, ": "); k == "run" {
				key = v
			}
		default:
			t.Errorf("neither: %s", line)
		}
	}
	if results["baseline"] != 5*11 || results["candidate"] != 5*11 {
		t.Errorf("%v", results)
	}
}

// TestGitHubActionBenchmark has what the action's README asks of custom tools.
func TestGitHubActionBenchmark(t *testing.T) {
	for f, want := range map[output.Format]int{output.Benchmark: 4, output.BenchmarkB: 1} {
		var list []map[string]any
		if err := json.Unmarshal([]byte(write(t, f, result(t))), &list); err != nil {
			t.Fatal(err)
		}
		if len(list) != want {
			t.Errorf("%s: %d entries", f, len(list))
		}
		for _, e := range list {
			name, ok1 := e["name"].(string)
			unit, ok2 := e["unit"].(string)
			_, ok3 := e["value"].(float64)
			if !ok1 || !ok2 || !ok3 || name == "" || unit == "" {
				t.Errorf("%s: %v", f, e)
			}
		}
	}
}
