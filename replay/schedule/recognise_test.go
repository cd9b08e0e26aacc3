package schedule

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// sameRows compares what two orders compute, with micro-batches numbered by
// when they enter stage 0.
func sameRows(t *testing.T, a, b Order) bool {
	t.Helper()
	seen := observe(a)
	want, _ := seen.renumber(computations(b))
	return reflect.DeepEqual(seen.rows, want) || reflect.DeepEqual(seen.fused, fuse(want))
}

// TestRecogniseGenerated: every generator's order is recognised as itself or as
// a schedule that makes the same order.
func TestRecogniseGenerated(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	tried := map[string]int{}
	for range 1500 {
		s := randomSpec(r)
		tried[s.Name]++
		o := mustOrder(t, s.Name, s.Shape)
		got := Recognise(o)
		if !got.Exact || len(got.Differ) != 0 || !got.InPlace.Equal(Int(1)) {
			t.Fatalf("%s: recognised as %s, %s in place", s, got, got.InPlace)
		}
		if got.Spec.Name != s.Name {
			again, err := got.Spec.Order()
			if err != nil || !sameRows(t, o, again) {
				t.Fatalf("%s: recognised as %s, which makes another order (%v)", s, got.Spec, err)
			}
		}
		read, err := Parse(got.Schedule())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := read.Fill(o.Ranks(), o.Microbatches(), o.Loops()).Order(); err != nil {
			t.Fatalf("%s: %s can't be used: %v", s, got.Schedule(), err)
		}
	}
	for _, d := range Known() {
		if tried[d.Name] == 0 {
			t.Errorf("%s was never tried", d.Name)
		}
	}
}

// TestRecogniseByName holds what users read, and that communication, overlap
// marks and other numbers of micro-batches change nothing.
func TestRecogniseByName(t *testing.T) {
	for spec, want := range map[string]string{
		"gpipe:ranks=4,microbatches=8":                                       "gpipe",
		"1f1b:ranks=4,microbatches=8":                                        "1f1b",
		"eager-1f1b:ranks=4,microbatches=8":                                  "eager-1f1b",
		"depth-first:ranks=4,microbatches=8,loops=2":                         "depth-first:loops=2",
		"depth-first:ranks=4,microbatches=10,loops=2,group=5":                "depth-first:loops=2,group=5",
		"depth-first:ranks=4,microbatches=2,loops=2,group=2":                 "depth-first:loops=2,group=2",
		"breadth-first:ranks=4,microbatches=8,loops=1":                       "gpipe",
		"breadth-first:ranks=4,microbatches=8,loops=4":                       "breadth-first:loops=4",
		"breadth-first:ranks=4,microbatches=8,loops=4,backward-order=lifo":   "breadth-first:loops=4,backward-order=lifo",
		"breadth-first:ranks=4,microbatches=8,loops=2,placement=v":           "breadth-first:loops=2,placement=v",
		"hybrid:ranks=4,microbatches=8,loops=2,rounds=2":                     "hybrid:loops=2,rounds=2",
		"hybrid:ranks=4,microbatches=8,loops=2,rounds=2,backward-order=lifo": "hybrid:loops=2,rounds=2,backward-order=lifo",
		"hybrid:ranks=4,microbatches=8,loops=2,rounds=1":                     "breadth-first:loops=2",
		"zb-h1:ranks=4,microbatches=8":                                       "zb-h1",
		"zb-h2:ranks=4,microbatches=8":                                       "zb-h2",
		"interleaved-zero-bubble:ranks=4,microbatches=8,loops=2":             "interleaved-zero-bubble:loops=2",
		"interleaved-zb:ranks=4,microbatches=8,loops=1":                      "zb-h1",
		"zbv:ranks=4,microbatches=8":                                         "zbv",
		"dualpipev:ranks=4,microbatches=10":                                  "dualpipev",
		"dualpipe:ranks=4,microbatches=10":                                   "dualpipe",
		"chimera:ranks=4,microbatches=8":                                     "chimera",
		"bitpipe:ranks=4,microbatches=8":                                     "bitpipe",
		"inference:ranks=4,microbatches=8,loops=2":                           "inference:loops=2",
	} {
		o := specOrder(t, spec)
		if got := Recognise(o); got.String() != want || got.Fused || got.Renumbered || !got.Exact {
			t.Errorf("%s: recognised as %s, %+v", spec, got, got)
		}
		if got := Recognise(withTransfers(o)); got.String() != want {
			t.Errorf("%s with transfers: recognised as %s", spec, got)
		}
		if strings.HasPrefix(want, "hybrid") {
			for r := range o {
				for i := range o[r] {
					o[r][i].Microbatch = o[r][i].Microbatch/2 + o[r][i].Microbatch%2*4
				}
			}
			if got := Recognise(o); got.String() != want || !got.Renumbered {
				t.Errorf("%s renumbered: recognised as %s", spec, got)
			}
		}
	}
}

func TestRecogniseSame(t *testing.T) {
	for spec, want := range map[string][]string{
		"gpipe:ranks=4,microbatches=8":               {"breadth-first:loops=1"},
		"1f1b:ranks=4,microbatches=1":                {"1f1b", "eager-1f1b", "breadth-first:loops=1"},
		"depth-first:ranks=4,microbatches=4,loops=2": nil,
		"zb-h1:ranks=4,microbatches=8":               {"interleaved-zero-bubble:loops=1"},
	} {
		if got := Recognise(specOrder(t, spec)); !slices.Equal(got.Same, want) {
			t.Errorf("%s (%s): the same as %q, want %q", spec, got, got.Same, want)
		}
	}
}

// TestRecogniseMegatronApp: a public breadth-first trace whose last rank runs
// forward and backward in turn in its last chunk.
func TestRecogniseMegatronApp(t *testing.T) {
	o := specOrder(t, "breadth-first:ranks=4,microbatches=8,loops=4")
	row := o[3][:24:24]
	for mb := range 8 {
		row = append(row, forward(15, mb), backward(15, mb))
	}
	o[3] = append(row, o[3][40:]...)
	got := Recognise(o)
	if got.Exact || len(got.Differ) != 1 || got.Differ[0].Rank != 3 {
		t.Errorf("got %+v", got)
	}
	if want := "breadth-first:loops=4, but rank 3 alternates forward and backward in its last chunk (7 of 64 actions elsewhere)"; got.String() != want {
		t.Errorf("got %q", got)
	}
	wantNumber(t, "in place", got.InPlace, Ratio(256-7, 256))
}

// TestRecogniseMutated: an order with two actions of one rank exchanged is
// called after its schedule, and the rank is named.
func TestRecogniseMutated(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	for range 400 {
		s := randomSpec(r)
		s.Ranks, s.Microbatches = max(s.Ranks, 2), max(s.Microbatches, 4)
		o, err := s.Order()
		if err != nil {
			continue
		}
		rank := r.IntN(len(o))
		row := o[rank]
		i, j := r.IntN(len(row)), r.IntN(len(row))
		if i == j || row[i].Kind == Weight || row[j].Kind == Weight || row[i].Stage == 0 || row[j].Stage == 0 {
			continue // stage 0 tells the numbers of micro-batches
		}
		row[i], row[j] = row[j], row[i]
		got := Recognise(o)
		if got.Exact {
			if again, err := got.Spec.Order(); err != nil || !sameRows(t, o, again) {
				t.Fatalf("%s with %s and %s of rank %d exchanged is exactly %s", s, row[i], row[j], rank, got)
			}
			continue
		}
		if !got.Known() {
			if len(row) > 10 {
				t.Fatalf("%s with %s and %s of rank %d exchanged: %s, %s in place", s, row[i], row[j], rank, got, got.InPlace)
			}
			continue
		}
		if len(row) > 10 && !slices.ContainsFunc(got.Differ, func(d Difference) bool { return d.Rank == rank }) {
			t.Fatalf("%s with %s and %s of rank %d exchanged: %s", s, row[i], row[j], rank, got)
		}
	}
}

func TestRecogniseWords(t *testing.T) {
	base := "1f1b:ranks=4,microbatches=8"
	for _, c := range []struct {
		spec   string
		change func(Order)
		want   string
	}{
		{base, func(o Order) { copy(o[1], specOrder(t, "eager-1f1b:ranks=4,microbatches=8")[1]) },
			"1f1b, but rank 1 runs 5 forwards before its first backward, not 3 (5 of 16 actions elsewhere)"},
		{base, func(o Order) { o[2][3], o[2][5] = o[2][5], o[2][3] },
			"1f1b, but rank 2 takes its forwards in another order, 2F3 instead of 2F2 at place 3 (2 of 16 actions elsewhere)"},
		{base, func(o Order) { o[2] = o[2][:14] },
			"1f1b, but rank 2 has 14 actions, not 16 (2 of 14 actions elsewhere)"},
		{"gpipe:ranks=4,microbatches=8", func(o Order) { slices.Reverse(o[0][8:]) },
			"gpipe, but rank 0 takes its backwards in another order, 0B7 instead of 0B0 at place 8 (7 of 16 actions elsewhere)"},
	} {
		o := specOrder(t, c.spec)
		c.change(o)
		if got := Recognise(o); got.String() != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}

func TestRecogniseUnobserved(t *testing.T) {
	o := specOrder(t, "1f1b:ranks=4,microbatches=8")
	o[2] = nil
	got := Recognise(o)
	if got.String() != "1f1b" || !got.Exact || !slices.Equal(got.Unobserved, []int{2}) {
		t.Errorf("got %+v", got)
	}
	for _, o := range []Order{nil, {}, {nil, nil}, {{act(0, SendForward, 0)}}, {{forward(1<<24-1, 1<<24-1)}}} {
		if got := Recognise(o); got.Known() {
			t.Errorf("%v: recognised as %s", o, got)
		}
	}
}

// TestRecogniseFused: a zero-bubble order whose adjacent gradients ran as one.
func TestRecogniseFused(t *testing.T) {
	o := specOrder(t, "zb-h1:ranks=4,microbatches=8")
	for r, row := range fuse(computations(o)) {
		o[r] = row
	}
	if got := Recognise(o); got.String() != "zb-h1" || !got.Fused || !got.Exact {
		t.Errorf("got %+v", got)
	}
}

// TestRecogniseRandom: orders that run, but follow no schedule, are none.
func TestRecogniseRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 26))
	tried := 0
	for tried < 200 {
		o := randomOrder(r)
		if len(o) < 3 || o.Microbatches() < 4 || o.Stages() < 4 {
			continue
		}
		tried++
		got := Recognise(o)
		if got.Exact {
			again, err := got.Spec.Order()
			if err != nil || !sameRows(t, o, again) {
				t.Errorf("%v is exactly %s", o, got)
			}
			continue
		}
		if got.Known() {
			t.Errorf("%v: recognised as %s", o, got)
		}
	}
}
