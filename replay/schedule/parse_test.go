package schedule

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	s, err := Parse(" Breadth-First:ranks=4, microbatches=8,LOOPS=4,forward=1.5,backward=7/2,hop=0.25,backward-order=LIFO,placement=v ")
	if err != nil {
		t.Fatal(err)
	}
	want := Shape{Ranks: 4, Microbatches: 8, Loops: 4, BackwardOrder: LIFO, Placement: V}
	if s.Name != "breadth-first" || s.Shape != want {
		t.Errorf("got %q %+v", s.Name, s.Shape)
	}
	wantNumber(t, "forward", s.Costs.Forward, Ratio(3, 2))
	wantNumber(t, "backward", s.Costs.Backward, Ratio(7, 2))
	wantNumber(t, "weight", s.Costs.Weight, Ratio(7, 4))
	wantNumber(t, "hop", s.Costs.Hop, Ratio(1, 4))
	if got := s.String(); got != "breadth-first:ranks=4,microbatches=8,loops=4,backward-order=lifo,placement=v,forward=3/2,backward=7/2,hop=1/4" {
		t.Error(got)
	}
}

func TestParseTraced(t *testing.T) {
	s, err := Parse("traced")
	if err != nil || !s.IsTraced() || s.String() != "traced" {
		t.Errorf("%v, %v", s, err)
	}
	if _, err := s.Order(); !errors.Is(err, ErrSpec) {
		t.Errorf("got %v", err)
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                             `unknown name "" (known: traced gpipe 1f1b eager-1f1b depth-first interleaved breadth-first hybrid zb-h1`,
		"bfs":                          `unknown name "bfs" (known: traced gpipe`,
		"traced:ranks=4":               "traced takes no settings",
		"gpipe:":                       `setting "": expected KEY=VALUE (keys of gpipe: ranks microbatches loops forward backward hop)`,
		"gpipe:ranks":                  `setting "ranks": expected KEY=VALUE`,
		"gpipe:ranks=":                 `setting "ranks=": expected KEY=VALUE`,
		"gpipe:rank=4":                 `gpipe has no setting "rank" (known: ranks microbatches`,
		"gpipe:weight=1":               `gpipe has no setting "weight"`,
		"breadth-first:group=4":        `breadth-first has no setting "group" (known: ranks microbatches loops backward-order placement`,
		"inference:backward=1":         `inference has no setting "backward"`,
		"gpipe:ranks=4,ranks=4":        "ranks is set twice",
		"gpipe:ranks=0":                "ranks=0: expected a whole number from 1 to",
		"gpipe:ranks=4.5":              "ranks=4.5: expected a whole number",
		"gpipe:ranks=99999999999":      "expected a whole number",
		"gpipe:loops=2":                "gpipe always has loops=1, not loops=2: leave loops out",
		"gpipe:forward=-1":             "a duration is negative",
		"gpipe:forward=one":            `forward=one: not a number: "one" (write it as 3, 0.5 or 1/2)`,
		"zb-h1:backward=1,weight=2":    "weight=2 is longer than backward=1",
		"hybrid:backward-order=random": "backward-order=random: expected fifo or lifo",
		"breadth-first:placement=w":    "placement=w: expected loop or v",
	} {
		_, err := Parse(text)
		if !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v\nwant ...%s...", text, err, want)
		}
	}
	if _, err := Parse(strings.Repeat("x", 1<<20)); err == nil || len(err.Error()) > 1000 {
		t.Error("a long spec makes a long message")
	}
}

func TestOrderErrors(t *testing.T) {
	for text, want := range map[string]string{
		"gpipe":                              "gpipe needs ranks, microbatches (for example gpipe:ranks=4,microbatches=8)",
		"interleaved:ranks=4,microbatches=8": "interleaved needs loops (for example depth-first:ranks=4,microbatches=8,loops=2)",
		"depth-first:ranks=4,microbatches=8,loops=1":                 "needs loops=2 or more: with one chunk per rank use 1f1b",
		"depth-first:ranks=4,microbatches=2,loops=2":                 "at least as many micro-batches as ranks, not 2 for 4: use breadth-first",
		"depth-first:ranks=4,microbatches=5,loops=2":                 "group=4 leaves a last group of 1 of the 5 micro-batches, fewer than the 4 ranks: group=5 works",
		"depth-first:ranks=4,microbatches=12,loops=2,group=3":        "group=3 is not between the 4 ranks and the 12 micro-batches: group=4 or group=6 or group=7 or group=8 works",
		"depth-first:ranks=4,microbatches=12,loops=2,group=13":       "group=13 is not between",
		"hybrid:ranks=4,microbatches=8,loops=2":                      "hybrid needs rounds",
		"hybrid:ranks=4,microbatches=8,loops=2,rounds=3":             "rounds=3 does not divide the 8 micro-batches",
		"dualpipev:ranks=4,microbatches=7":                           "dualpipev needs at least 2 micro-batches per rank, 8 for 4 ranks, not 7",
		"dualpipe:ranks=3,microbatches=8":                            "dualpipe needs an even number of ranks",
		"dualpipe:ranks=4,microbatches=6":                            "at least two per rank",
		"chimera:ranks=4,microbatches=5":                             "chimera needs an even number",
		"bitpipe:ranks=3,microbatches=4":                             "bitpipe needs an even number",
		"gpipe:ranks=9000,microbatches=8":                            "ranks=9000: at most 8192",
		"gpipe:ranks=8000,microbatches=9999999":                      "lower one of them",
		"breadth-first:ranks=8,microbatches=16000000,loops=16000000": "lower one of them",
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Order()
		if !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v\nwant ...%s...", text, err, want)
		}
	}
	if _, err := (Spec{Name: "bfs"}).Order(); !errors.Is(err, ErrSpec) {
		t.Errorf("got %v", err)
	}
	if _, err := (Spec{Name: "gpipe", Shape: Shape{Ranks: -1, Microbatches: 1}}).Order(); !errors.Is(err, ErrSpec) {
		t.Errorf("got %v", err)
	}
}

func TestFill(t *testing.T) {
	for text, want := range map[string]Shape{
		"interleaved:loops=4": {Ranks: 4, Microbatches: 8, Loops: 4},
		"gpipe":               {Ranks: 4, Microbatches: 8, Loops: 1},
		"zbv":                 {Ranks: 4, Microbatches: 8, Loops: 2},
		"breadth-first":       {Ranks: 4, Microbatches: 8, Loops: 3},
		"1f1b:ranks=2":        {Ranks: 2, Microbatches: 8, Loops: 1},
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		filled := s.Fill(4, 8, 3)
		if filled.Shape != want {
			t.Errorf("%s: got %+v, want %+v", text, filled.Shape, want)
		}
		if _, err := filled.Order(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestKnown: every example in the list works, and every key is accepted.
func TestKnown(t *testing.T) {
	values := map[string]string{"backward-order": "lifo", "placement": "v"}
	for _, d := range Known() {
		if d.Summary == "" || d.Source == "" {
			t.Errorf("%s lacks its summary or source", d.Name)
		}
		mustEvaluate(t, specOrder(t, d.Example), DefaultCosts())
		for _, key := range d.Keys {
			value := "1"
			if v, ok := values[key]; ok {
				value = v
			}
			if g, _ := lookup(d.Name); key == "loops" && g.loops > 1 {
				continue
			}
			if _, err := Parse(d.Name + ":" + key + "=" + value); err != nil {
				t.Error(err)
			}
		}
		for _, alias := range d.Aliases {
			if s, err := Parse(alias); err != nil || s.Name != alias {
				t.Errorf("%s: %v", alias, err)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, d := range Known() {
		f.Add(d.Example)
	}
	for _, seed := range []string{"traced", "zb-h1:forward=5,backward=10,weight=4,hop=1/3", "gpipe:ranks=,", "breadth-first:placement=v"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrSpec) {
				t.Errorf("%q: %v is not ErrSpec", text, err)
			}
			return
		}
		again, err := Parse(s.String())
		if err != nil || again.String() != s.String() {
			t.Errorf("%q: read as %s, again as %s, %v", text, s, again, err)
		}
		if s.Ranks > 16 || s.Microbatches > 32 || s.Loops > 4 {
			return
		}
		o, err := s.Order()
		if err != nil {
			if !errors.Is(err, ErrSpec) {
				t.Errorf("%q: %v is not ErrSpec", text, err)
			}
			return
		}
		if _, err := Evaluate(o, s.Costs); err != nil && !errors.Is(err, ErrSpec) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
