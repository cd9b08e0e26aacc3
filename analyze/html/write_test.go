package html_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	stdhtml "html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mixdown/analyze/html"
	"mixdown/ingest/kineto/kinetotest"
)

var (
	policyOf = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="([^"]*)">`)
	styleOf  = regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	dataOf   = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)
	scriptOf = regexp.MustCompile(`(?s)<script>(.*?)</script>`)
)

// checkSafe says what holds for every page: nothing runs or loads but what the
// policy names, and the data block is JSON in which HTML finds nothing.
func checkSafe(t *testing.T, page []byte) {
	t.Helper()
	find := func(re *regexp.Regexp) string {
		m := re.FindAllSubmatch(page, -1)
		if len(m) != 1 {
			t.Fatalf("%s: found %d times", re, len(m))
		}
		return string(m[0][1])
	}
	policy := stdhtml.UnescapeString(find(policyOf))
	for _, want := range []string{"default-src 'none'", "script-src '" + hashOf(find(scriptOf)) + "'", "style-src '" + hashOf(find(styleOf)) + "'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy is %q, without %q", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q", policy)
	}
	data := find(dataOf)
	if strings.ContainsAny(data, "<>&\u2028\u2029") {
		t.Error("the data block holds characters that HTML or JavaScript know")
	}
	if !json.Valid([]byte(data)) {
		t.Error("the data block is no JSON")
	}
	if n := bytes.Count(bytes.ToLower(page), []byte("<script")); n != 2 {
		t.Errorf("%d scripts", n)
	}
	body := styleOf.ReplaceAll(dataOf.ReplaceAll(scriptOf.ReplaceAll(page, nil), nil), nil)
	for _, tag := range regexp.MustCompile(`<[a-zA-Z!/][^<>]*>`).FindAll(body, -1) {
		// Values are of our own, or have no quotes: see html/template.
		bare := regexp.MustCompile(`"[^"]*"`).ReplaceAll(bytes.ToLower(tag), nil)
		if m := regexp.MustCompile(`^<(link|iframe|object|embed|base|img|form|use|image|a [^<>]*src)|[ /](style|src|srcset|on[a-z]+|xlink:href|action)=`).Find(bare); m != nil {
			t.Errorf("the page holds %.200q", tag)
		}
	}
	for _, m := range regexp.MustCompile(`href="([^"]*)"`).FindAllSubmatch(body, -1) {
		if !bytes.HasPrefix(m[1], []byte("#")) {
			t.Errorf("a link leads to %.100q", m[1])
		}
	}
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// TestPagesOfTestdata: every set has its page, which holds its sections.
func TestPagesOfTestdata(t *testing.T) {
	sets, err := filepath.Glob("../../testdata/*rank*")
	if err != nil || len(sets) < 10 {
		t.Fatalf("%d sets of testdata: %v", len(sets), err)
	}
	for _, set := range sets {
		t.Run(filepath.Base(set), func(t *testing.T) {
			t.Parallel()
			p := &html.Page{Title: filepath.Base(set)}
			p.AddRun(load(t, filepath.Join(set, "rank*.gz")), html.TimelineOptions{})
			page := write(t, p)
			checkSafe(t, page)
			for _, id := range []string{"answer", "questions", "ranks", "communication", "stragglers", "timeline", "diagnostics", "provenance"} {
				if n := bytes.Count(page, []byte(`id="`+id+`"`)); n != 1 {
					t.Errorf("%d elements with the id %s", n, id)
				}
			}
			if len(p.Answer().Figures) != 3 || len(p.Questions()) != 6 {
				t.Errorf("%d figures, %d questions", len(p.Answer().Figures), len(p.Questions()))
			}
			if !bytes.Equal(page, write(t, p)) {
				t.Error("written twice, the page differs")
			}
		})
	}
}

// TestBundleIsThatOfItsSources: whoever changes a source runs scripts/build_html.sh.
func TestBundleIsThatOfItsSources(t *testing.T) {
	entries, err := os.ReadDir("assets/src")
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	add := func(name string) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		h.Write(data)
	}
	for _, e := range entries {
		h.Write([]byte(e.Name() + "\n"))
		add("assets/src/" + e.Name())
	}
	add("assets/build.js")
	add("assets/package-lock.json")
	want, err := os.ReadFile("assets/dist/sources.sha256")
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != strings.TrimSpace(string(want)) {
		t.Error("assets/dist is not made of assets/src: run scripts/build_html.sh")
	}
}

// TestEmptyPage: a page of nothing says so.
func TestEmptyPage(t *testing.T) {
	page := write(t, &html.Page{})
	checkSafe(t, page)
	if !bytes.Contains(page, []byte("Nothing was measured.")) {
		t.Error("the page does not say that it is empty")
	}
}

// TestManyRanksStaySmall: 64 ranks with half a million events.
func TestManyRanksStaySmall(t *testing.T) {
	in := made(t, 64, 5, 1600, func(s string) string { return s })
	p := &html.Page{Title: "64 ranks"}
	p.AddRun(in, html.TimelineOptions{})
	page := write(t, p)
	checkSafe(t, page)
	const limit = 8 << 20
	if len(page) > limit {
		t.Errorf("the page has %d bytes, the limit is %d", len(page), limit)
	}
	if p.Timeline.Events < 500_000 || p.Timeline.Slices > html.DefaultSlices || p.Timeline.Merged == 0 {
		t.Errorf("%d events as %d slices, merged below %d ns", p.Timeline.Events, p.Timeline.Slices, p.Timeline.Merged)
	}
	t.Logf("%d bytes, %d events as %d slices", len(page), p.Timeline.Events, p.Timeline.Slices)
}

// TestDLRM: a new user finds the six answers of the real job.
func TestDLRM(t *testing.T) {
	p := &html.Page{Title: "dlrm"}
	p.AddRun(load(t, kinetotest.Corpus(t, "param", "dlrm_8rank", "kineto")), html.TimelineOptions{})
	page := write(t, p)
	checkSafe(t, page)
	want := "Of the ranks’ time, 8 % is computation, 40 % communication that no computation hides, and 52 % idle; 96 % of the communication is waiting for ranks that come later, the rest transfer, and rank 7 keeps others waiting longest."
	if got := p.Answer().Sentence; got != want {
		t.Errorf("the answer is %q", got)
	}
	for i, want := range []string{
		"98 % of the idle time is late launches", "99 % of its time is waiting", "Hardly", "no pipeline", "look at what rank 7 does", "One run can’t say",
	} {
		if q := p.Questions()[i]; !strings.Contains(q.Answer, want) {
			t.Errorf("%s %s: expected %q", q.Ask, q.Answer, want)
		}
	}
}
