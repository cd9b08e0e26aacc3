package schedule

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func writeCSV(t testing.TB, o Order) string {
	t.Helper()
	var b bytes.Buffer
	if err := o.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReadCSV(t *testing.T) {
	// As PyTorch pads a compute_only file, with CRLF and empty rows behind.
	o, err := ReadCSV(strings.NewReader("0F0,0F1,,,0B0, 0B1\r\n,1F0,1F1,1B0,1B1,\r\n\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := writeCSV(t, o), "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReadCSVOfPyTorch25(t *testing.T) {
	o, err := ReadCSV(strings.NewReader("0F0,0F1,0BW0,0B1,0W1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := writeCSV(t, o), "0F0,0F1,0B0,0I1,0W1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReadCSVErrors(t *testing.T) {
	for csv, want := range map[string]string{
		"":                                "no action in it",
		",,\n,\n":                         "no action in it",
		"0F0\n1F0,1Q0\n":                  `row 2, cell 2: action "1Q0": unknown kind "Q"`,
		"(0F0;0B0OVERLAP_F_B\n":           "row 1, cell 1",
		"(0F0)OVERLAP_F_B\n":              "expected the form (0F5;7B3)OVERLAP_F_B",
		"(0B0;0F0)OVERLAP_F_B\n":          "expected a forward and then a backward",
		"(0F0;0F1)OVERLAP_F_B\n":          "expected a forward and then a backward",
		"(0F0;x)OVERLAP_F_B\n":            `overlapped pair "(0F0;x)OVERLAP_F_B"`,
		"(;0B1)OVERLAP_F_B\n":             "stage: a number is missing",
		"stage,action\n0F0,0F1,0B0,0B1\n": `row 1, cell 1: action "stage"`,
	} {
		_, err := ReadCSV(strings.NewReader(csv))
		if !errors.Is(err, ErrOrder) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want ...%s...", csv, err, want)
		}
	}
	broken := errors.New("broken")
	if _, err := ReadCSV(brokenPipe{broken}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if err := specOrder(t, "gpipe:ranks=1,microbatches=1").WriteCSV(brokenPipe{broken}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type brokenPipe struct{ err error }

func (b brokenPipe) Read([]byte) (int, error)  { return 0, b.err }
func (b brokenPipe) Write([]byte) (int, error) { return 0, b.err }

// TestOrderRoundTrip: orders survive CSV and JSON.
func TestOrderRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for i := range 300 {
		o, err := randomSpec(r).Order()
		if err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			o = withTransfers(randomOrder(r))
		}
		read, err := ReadCSV(strings.NewReader(writeCSV(t, o)))
		if err != nil || !reflect.DeepEqual(read, o) {
			t.Fatalf("CSV: %v\n got %v\nwant %v", err, read, o)
		}
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var parsed Order
		if err := json.Unmarshal(data, &parsed); err != nil || !reflect.DeepEqual(parsed, o) {
			t.Fatalf("JSON: %v\n got %v\nwant %v", err, parsed, o)
		}
	}
}

func TestOrderJSONErrors(t *testing.T) {
	for data, want := range map[string]string{
		`[["0F0"],["1F0","1Q0"]]`: `rank 1, place 1: action "1Q0"`,
		`[[1]]`:                   "cannot unmarshal number",
	} {
		var o Order
		if err := json.Unmarshal([]byte(data), &o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want ...%s...", data, err, want)
		}
	}
}

func FuzzReadCSV(f *testing.F) {
	for _, seed := range []string{
		"0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n", "0F0,,0I0,0W0\n", "0F0,0BW0\n", "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n",
		"0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n", "\n0F0\n", "16777215F16777215", "\v",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := ReadCSV(strings.NewReader(text))
		if err != nil {
			if !errors.Is(err, ErrOrder) {
				t.Errorf("%q: %v is not ErrOrder", text, err)
			}
			return
		}
		again, err := ReadCSV(strings.NewReader(writeCSV(t, o)))
		if err != nil || !reflect.DeepEqual(again, o) {
			t.Errorf("%q: read as %v, again as %v, %v", text, o, again, err)
		}
		if r := Recognise(o); r.InPlace.Sign() < 0 || r.InPlace.Cmp(Int(1)) > 0 || r.Exact && !r.Known() {
			t.Errorf("%q: recognised as %+v", text, r)
		}
		line, err := Evaluate(o, DefaultCosts())
		if named, e := o.WithTransfers(); e == nil {
			if _, e := Evaluate(named.WithSendWaits(), DefaultCosts()); e != nil {
				t.Errorf("%q: with transfers: %v", text, e)
			}
		}
		var stuck *BlockedError
		switch {
		case errors.As(err, &stuck):
			checkChain(t, o, stuck.Chain)
		case err != nil && !errors.Is(err, ErrOrder):
			t.Errorf("%q: %v", text, err)
		case err == nil:
			if bubble := line.Bubble(); bubble.Sign() < 0 || bubble.Cmp(Int(1)) >= 0 {
				t.Errorf("%q: bubble %s", text, bubble)
			}
		}
	})
}

// PyTorch finds losses by the place of a forward on the last stage.
func TestNumbered(t *testing.T) {
	for _, text := range []string{"hybrid:ranks=4,microbatches=8,loops=2,rounds=2", "breadth-first:ranks=2,microbatches=4,loops=2", "zbv:ranks=2,microbatches=4"} {
		spec, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		order, err := spec.Order()
		if err != nil {
			t.Fatal(err)
		}
		numbered := order.Numbered()
		last, next := int32(order.Stages()-1), int32(0)
		for _, row := range numbered {
			for _, a := range row {
				if a.Kind == Forward && a.Stage == last {
					if a.Microbatch != next {
						t.Errorf("%s: forward %d of the last stage is of micro-batch %d", text, next, a.Microbatch)
					}
					next++
				}
			}
		}
		a, _ := Evaluate(order, DefaultCosts())
		b, err := Evaluate(numbered, DefaultCosts())
		if err != nil || !a.Makespan().Equal(b.Makespan()) {
			t.Errorf("%s: takes %v numbered, %v before: %v", text, b, a, err)
		}
	}
	// Both directions of Chimera have a last stage: there is no such numbering.
	spec, _ := Parse("chimera:ranks=4,microbatches=4")
	order, err := spec.Order()
	if err != nil {
		t.Fatal(err)
	}
	if got := order.Numbered(); got[0][0] != order[0][0] {
		t.Error("chimera was renumbered")
	}
}
