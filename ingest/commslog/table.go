package commslog

import (
	"strconv"
	"strings"
)

// The words of the headers of both tables, as far as they tell them apart.
var (
	summaryWords   = []string{"Comm.", "Op", "Message", "Size", "Count", "Total", "Latency(ms)"}
	stragglerWords = []string{"Comm.", "Op", "Message", "Size", "Count", "Total", "comm", "lat(ms)"}
)

// headerAt returns where the header of the given words begins in line, -1 when
// line is no such header.
func headerAt(line string, words []string) int {
	start := strings.Index(line, "Comm. Op")
	if start < 0 {
		return -1
	}
	rest := line[start:]
	for _, w := range words {
		rest = strings.TrimLeft(rest, " \t")
		if !strings.HasPrefix(rest, w) {
			return -1
		}
		rest = rest[len(w):]
	}
	return start
}

// tables reads the tables of a text, line by line.
type tables struct {
	log       *Log
	open      bool // a header was seen
	straggler bool // and it was that of a straggler table

	// prefix is what the launcher wrote before the header, such as
	// "[default0]:". Lines with another prefix belong to another process.
	prefix string

	name, caller string
	named        bool

	// unmatched holds the rows of the summary, by what a straggler row shows,
	// that have no straggler row yet.
	unmatched map[rowKey][]int
}

type rowKey struct {
	name, caller   string
	sizeLo, sizeHi int64
}

// line reads one line; it reports whether a row was added.
func (t *tables) line(line string, at int64) bool {
	if i := headerAt(line, summaryWords); i >= 0 {
		t.begin(line[:i], at)
		return false
	}
	if i := headerAt(line, stragglerWords); i >= 0 {
		t.beginStraggler(line[:i], at)
		return false
	}
	own, ok := t.own(line)
	if !ok {
		return false
	}
	if looksLikeRow(own) {
		return t.row(own, at)
	}
	if !t.open {
		return false
	}
	// Whatever collected the output may have squeezed its blanks.
	if _, ok := byGrammar(own); ok {
		return t.row(own, at)
	}
	if name, caller, ok := splitName(own); ok && own != "" && own[0] != ' ' {
		t.name, t.caller, t.named = name, caller, true
	}
	return false
}

// own returns the line without the launcher's prefix, false when it is another
// process's.
func (t *tables) own(line string) (string, bool) {
	if t.prefix == "" {
		return line, true
	}
	if len(line) < len(t.prefix) || !samePrefix(t.prefix, line[:len(t.prefix)]) {
		return "", false
	}
	return line[len(t.prefix):], true
}

// samePrefix compares what a launcher writes before lines. Times in it change
// from line to line, numbers of processes do not: digits may differ only next
// to a ':' or '.' and a digit, as in 12:03:59.123.
func samePrefix(a, b string) bool {
	if a == b {
		return true
	}
	if !strings.Contains(a, ":") {
		return false
	}
	timed := timeBytes(a)
	for i := range len(a) {
		if a[i] != b[i] && !(timed[i] && b[i] >= '0' && b[i] <= '9') {
			return false
		}
	}
	return true
}

// timeBytes marks the digits of s that belong to times of day: runs of digits
// and colons, points and commas that hold at least two colons.
func timeBytes(s string) []bool {
	marks := make([]bool, len(s))
	for i := 0; i < len(s); {
		j, colons := i, 0
		for j < len(s) && (s[j] >= '0' && s[j] <= '9' || strings.IndexByte(":.,", s[j]) >= 0) {
			if s[j] == ':' {
				colons++
			}
			j++
		}
		for k := i; k < j; k++ {
			marks[k] = colons >= 2 && s[k] >= '0' && s[k] <= '9'
		}
		i = max(j, i+1)
	}
	return marks
}

func (t *tables) begin(prefix string, at int64) {
	table := Table{Offset: at}
	table.Rank, table.RankKnown = rankInPrefix(prefix)
	t.log.Tables = append(t.log.Tables, table)
	*t = tables{log: t.log, open: true, prefix: prefix, unmatched: map[rowKey][]int{}}
}

func (t *tables) beginStraggler(prefix string, at int64) {
	if !t.open || t.straggler || !samePrefixLength(t.prefix, prefix) {
		t.begin(prefix, at) // the summary above it is lost
	}
	t.open, t.straggler, t.named = true, true, false
	t.current().Straggler = true
}

func samePrefixLength(a, b string) bool { return len(a) == len(b) && samePrefix(a, b) }

func (t *tables) current() *Table { return &t.log.Tables[len(t.log.Tables)-1] }

// rankInPrefix finds a rank in what a launcher wrote: "[rank3]:" or "rank 3:".
// "[default3]:" of torchrun is a local rank and tells nothing.
func rankInPrefix(s string) (int, bool) {
	lower := lowerASCII(s)
	i := strings.LastIndex(lower, "rank")
	if i < 0 || i > 0 && (lower[i-1] == '_' || lower[i-1] >= 'a' && lower[i-1] <= 'z') ||
		strings.HasSuffix(strings.TrimRight(lower[:i], " _-"), "local") {
		return 0, false
	}
	return leadingInt(strings.TrimLeft(s[i+len("rank"):], " =:_-"))
}

// lowerASCII keeps the length of s, as strings.ToLower does not.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// leadingInt reads the decimal number that s begins with.
func leadingInt(s string) (int, bool) {
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	if end == 0 || end > 8 {
		return 0, false
	}
	n, err := strconv.Atoi(s[:end])
	return n, err == nil
}

// row reads a line that looks like a row.
func (t *tables) row(line string, at int64) bool {
	f, ok := splitRow(line)
	if !ok {
		// Indented output of others begins with digits, too: only what stands
		// in a table counts as a row that is broken.
		if t.open {
			t.log.note(CodeBadRow, at, line)
		}
		return false
	}
	if !t.open || !t.named {
		t.log.note(CodeOrphanRow, at, line)
		return false
	}
	var r Row
	if t.straggler {
		r, ok = f.straggler()
	} else {
		r, ok = f.summary()
	}
	if !ok {
		t.log.note(CodeBadRow, at, line)
		return false
	}
	r.Name, r.Caller, r.Op, r.Offset = t.name, t.caller, opOf(t.name), at
	key := rowKey{r.Name, r.Caller, r.SizeLo, r.SizeHi}
	table := t.current()
	if t.straggler {
		// Different sizes may print alike; both tables have them in order.
		if same := t.unmatched[key]; len(same) > 0 {
			table.Rows[same[0]].Straggler = r.Straggler
			t.unmatched[key] = same[1:]
			return false
		}
		t.log.note(CodeUnmatched, at, line)
	} else {
		t.unmatched[key] = append(t.unmatched[key], len(table.Rows))
	}
	t.log.unknownName(r.Op, r.Name, at)
	table.Rows = append(table.Rows, r)
	return true
}
