package schedule

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// without drops actions of some kinds.
func without(o Order, kinds ...Kind) Order {
	left := make(Order, len(o))
	for r, row := range o {
		left[r] = slices.DeleteFunc(slices.Clone(row), func(a Action) bool { return slices.Contains(kinds, a.Kind) })
	}
	return left
}

// TestTorch compares with orders that PyTorch made and lowered. Set
// MIXDOWN_TORCH_ORDERS to a folder that testdata/torch/make.py filled to
// compare with all of them.
func TestTorch(t *testing.T) {
	folder := "testdata/torch"
	if all := os.Getenv("MIXDOWN_TORCH_ORDERS"); all != "" {
		folder = all
	}
	files, err := filepath.Glob(folder + "/*.csv")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	names := map[string]string{
		"Interleaved1F1B": "depth-first", "InterleavedZeroBubble": "interleaved-zero-bubble",
		"LoopedBFS": "breadth-first", "ZBVZeroBubble": "zbv", "DualPipeV": "dualpipev",
	}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := ReadCSV(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		base := without(want, SendForward, RecvForward, SendBackward, RecvBackward, WaitSendForward, WaitSendBackward)
		got, err := base.WithTransfers()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got = got.WithSendWaits(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", name, writeCSV(t, got), writeCSV(t, want))
		}
		if reduced := without(base, WaitReduceGradient); !reflect.DeepEqual(reduced.WithReductionWaits(), base) {
			t.Errorf("%s: reductions are waited for in other places", name)
		}
		mustEvaluate(t, got, DefaultCosts())

		r := Recognise(want)
		class, _, _ := strings.Cut(filepath.Base(name), "-")
		if !r.Exact || r.Spec.Name != names[class] && want.Microbatches() > 2 && want.Ranks() > 1 && want.Microbatches() >= 2*want.Ranks()-1 {
			t.Errorf("%s: recognised as %s", name, r)
		}
	}
}

// TestWithTransfers: every transfer is named and the order runs as before when
// hops take no time.
func TestWithTransfers(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	for i := range 400 {
		o := randomOrder(r)
		if i%2 == 0 {
			s := randomSpec(r)
			o = mustOrder(t, s.Name, s.Shape)
		}
		named, err := o.WithTransfers()
		if err != nil {
			t.Fatal(err)
		}
		if back := without(named, SendForward, RecvForward, SendBackward, RecvBackward); !reflect.DeepEqual(back, o) {
			t.Fatalf("the order changed from %v to %v", o, back)
		}
		line := mustEvaluate(t, o, DefaultCosts())
		sends := 0
		for _, row := range named {
			for _, a := range row {
				if a.Kind == SendForward || a.Kind == SendBackward {
					sends++
				}
			}
		}
		if sends != line.Messages() {
			t.Fatalf("%d sends, %d messages", sends, line.Messages())
		}
		waits := named.WithSendWaits()
		if got := mustEvaluate(t, waits, DefaultCosts()); got.Makespan().Cmp(line.Makespan()) < 0 {
			t.Fatalf("takes %s with waits, %s without", got.Makespan(), line.Makespan())
		}
		mustEvaluate(t, named, DefaultCosts())
	}
}

func TestWithTransfersErrors(t *testing.T) {
	read := func(text string) Order {
		o, err := ReadCSV(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	if _, err := read("0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0\n").WithTransfers(); !errors.Is(err, ErrOrder) || !strings.Contains(err.Error(), "names its transfers already") {
		t.Errorf("got %v", err)
	}
	var stuck *BlockedError
	if _, err := read("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n").WithTransfers(); !errors.As(err, &stuck) {
		t.Errorf("got %v", err)
	}
	if _, err := read("0F0,0F0\n").WithTransfers(); !errors.Is(err, ErrOrder) {
		t.Errorf("got %v", err)
	}
	if err := read("0F0,0WAIT_SEND_F0\n1F0\n").Validate(); !errors.Is(err, ErrOrder) || !strings.Contains(err.Error(), "0WAIT_SEND_F0 waits for a send that its rank does not make") {
		t.Errorf("got %v", err)
	}
}
