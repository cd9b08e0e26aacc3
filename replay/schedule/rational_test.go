package schedule

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParseRational(t *testing.T) {
	for text, want := range map[string]string{
		"3": "3", "0": "0", "-2": "-2", "0.5": "1/2", "1.50": "3/2", "6/4": "3/2", "-1/3": "-1/3", "007": "7",
		strings.Repeat("9", 64): strings.Repeat("9", 64),
	} {
		got, err := ParseRational(text)
		if err != nil || got.String() != want {
			t.Errorf("%q: got %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "-", ".", "1.", ".5", "1/", "/2", "1/0", "1e9", "0x1", "1_0", "1.2.3", "1/2/3", "1.5/2", "+1", "--1", " 1", "١",
		strings.Repeat("9", 65), "0." + strings.Repeat("9", 64), strings.Repeat("9", 1<<20),
	} {
		if got, err := ParseRational(text); err == nil {
			t.Errorf("%.80q: got %s, want an error", text, got)
		}
	}
}

func TestRational(t *testing.T) {
	var zero Rational
	half, third := Ratio(1, 2), Ratio(1, 3)
	for got, want := range map[string]string{
		half.Add(third).String(): "5/6", half.Sub(third).String(): "1/6",
		half.Quo(third).String(): "3/2", zero.String(): "0", zero.Add(half).String(): "1/2", Ratio(3, 35).Decimal(4): "0.0857",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if n, ok := Int(7).Int64(); n != 7 || !ok {
		t.Error("7 is a whole number")
	}
	if _, ok := half.Int64(); ok {
		t.Error("1/2 is no whole number")
	}
	if !zero.Equal(Int(0)) || zero.Sign() != 0 || half.Cmp(third) != 1 {
		t.Error("comparisons")
	}
}

func TestRationalJSON(t *testing.T) {
	in := []Rational{Int(105), Ratio(3, 35), {}, Ratio(-1, 2)}
	data, err := json.Marshal(in)
	if err != nil || string(data) != `[105,"3/35",0,"-1/2"]` {
		t.Fatalf("%s, %v", data, err)
	}
	var out []Rational
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	for i := range in {
		wantNumber(t, "round trip", out[i], in[i])
	}
	for _, bad := range []string{`"x"`, `[1]`, `1e400`, `"1/0"`} {
		var r Rational
		if err := json.Unmarshal([]byte(bad), &r); err == nil {
			t.Errorf("%s: got %s, want an error", bad, r)
		}
	}
}

func FuzzParseRational(f *testing.F) {
	for _, seed := range []string{"1", "0.25", "3/35", "-7", "1/0", "1e5"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseRational(text)
		if err != nil {
			return
		}
		again, err := ParseRational(n.String())
		if err != nil || !again.Equal(n) {
			t.Errorf("%q: read as %s, again as %s, %v", text, n, again, err)
		}
	})
}
