package schedule

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestParseAction(t *testing.T) {
	for text, want := range map[string]Action{
		"0F3":          forward(0, 3),
		"1B2":          backward(1, 2),
		"0I1":          input(0, 1),
		"12W345":       weight(12, 345),
		"2SEND_F0":     act(2, SendForward, 0),
		"2RECV_F0":     act(2, RecvForward, 0),
		"2SEND_B0":     act(2, SendBackward, 0),
		"2RECV_B0":     act(2, RecvBackward, 0),
		"1UNSHARD":     act(1, Unshard, NoMicrobatch),
		"1RESHARD":     act(1, Reshard, NoMicrobatch),
		"3REDUCE_GRAD": act(3, ReduceGradient, NoMicrobatch),
	} {
		got, err := ParseAction(text)
		if err != nil || got != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
		if got.String() != text {
			t.Errorf("%s is written %s", text, got)
		}
	}
	if a, err := ParseAction("0BW3"); err != nil || a != backward(0, 3) {
		t.Errorf("0BW3: got %v, %v", a, err)
	}
	for text, want := range map[string]string{
		"":             "stage: a number is missing (an action looks like 0F3)",
		"F3":           "stage: a number is missing",
		"0F":           "micro-batch: a number is missing",
		"0X3":          `unknown kind "X" (known: F B I W SEND_F`,
		"0f3":          `unknown kind "f"`,
		"0UNSHARD3":    "UNSHARD takes no micro-batch",
		"0F3 ":         `unknown kind "F3 "`,
		"-1F3":         "stage: a number is missing",
		"0F99999999":   "micro-batch: number too big",
		"99999999999F": "stage: number too big",
	} {
		if _, err := ParseAction(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want ...%s...", text, err, want)
		}
	}
}

// TestActionRoundTrip: what any action is written as is read as that action.
func TestActionRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 2000 {
		a := act(r.IntN(maxIndex+1), Kind(r.IntN(kinds)), r.IntN(maxIndex+1))
		if !a.Kind.hasMicrobatch() {
			a.Microbatch = NoMicrobatch
		}
		if got, err := ParseAction(a.String()); err != nil || got != a {
			t.Fatalf("%s is read as %v, %v", a, got, err)
		}
	}
}

func TestKindString(t *testing.T) {
	if got := Kind(200).String(); got != "Kind(200)" {
		t.Error(got)
	}
}

func FuzzParseAction(f *testing.F) {
	for _, seed := range []string{"0F3", "1B2", "0BW1", "2SEND_F0", "0UNSHARD", "99999999F1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAction(text)
		if err != nil {
			return
		}
		if again, err := ParseAction(a.String()); err != nil || again != a {
			t.Errorf("%q: read as %v, again as %v, %v", text, a, again, err)
		}
	})
}
