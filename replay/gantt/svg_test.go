package gantt

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"
)

// element is what a test needs of an SVG's elements.
type element struct {
	name, class, text string
}

// svg draws a figure and reads it back as XML.
func svg(t testing.TB, f Figure) (string, []element) {
	t.Helper()
	var b strings.Builder
	if err := f.SVG(&b); err != nil {
		t.Fatal(err)
	}
	dec := xml.NewDecoder(strings.NewReader(b.String()))
	dec.Strict = true
	var list []element
	for {
		token, err := dec.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local}
			for _, a := range token.Attr {
				if a.Name.Local == "class" {
					e.class = a.Value
				}
			}
			list = append(list, e)
		case xml.CharData:
			if len(list) > 0 {
				list[len(list)-1].text += string(token)
			}
		}
	}
	return b.String(), list
}

func count(list []element, name, class string) int {
	n := 0
	for _, e := range list {
		if e.name == name && strings.HasPrefix(e.class, class) {
			n++
		}
	}
	return n
}

func TestSVG(t *testing.T) {
	f := figure(t, "1f1b:ranks=4,microbatches=8,forward=4,backward=8", "breadth-first:ranks=4,microbatches=8,loops=4")
	f.Title = `<script>alert("1")</script> & co`
	text, list := svg(t, f)
	// Two legend entries, and a bar for each pass, with a number in it.
	if got, want := count(list, "rect", "b p"), 2+2*4*8+2*4*8*4; got != want {
		t.Errorf("%d bars, want %d", got, want)
	}
	if got, want := count(list, "text", "mb"), 2*4*8+2*4*8*4; got != want {
		t.Errorf("%d numbers, want %d", got, want)
	}
	for _, want := range []string{
		"makespan 105, bubble 3/35 (8.6 %), 1.26× as fast as the first", "prefers-color-scheme:dark",
		"<title>3B0, rank 3, backward, micro-batch 0, stage 3, chunk 0: 16 to 24 (8)</title>",
		"&lt;script&gt;alert(", "first to last chunk",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(text, "<script") || strings.Contains(text, "drawn as one") {
		t.Error("the picture holds what it should not")
	}
}

// TestSVGBounded: however many bars and rows there are, the picture stays small
// and says what it leaves out.
func TestSVGBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("large")
	}
	text, list := svg(t, figure(t, "depth-first:ranks=64,microbatches=512,loops=4"))
	if n := count(list, "rect", "b p"); n > MaxBars {
		t.Errorf("%d bars", n)
	}
	if len(text) > 4<<20 {
		t.Errorf("%d bytes", len(text))
	}
	if !strings.Contains(text, "too many bars: narrow neighbours are drawn as one") || !strings.Contains(text, "% forward, ") {
		t.Error("merging goes unsaid")
	}

	text, list = svg(t, figure(t, "gpipe:ranks=1000,microbatches=2"))
	if n := count(list, "rect", "idle"); n != MaxRows+1 {
		t.Errorf("%d rows", n)
	}
	if !strings.Contains(text, "744 rows not drawn") {
		t.Error("rows are missing without a word")
	}
}

// TestSVGMerge: the time of merged bars is kept, and what is wide stands alone.
func TestSVGMerge(t *testing.T) {
	row := []Bar{
		{Phase: Forward, Start: 0, End: 1}, {Phase: Backward, Start: 1, End: 3}, {Phase: Backward, Start: 4, End: 5},
		{Phase: Forward, Start: 5, End: 25}, {Phase: Forward, Start: 25, End: 26},
	}
	list := merge(row, 10)
	if len(list) != 3 || list[0].count != 3 || list[0].busy[Forward] != 1 || list[0].busy[Backward] != 3 || list[0].End != 5 || list[1].count != 1 {
		t.Errorf("got %+v", list)
	}
	if list := merge(row, 0); len(list) != len(row) {
		t.Errorf("%d bars of %d without a slot", len(list), len(row))
	}
}

func TestSVGHostileNames(t *testing.T) {
	f := Figure{Title: "\x00\x1b]0;\xff", Unit: `"><x`, Charts: []Chart{{
		Title: "</svg>", Rows: []Row{{Name: `"'<&` + strings.Repeat("long", 100)}},
		Bars:     []Bar{{Stage: Unknown, Chunk: Unknown, Microbatch: 1 << 30, Phase: Other, End: 1, Name: "]]><![CDATA["}, {Phase: Communication, End: 1e-300}},
		Makespan: "<", Bubble: ">",
	}}}
	_, list := svg(t, f)
	if count(list, "x", "") != 0 || count(list, "svg", "") != 1 {
		t.Error("a name became an element")
	}
}

func FuzzSVG(f *testing.F) {
	f.Add("rank 0", 0.0, 1.0, 3, uint8(1))
	f.Fuzz(func(t *testing.T, name string, start, end float64, mb int, phase uint8) {
		fig := Figure{Title: name, Unit: name, Charts: []Chart{{Title: name, Rows: []Row{{Name: name}}, Bars: []Bar{
			{Microbatch: mb, Chunk: mb, Stage: mb, Phase: Phase(phase), Start: start, End: end, Name: name},
		}}}}
		var b strings.Builder
		if err := fig.SVG(&b); err != nil {
			return
		}
		if err := xml.Unmarshal([]byte(b.String()), new(struct{})); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	})
}

func BenchmarkSVG(b *testing.B) {
	f := figure(b, fmt.Sprintf("breadth-first:ranks=%d,microbatches=64,loops=4", 16))
	b.ReportAllocs()
	for b.Loop() {
		if err := f.SVG(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
