package chrome

import (
	"math"
	"strings"
	"testing"
)

func TestValueNumbers(t *testing.T) {
	tests := []struct {
		raw   string
		i     int64
		isInt bool
		u     uint64
		isU   bool
		f     float64
		isF   bool
	}{
		{"0", 0, true, 0, true, 0, true},
		{"-0", 0, true, 0, true, 0, true},
		{"42", 42, true, 42, true, 42, true},
		{`"42"`, 42, true, 42, true, 42, true},
		{`" 42 "`, 42, true, 42, true, 42, true},
		{"42.000", 42, true, 42, true, 42, true},
		{"4.2e1", 42, true, 42, true, 42, true},
		{"4200e-2", 42, true, 42, true, 42, true},
		{"-7", -7, true, 0, false, -7, true},
		{"1.5", 0, false, 0, false, 1.5, true},
		{`"1.5"`, 0, false, 0, false, 1.5, true},
		{"9007199254740993", 9007199254740993, true, 9007199254740993, true, 9007199254740992, true},
		{"9223372036854775807", math.MaxInt64, true, math.MaxInt64, true, math.MaxInt64, true},
		{"-9223372036854775808", math.MinInt64, true, 0, false, math.MinInt64, true},
		{"9223372036854775808", 0, false, 1 << 63, true, 1 << 63, true},
		{"18446744073709551615", 0, false, math.MaxUint64, true, math.MaxUint64, true},
		{"18446744073709551616", 0, false, 0, false, 1 << 64, true},
		{"1e400", 0, false, 0, false, 0, false},
		{"1e-400", 0, false, 0, false, 0, true},
		{"null", 0, false, 0, false, 0, false},
		{"true", 0, false, 0, false, 0, false},
		{`""`, 0, false, 0, false, 0, false},
		{`"x"`, 0, false, 0, false, 0, false},
		{"[1]", 0, false, 0, false, 0, false},
		{"-", 0, false, 0, false, 0, false},
		{"1e", 0, false, 0, false, 0, false},
		{"1.2.3", 0, false, 0, false, 0, false},
	}
	for _, tt := range tests {
		v := ParseValue([]byte(tt.raw))
		if i, ok := v.Int(); ok != tt.isInt || i != tt.i && ok {
			t.Errorf("%s: Int %d, %v", tt.raw, i, ok)
		}
		if u, ok := v.Uint(); ok != tt.isU || u != tt.u && ok {
			t.Errorf("%s: Uint %d, %v", tt.raw, u, ok)
		}
		if f, ok := v.Float(); ok != tt.isF || f != tt.f && ok {
			t.Errorf("%s: Float %v, %v", tt.raw, f, ok)
		}
	}
}

func TestValueKinds(t *testing.T) {
	for raw, want := range map[string]Kind{
		"null": Null, "true": Bool, "false": Bool, "1": Number, `"x"`: String, "[]": Array, "{}": Object,
		"nan": Invalid, "None": Invalid, "1 2": Invalid, "[": Invalid, `"x`: Invalid, "{": Invalid, "": Invalid,
	} {
		if got := ParseValue([]byte(raw)).Kind(); got != want {
			t.Errorf("%s: %v, want %v", raw, got, want)
		}
	}
	if b, ok := ParseValue([]byte("true")).Bool(); !b || !ok {
		t.Error("true is not true")
	}
	if _, ok := (Value{}).Bool(); ok {
		t.Error("the zero Value is a bool")
	}
}

func TestText(t *testing.T) {
	for raw, want := range map[string]string{
		`plain`:               "plain",
		`\"\\\/\b\f\n\r\t`:    "\"\\/\b\f\n\r\t",
		`\u00e9\u4E2d`:        "é中",
		`\ud83d\ude00`:        "😀",
		`\ud83d`:              "\uFFFD",
		`\ud83dx`:             "\uFFFDx",
		`\ud83d\u0041`:        "\uFFFDA",
		`\ude00\ud83d`:        "\uFFFD\uFFFD",
		"\xff":                "\uFFFD",
		"é\xc3":               "é\uFFFD",
		`c:\dir\new`:          `c:\dir\new`,
		`\u12`:                `\u12`,
		`\u12g4\n`:            `\u12g4\n`,
		`end\\`:               `end\`,
		"raw\x01\x1f":         "raw\x01\x1f",
		`<|"Ünïcödé" names|>`: `<|"Ünïcödé" names|>`,
		`\uD83D\uDE00\uD83D\`: `\uD83D\uDE00\uD83D\`,
	} {
		if got := string(appendText(nil, []byte(raw))); got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
}

func TestScanStringFlags(t *testing.T) {
	pad := strings.Repeat("x", 13)
	for text, want := range map[string]strFlags{
		"":             0,
		pad:            0,
		pad + `\n`:     strEscape,
		pad + "\x01":   strControl,
		"\x1f" + pad:   strControl,
		pad + "é":      strHigh,
		pad + "\xff":   strHigh | strBadUTF8,
		"\xc3" + pad:   strHigh | strBadUTF8,
		`\c` + pad:     strEscape | strBadEscape,
		pad + `\ud800`: strEscape | strBadUTF8,
		"\x7f" + pad:   0,
		"!#[]~" + pad:  0,
	} {
		b := []byte(text + `"tail`)
		end, fl := scanString(b, 0)
		if end != len(text) || fl != want {
			t.Errorf("%q: end %d, flags %b; want %d, %b", text, end, fl, len(text), want)
		}
		for n := range len(text) + 1 {
			if end, _ := scanString(b[:n], 0); end != needMore {
				t.Errorf("%q: cut at %d: end %d", text, n, end)
			}
		}
	}
}

func TestArgs(t *testing.T) {
	args := ArgsOf([]byte(`{"a": 1, "b c": "x", "k\"q": [1, {"z": 2}, "s"], "a": 2, "e": {}}`))
	if v, ok := args.Get("a"); !ok || string(v.Raw()) != "2" {
		t.Errorf("a = %s", v.Raw())
	}
	if v, ok := args.Get(`k"q`); !ok || v.Len() != 3 {
		t.Errorf("k\"q = %s", v.Raw())
	} else {
		var kinds []string
		v.Each(func(e Value) bool { kinds = append(kinds, e.Kind().String()); return true })
		if got := strings.Join(kinds, " "); got != "number object string" {
			t.Errorf("kinds %s", got)
		}
	}
	if _, ok := args.Get("missing"); ok {
		t.Error("found what is not there")
	}
	n := 0
	args.Each(func([]byte, Value) bool { n++; return n < 2 })
	if n != 2 {
		t.Errorf("Each did not stop: %d", n)
	}
	var none Args
	none.Each(func([]byte, Value) bool { t.Error("no args, but a member"); return true })
	if none.Raw() != nil {
		t.Error("no args, but bytes")
	}
}

func TestScaleDecimal(t *testing.T) {
	tests := []struct {
		s     string
		shift int
		want  int64
		st    decStatus
	}{
		{"1", 3, 1000, decOK},
		{"1.2345", 3, 1235, decInexact},
		{"1.2344999", 3, 1234, decInexact},
		{"-1.2345", 3, -1235, decInexact},
		{"1.2340000", 3, 1234, decOK},
		{"000001.5", 3, 1500, decOK},
		{"1e3", 3, 1000000, decOK},
		{"1E+3", 3, 1000000, decOK},
		{"123456e-9", 3, 0, decInexact},
		{"500e-6", 3, 1, decInexact},
		{"499e-6", 3, 0, decInexact},
		{"0e999999999999999", 3, 0, decOK},
		{"0.0e-999999999999999", 3, 0, decOK},
		{"1e-999999999999999", 3, 0, decInexact},
		{"9223372036854775.8074", 3, math.MaxInt64, decInexact},
		{"9223372036854775.8075", 3, 0, decOverflow},
		{"99999999999999999999999", 3, 0, decOverflow},
		{".5", 3, 500, decOK},
		{"5.", 3, 5000, decOK},
		{"+5", 3, 5000, decOK},
		{"", 3, 0, decBad},
		{".", 3, 0, decBad},
		{"-", 3, 0, decBad},
		{"1e+", 3, 0, decBad},
		{"1x", 3, 0, decBad},
		{"1-2", 3, 0, decBad},
	}
	for _, tt := range tests {
		if got, st := scaleInt([]byte(tt.s), tt.shift); got != tt.want || st != tt.st {
			t.Errorf("%s: %d, %d; want %d, %d", tt.s, got, st, tt.want, tt.st)
		}
		if tt.shift == 3 {
			if got, st := microsToNanos([]byte(tt.s)); got != tt.want || st != tt.st {
				t.Errorf("microsToNanos(%s): %d, %d; want %d, %d", tt.s, got, st, tt.want, tt.st)
			}
		}
	}
}
