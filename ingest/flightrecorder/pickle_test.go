package flightrecorder

import (
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The fixtures in testdata are made by testdata/generate.py with Python 3.11
// and 2.7; the text beside a pickle is what Python's ascii() writes of it.

// ascii writes a value as Python's ascii() does.
func ascii(v value) string {
	switch x := v.(type) {
	case nil:
		return "None"
	case bool:
		if x {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(x, 10)
	case *big.Int:
		return x.String()
	case float64:
		s := strconv.FormatFloat(x, 'g', -1, 64)
		if !strings.ContainsAny(s, ".en") {
			s += ".0"
		}
		return s
	case string:
		return asciiText(x)
	case []byte:
		var b strings.Builder
		for _, c := range x {
			if c >= ' ' && c < 0x7f {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		}
		return "b'" + b.String() + "'"
	case *list:
		return "[" + asciiAll(x.items) + "]"
	case tuple:
		if len(x) == 1 {
			return "(" + ascii(x[0]) + ",)"
		}
		return "(" + asciiAll(x) + ")"
	case *dict:
		var parts []string
		for _, p := range x.pairs {
			parts = append(parts, ascii(p.key)+": "+ascii(p.value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprintf("?%T", v)
}

func asciiAll(items []value) string {
	var parts []string
	for _, item := range items {
		parts = append(parts, ascii(item))
	}
	return strings.Join(parts, ", ")
}

func asciiText(s string) string {
	quote := "'"
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = `"`
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\\':
			b.WriteString(`\\`)
		case string(r) == quote:
			b.WriteString(`\` + quote)
		case r >= ' ' && r < 0x7f:
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return quote + b.String() + quote
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestPlainPickles(t *testing.T) {
	wants := map[string]string{}
	for p := range 6 {
		want := strings.TrimSpace(string(fixture(t, fmt.Sprintf("plain_p%d.txt", p))))
		wants[fmt.Sprintf("plain_p%d", p)] = strings.Replace(want, "bytearray(b'z')", "b'z'", 1)
	}
	for _, p := range []string{"0", "1", "2"} {
		wants["plain_py27_p"+p] = `['text', "it's \\ \n \x01", '\xe9\\u', 7, 1180591620717411303424, True, None, 1.5, {'a': ('b',)}]`
	}
	for name, want := range wants {
		v, cut, err := readPickle(fixture(t, name+".pickle"), Options{}.withDefaults())
		if err != nil || cut {
			t.Errorf("%s: cut %v, error %v", name, cut, err)
			continue
		}
		if got := ascii(v); strings.Replace(got, "1e+300", "1e+300", 1) != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

// TestHostilePickles: what Python would run code for is refused, by opcode and
// offset. The pickles are those that "generate.py hostile" prints.
func TestHostilePickles(t *testing.T) {
	for _, c := range []struct {
		name, input, opcode string
		at                  int
	}{
		{"reduce 0", "(dp0\nVversion\np1\ncposix\nsystem\np2\n(Vtrue\np3\ntp4\nRp5\ns.", "GLOBAL (0x63)", 17},
		{"object 0", "(dp0\nVversion\np1\nccopy_reg\n_reconstructor\np2\n(c__main__\nState\np3\nc__builtin__\nobject\np4\nNtp5\nRp6\n(dp7\nVx\np8\nI1\nsbs.", "GLOBAL (0x63)", 17},
		{"reduce 1", "}q\x00X\x07\x00\x00\x00versionq\x01cposix\nsystem\nq\x02(X\x04\x00\x00\x00trueq\x03tq\x04Rq\x05s.", "GLOBAL (0x63)", 17},
		{"reduce 2", "\x80\x02}q\x00X\x07\x00\x00\x00versionq\x01cposix\nsystem\nq\x02X\x04\x00\x00\x00trueq\x03\x85q\x04Rq\x05s.", "GLOBAL (0x63)", 19},
		{"object 3", "\x80\x03}q\x00X\x07\x00\x00\x00versionq\x01c__main__\nState\nq\x02)\x81q\x03}q\x04X\x01\x00\x00\x00xq\x05K\x01sbs.", "GLOBAL (0x63)", 19},
		{"reduce 4", "\x80\x04\x95,\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x07version\x94\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x04true\x94\x85\x94R\x94s.", "STACK_GLOBAL (0x93)", 40},
		{"object 5", "\x80\x05\x950\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x07version\x94\x8c\x08__main__\x94\x8c\x05State\x94\x93\x94)\x81\x94}\x94\x8c\x01x\x94K\x01sbs.", "STACK_GLOBAL (0x93)", 42},
		{"persistent 0", "(dp0\nVversion\np1\nPid\ns.", "PERSID (0x50)", 17},
		{"persistent 2", "\x80\x02}q\x00X\x07\x00\x00\x00versionq\x01X\x02\x00\x00\x00idq\x02Qs.", "BINPERSID (0x51)", 28},
		{"set", "\x80\x04\x95\x14\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x07version\x94\x8f\x94(K\x01\x90s.", "EMPTY_SET (0x8f)", 23},
		{"frozenset", "\x80\x04\x95\x13\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x07version\x94(K\x01\x91\x94s.", "FROZENSET (0x91)", 26},
		{"bytes 2", "\x80\x02}q\x00X\x07\x00\x00\x00versionq\x01c_codecs\nencode\nq\x02X\x02\x00\x00\x00\xc3\xbfq\x03X\x06\x00\x00\x00latin1q\x04\x86q\x05Rq\x06s.", "GLOBAL (0x63)", 19},
		{"buffer", "\x80\x05\x95\x0f\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x07version\x94\x97s.", "NEXT_BUFFER (0x97)", 23},
		// By hand: those that today's Python writes no more, or only with a registry.
		{"reduce", "\x80\x02NNR.", "REDUCE (0x52)", 4},
		{"build", "\x80\x02}}b.", "BUILD (0x62)", 4},
		{"inst", "(ios\nsystem\n.", "INST (0x69)", 1},
		{"obj", "(No.", "OBJ (0x6f)", 2},
		{"newobj", "\x80\x02)\x81.", "NEWOBJ (0x81)", 3},
		{"newobj_ex", "\x80\x04)}\x92.", "NEWOBJ_EX (0x92)", 4},
		{"ext1", "\x80\x02\x82\x01.", "EXT1 (0x82)", 2},
		{"ext2", "\x80\x02\x83\x01\x00.", "EXT2 (0x83)", 2},
		{"ext4", "\x80\x02\x84\x01\x00\x00\x00.", "EXT4 (0x84)", 2},
		{"additems", "\x80\x04(\x90.", "ADDITEMS (0x90)", 3},
		{"readonly_buffer", "\x80\x05\x98.", "READONLY_BUFFER (0x98)", 2},
		{"at once", "cposix\nsystem\n.", "GLOBAL (0x63)", 0},
	} {
		_, err := Read(strings.NewReader(c.input), "nccl_trace_rank_0", Options{})
		if !errors.Is(err, ErrUnsafePickle) {
			t.Errorf("%s: error %v", c.name, err)
			continue
		}
		if want := fmt.Sprintf("opcode %s at byte %d", c.opcode, c.at); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q does not say %q", c.name, err, want)
		}
	}
}

func TestBrokenPickles(t *testing.T) {
	for _, c := range []struct{ name, input string }{
		{"protocol", "\x80\x06N."},
		{"no value", "\x80\x02."},
		{"unknown opcode", "\x80\x02\xff."},
		{"pop of nothing", "\x80\x020."},
		{"dup of nothing", "\x80\x022."},
		{"no mark", "\x80\x02u."},
		{"tuple of nothing", "\x80\x02\x85."},
		{"tuple through a mark", "\x80\x02N(\x85."},
		{"append to dict", "\x80\x02}Na."},
		{"items of list", "\x80\x02](NNu."},
		{"odd items", "\x80\x02}(Nu."},
		{"memo of nothing", "\x80\x02q\x00."},
		{"nothing in memo", "\x80\x02h\x07."},
		{"bad memo key", "gx\n."},
		{"bad integer", "(I1x\n."},
		{"underscore", "(I1_0\n."},
		{"bad float", "(Fx\n."},
		{"bad string", "(Sx\n."},
		{"cut string literal", "(S'\\x1'\n."},
		{"nothing", "\x80"},
	} {
		if _, _, err := readPickle([]byte(c.input), Options{}.withDefaults()); !errors.Is(err, ErrBadPickle) {
			t.Errorf("%s: error %v", c.name, err)
		}
	}
}

func TestPickleLimits(t *testing.T) {
	for _, c := range []struct {
		name, input string
		limits      Options
	}{
		{"stack", "\x80\x02" + strings.Repeat("N", 200) + ".", Options{MaxStack: 100}},
		{"marks", "\x80\x02" + strings.Repeat("(", 200) + ".", Options{}},
		{"memo", "\x80\x04N" + strings.Repeat("\x94", 200) + ".", Options{MaxMemo: 100}},
		{"objects", "\x80\x02]" + strings.Repeat("Na", 200) + ".", Options{MaxObjects: 100}},
		{"big integer", "\x80\x02\x8b\x00\x10\x00\x00" + strings.Repeat("\xff", 4096) + ".", Options{}},
		{"long integer text", "(L" + strings.Repeat("9", 5000) + "L\n.", Options{}},
	} {
		if _, _, err := readPickle([]byte(c.input), c.limits.withDefaults()); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: error %v", c.name, err)
		}
	}
	// A length beyond the end takes no memory.
	for _, input := range []string{"\x80\x02X\xff\xff\xff\xff", "\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff", "\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7fabc"} {
		if _, _, err := readPickle([]byte(input), Options{}.withDefaults()); err == nil {
			t.Errorf("%q was read", input)
		}
	}
}

// TestSharedValues: a small pickle whose values refer to one list again and
// again must not become a large dump.
func TestSharedValues(t *testing.T) {
	frames := "(" + strings.Repeat("N", 1000) + "l\x94" // kept as 0
	entry := "}(\x8c\x0eprofiling_name\x8c\x04nccl\x8c\x06framesh\x00u\x94"
	input := "\x80\x04}\x8c\x07entries(" + frames + entry + strings.Repeat("h\x01", 10000) + "ls."
	_, err := Read(strings.NewReader(input), "x", Options{MaxObjects: 100000})
	if !errors.Is(err, ErrLimit) {
		t.Errorf("error %v", err)
	}
}

// TestRecursivePickle: a list that holds itself ends nothing in a loop.
func TestRecursivePickle(t *testing.T) {
	if _, err := Read(strings.NewReader("\x80\x02]q\x00h\x00a."), "x", Options{}); !errors.Is(err, ErrNotDump) {
		t.Errorf("error %v", err)
	}
	d, err := Read(strings.NewReader("\x80\x02}q\x00(X\x07\x00\x00\x00entriesh\x00X\x09\x00\x00\x00pg_configh\x00u."), "x", Options{})
	if err != nil || len(d.Entries) != 0 {
		t.Errorf("dump %+v, error %v", d, err)
	}
}
