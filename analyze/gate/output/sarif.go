package output

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"mixdown/analyze/gate"
)

// sarifSchema is where the schema of SARIF 2.1.0 is published.
const sarifSchema = "https://json.schemastore.org/sarif-2.1.0.json"

// sarifResults is how many results GitHub shows of a run.
const sarifResults = 5000

// The objects of SARIF 2.1.0 (OASIS, 2020) that are used here.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID    string    `json:"id"`
		Short sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		Successful bool `json:"executionSuccessful"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Kind         string             `json:"kind"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
		Properties   map[string]any     `json:"properties,omitempty"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region struct {
				StartLine int `json:"startLine"`
			} `json:"region"`
		} `json:"physicalLocation"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
)

// writeSARIF writes what is not as it should be; a check that passed is no result.
// Every result lies at the line of its rule in the policy, which is the file of
// the repository that it is about.
func writeSARIF(w io.Writer, r *Document) error {
	run := sarifRun{Invocations: []sarifInvocation{{Successful: true}}, Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: r.tool(), Rules: []sarifRule{}}
	index := map[string]int{}
	left := 0
	for i := range r.Checks {
		c := &r.Checks[i]
		at, ok := index[c.Rule]
		if !ok {
			at = len(run.Tool.Driver.Rules)
			index[c.Rule] = at
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{ID: clean(c.Rule), Short: sarifText{clean(strings.TrimSpace(fmt.Sprintf("%s %s", c.Metric, c.Limit)))}})
		}
		if !Told(c) && c.Outcome != gate.NotComparable {
			continue
		}
		if len(run.Results) == sarifResults {
			left++
			continue
		}
		run.Results = append(run.Results, sarifOf(r, c, at))
	}
	if left > 0 {
		run.Results[sarifResults-1].Message.Text += fmt.Sprintf(" (and %d more results that are not shown)", left)
	}
	return encode(w, sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{run}})
}

func sarifOf(r *Document, c *gate.Check, rule int) sarifResult {
	text := fmt.Sprintf("%s: %s", c.Name(), message(c))
	if a := advice(c); a != "" {
		text += "; see: " + a
	}
	out := sarifResult{RuleID: clean(c.Rule), RuleIndex: rule, Kind: "fail", Level: "error", Message: sarifText{clean(text)}}
	switch c.Outcome {
	case gate.Warning:
		out.Level = "warning"
	case gate.Inconclusive, gate.NotComparable:
		out.Level, out.Kind = "none", "open" // the standard's word for what could not be told
	case gate.Waived:
		out.Suppressions = []sarifSuppression{{Kind: "external", Justification: clean(*c.Waiver)}}
	}
	var l sarifLocation
	l.Physical.Artifact.URI = uri(cmp.Or(r.Policy, r.After.Source)) // rules of the command line have no file
	l.Physical.Region.StartLine = max(c.Line, 1)
	out.Locations = []sarifLocation{l}
	sum := sha256.Sum256([]byte(c.Rule + "\x00" + c.Name()))
	out.Fingerprints = map[string]string{"mixdownCheck/v1": hex.EncodeToString(sum[:16])}
	out.Properties = map[string]any{"outcome": c.Outcome, "metric": c.Metric, "labels": c.Labels, "unit": c.Unit}
	if c.Change != nil {
		out.Properties["change"] = *c.Change
	}
	return out
}

// uri is a file as a relative or absolute URI.
func uri(file string) string {
	file = filepath.ToSlash(file)
	var b strings.Builder
	for i := 0; i < len(file); i++ {
		c := file[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("/._-~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	if strings.HasPrefix(file, "/") {
		return "file://" + b.String()
	}
	return b.String()
}
