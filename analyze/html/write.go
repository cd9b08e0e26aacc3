package html

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"strings"
	"time"

	"mixdown/analyze/report"
)

//go:embed templates/*.tmpl
var templates embed.FS

// The bundle, made by scripts/build_html.sh, with the licences of what is in it.
//
//go:embed assets/dist/report.js assets/dist/report.css
var bundle embed.FS

// view is what the templates are given.
type view struct {
	*Page
	Policy string
	Style  template.CSS
	Script template.JS
	Data   template.JS

	Answer    Answer
	Questions []Question

	Ranks      ranksView
	Late       []lateRow
	LateLeft   int
	Path       []kindRow
	PathTitle  string
	Gain       []string
	Comm       []commRow
	CommLeft   int
	Estimated  bool
	ByPhase    []commRow
	PhaseLeft  int
	StepCharts []*chart

	Compared  *comparisonView // nil when nothing was
	HeatMap   *heatView       // nil without a table of measurements
	Pictures  []template.HTML
	Replayed  []replayView
	Predicted []predictionView
	Pipes     []pipeView

	Diagnostics []diagnosticRow
	Undiagnosed bool     // there are none because nothing tells them
	Facts       []string // of the run, for the head
	TimelineSum string
}

// quantity is a figure before its unit.
var quantity = regexp.MustCompile(`([0-9]) (%|(?:ns|us|ms|s|B|KiB|MiB|GiB|GB/s)\b)`)

// unbroken keeps figures and their units on one line.
func unbroken(s string) string { return quantity.ReplaceAllString(s, "$1\u00a0$2") }

// printable is report.Printable for texts that are longer than a name.
func printable(s string, limit int) string {
	var b strings.Builder
	runes := []rune(s)
	const piece = 50 // runes, which Printable does not cut
	for i := 0; i < len(runes) && b.Len() < limit; i += piece {
		b.WriteString(report.Printable(string(runes[i:min(i+piece, len(runes))])))
	}
	if b.Len() >= limit {
		b.WriteString("…")
	}
	return b.String()
}

// diagnosticRow is a counted fault and whose it is.
type diagnosticRow struct {
	Of, Code, Rank, Example string
	Count                   int64
}

// pipeView is a pipeline in words.
type pipeView struct {
	Title string
	Lines []string
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"nb": unbroken, "show": report.Printable, "long": func(s string) string { return printable(s, 4000) }, "ns": report.Duration, "inc": func(i int) int { return i + 1 },
		"duration": func(n *int64) string { return unknown(n, report.Duration) },
		"dict":     func(a string, x any, b string, y any) map[string]any { return map[string]any{a: x, b: y} },
	}).ParseFS(templates, "templates/*.tmpl")
	if err != nil {
		return fmt.Errorf("templates of the report: %w", err)
	}
	v, err := p.view()
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(w, "page.tmpl", v)
}

func (p *Page) view() (*view, error) {
	script, err := bundle.ReadFile("assets/dist/report.js")
	if err != nil {
		return nil, fmt.Errorf("bundle of the report: %w", err)
	}
	sheet, err := bundle.ReadFile("assets/dist/report.css")
	if err != nil {
		return nil, fmt.Errorf("bundle of the report: %w", err)
	}
	v := &view{Page: p, Answer: p.Answer(), Questions: p.Questions(), StepCharts: p.stepCharts(), Replayed: replayViews(p.Replays), Predicted: predictionViews(p.Predictions)}
	if v.Title == "" {
		v.Page.Title = "mixdown report"
	}
	if p.Comparison != nil {
		v.Compared = comparisonOf(p.Comparison)
	}
	if p.Heat != nil {
		v.HeatMap = heatViewOf(p.Heat)
	}
	style := string(sheet)
	for i := range p.Orders {
		svg, own := p.Orders[i].scoped(i)
		v.Pictures, style = append(v.Pictures, template.HTML(svg)), style+"\n"+own //nolint:gosec // checked by NewPicture
	}
	if v.Data, err = p.data(v); err != nil {
		return nil, err
	}
	v.Style, v.Script = template.CSS(style), template.JS(script)
	v.Policy = "default-src 'none'; script-src '" + hash(string(script)) + "'; style-src '" + hash(style) + "'; img-src data:; base-uri 'none'; form-action 'none'"
	p.fill(v)
	return v, nil
}

// hash names an inline script or style in a content policy.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// data is what the script draws, as JSON whose text holds no character that HTML
// or JavaScript knows: json.Encoder writes <, >, & and U+2028/9 as escapes.
func (p *Page) data(v *view) (template.JS, error) {
	charts := map[string]*chart{}
	for _, c := range v.StepCharts {
		charts[c.ID] = c
	}
	if v.Compared != nil && v.Compared.Chart != nil {
		charts[v.Compared.Chart.ID] = v.Compared.Chart
	}
	for _, r := range v.Replayed {
		if r.Chart != nil {
			charts[r.Chart.ID] = r.Chart
		}
	}
	var b bytes.Buffer
	err := json.NewEncoder(&b).Encode(map[string]any{"timeline": p.Timeline, "charts": charts})
	return template.JS(b.String()), err
}

// fill makes the rows of the tables.
func (p *Page) fill(v *view) {
	add := func(of string, list []report.Diagnostic) {
		for _, d := range list {
			row := diagnosticRow{Of: of, Code: report.Printable(d.Code), Count: d.Count, Example: report.Printable(d.Example)}
			if d.Rank != nil {
				row.Rank = fmt.Sprint(*d.Rank)
			}
			v.Diagnostics = append(v.Diagnostics, row)
		}
	}
	if a := p.Analysis; a != nil {
		add("analysis", a.Diagnostics)
		v.Ranks = rankRows(a)
		v.Late, v.LateLeft = lateRows(a)
		v.Comm, v.CommLeft, v.Estimated = commRows(a)
		v.ByPhase, v.PhaseLeft = phaseRows(p.Phases)
		if c := a.CriticalPath; c != nil {
			v.PathTitle = fmt.Sprintf("What bounds %s (%s)", stepName(c.Step), report.Duration(c.StepNS))
			v.Path = pathRows(c)
			v.Gain = strings.Split(report.GainText(c.Free, c.FreeByOp), "\n")
		}
		v.Facts = facts(a)
		v.Pipes = pipes(a)
	}
	for _, r := range p.Replays {
		add("replay", r.Diagnostics)
	}
	for _, s := range p.Predictions {
		add("simulation", s.Diagnostics)
	}
	if d := p.Comparison; d != nil {
		v.Facts = []string{d.Verb + ": " + strings.ReplaceAll(string(d.Outcome), "_", " ")}
		v.Undiagnosed = d.Diagnostics == nil
		for _, side := range d.Diagnostics {
			add(side.Of, side.List)
		}
	}
	if t := p.Timeline; t != nil {
		v.TimelineSum = fmt.Sprintf("%d events", t.Events)
		if t.Merged > 0 {
			v.TimelineSum += fmt.Sprintf(", drawn as %d: neighbours shorter than %s are one", t.Slices, report.Duration(t.Merged))
		}
		if t.Left > 0 {
			v.TimelineSum += fmt.Sprintf("; %d nested deeper are left out", t.Left)
		}
	}
}

// facts are the run in a few words.
func facts(a *report.Analysis) []string {
	list := []string{fmt.Sprintf("%d of %d ranks", len(a.Run.RanksPresent), a.Run.WorldSize)}
	if n := len(a.Run.RanksMissing); n > 0 {
		list[0] += fmt.Sprintf(" (missing: %s)", cut(report.Ranges(a.Run.RanksMissing), 80))
	}
	if a.Run.Backend != "" {
		list = append(list, "backend "+report.Printable(a.Run.Backend))
	}
	switch n := len(a.Run.Steps); {
	case n == 1:
		list = append(list, fmt.Sprintf("%s of %s", report.Printable(a.Run.Steps[0].Name), report.Duration(a.Run.Steps[0].Dur)))
	case n > 1:
		list = append(list, fmt.Sprintf("%d steps", n))
	}
	list = append(list, fmt.Sprintf("%d collectives matched on all their ranks", a.Matched))
	if a.Unmatched > 0 {
		list = append(list, fmt.Sprintf("%d operations not matched", a.Unmatched))
	}
	return list
}

// pipes words the pipelines.
func pipes(a *report.Analysis) []pipeView {
	var list []pipeView
	for i, p := range a.Pipeline {
		if i == 4 {
			list = append(list, pipeView{Title: fmt.Sprintf("and %d more pipelines", len(a.Pipeline)-i)})
			break
		}
		schedule := p.ScheduleText
		if schedule == "" {
			schedule = "schedule not looked up"
		}
		v := pipeView{Title: fmt.Sprintf("Ranks %s: %d stages, %d micro-batches, %s", report.Ranges(p.Ranks), p.Stages, p.Microbatches, report.Printable(schedule))}
		v.Lines = append(v.Lines, "told by "+report.Printable(p.Evidence))
		for k, s := range p.Steps {
			if k == 8 {
				v.Lines = append(v.Lines, fmt.Sprintf("and %d more steps", len(p.Steps)-k))
				break
			}
			line := "bubble"
			if s.Name != "" {
				line += " of " + report.Printable(s.Name)
			}
			if s.BubbleLongestSpan == nil {
				continue
			}
			line += ": " + bubbleText(&s)
			if s.Bubble == nil {
				line += " (the ranks’ clocks don’t compare)"
			}
			line += fmt.Sprintf("; rank %d is busiest", s.BusiestRank)
			v.Lines = append(v.Lines, line)
		}
		list = append(list, v)
	}
	return list
}

// When is when the page was made, "" when that is not said.
func (p Provenance) When() string {
	if p.Made.IsZero() {
		return ""
	}
	return p.Made.UTC().Format(time.DateTime) + " UTC"
}
