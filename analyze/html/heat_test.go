package html_test

import (
	"strings"
	"testing"

	"mixdown/analyze/html"
)

// heat is a map of three contenders, of which one wins small sizes and another one
// large ones; its names are changed.
func heat(name func(string) string) *html.HeatMap {
	return &html.HeatMap{
		Source: name("t.tune"), About: []string{name("2 x H100")}, Host: true, Measurements: 9, Columns: []int64{64, 1 << 20, 1 << 30},
		Winners: []string{name("gloo"), name("openmpi:ring"), name("openmpi:tree")},
		Rows:    []html.HeatRow{{Question: name("all_reduce, 2 ranks"), Cells: []html.HeatCell{{Winner: 0, Clear: true, Gain: 2.5}, {Winner: 1, Gain: 1.01}, {Winner: -1}}}},
		Questions: []html.HeatQuestion{{
			Name: name("all_reduce, 2 ranks"), Sizes: []int64{64, 1 << 20}, Winner: []int{0, 1}, Clear: []bool{true, true}, Crossed: []bool{false, true},
			Contenders: []html.HeatContender{{Name: name("gloo"), Times: []int64{1000, 90_000}}, {Name: name("openmpi:ring"), Times: []int64{2500, 30_000}}, {Name: name("openmpi:tree"), Times: []int64{-1, 31_000}}},
			Crossings:  []string{name("gloo") + " below 1 KiB, openmpi:ring from there"},
		}},
		Losses: []html.HeatLoss{{Name: name("openmpi:ring"), Mean: 1.5, Worst: 2.5, Where: name("all_reduce, 2 ranks, 64 B"), Places: 2, Of: 2}},
	}
}

// TestHeatMap: winners by letter and colour, what is not clear or not known, and the
// changes of the winner.
func TestHeatMap(t *testing.T) {
	p := &html.Page{Heat: heat(func(s string) string { return s })}
	page := string(write(t, p))
	for _, want := range []string{
		"Of 2 places (operations by size), gloo wins clearly at 1, and the winner changes with the size once; openmpi:ring for everything takes 50.0\u00a0% longer than the best at each place.",
		`<td class="h-0" title="gloo, the next best takes 2.50 times as long">G 2.5</td><td class="h-1 unclear" title="openmpi:ring, not clear">~R</td><td class=""></td>`,
		`<td class="t-0 wins" title="1.00 times the best">1.00` + "\u00a0us</td>", `<td class="t-5 crossed" title="3.00 times the best">90.0`, `title="not measured">–</td>`,
		`<td class="t-2 crossed" title="1.03 times the best">31.0`, "<strong>T</strong> <bdi>openmpi:tree</bdi>", "in host memory, which says nothing about GPUs", "mixdown replay traces/ --mix auto --table t.tune",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
	if len(p.Questions()) != 3 || len(p.Answer().Figures) != 3 {
		t.Errorf("%+v %+v", p.Questions(), p.Answer())
	}
	nothing := &html.Page{Heat: &html.HeatMap{}}
	if a := nothing.Answer(); !strings.Contains(a.Sentence, "compares nothing") || !strings.Contains(string(write(t, nothing)), "No operation was measured") {
		t.Errorf("%+v", a)
	}
}

// TestHostileHeat: names of tables, libraries, machines and operations.
func TestHostileHeat(t *testing.T) {
	for i, bad := range hostile {
		page := write(t, &html.Page{Title: bad, Heat: heat(func(s string) string { return s + bad })})
		checkNames(t, page)
		if len(page) > 1<<20 {
			t.Errorf("name %d makes a page of %d bytes", i, len(page))
		}
	}
}
