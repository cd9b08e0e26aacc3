package executiontrace

// verdict is what a grammar says after some bytes.
type verdict uint8

const (
	needMore verdict = iota // the value goes on behind these bytes
	complete                // the value ended
	broken                  // no JSON value can go on like this
	tooDeep
	nodeCut // another node begins inside: this one was never finished
)

type grammarState uint8

const (
	wantValue      grammarState = iota
	wantValueOrEnd              // behind '['
	wantKey                     // behind ',' in an object
	wantKeyOrEnd                // behind '{'
	wantColon
	wantSeparator // behind a value
	inKey
	inString
	inWord
)

// grammar delimits one JSON value and checks its structure on the way, so that
// a lost quote shows where it is and not at the end of the file. It can stop
// behind any byte and go on with others.
type grammar struct {
	stack   []byte // open brackets
	state   grammarState
	escaped bool
	depth   int  // of stack, at most
	nodes   bool // look for nodes inside
}

func (g *grammar) begin(depth int, nodes bool) {
	*g = grammar{stack: g.stack[:0], depth: depth, nodes: nodes}
}

// feed goes on at b[i] and returns the index behind the value, or that of the
// byte where it stopped. atEnd tells that no bytes follow b.
func (g *grammar) feed(b []byte, i int, atEnd bool) (int, verdict) {
	for i < len(b) {
		c := b[i]
		switch g.state {
		case inString, inKey:
			switch {
			case g.escaped:
				g.escaped = false
			case c == '\\':
				g.escaped = true
			case c == '"':
				if g.state == inKey {
					g.state = wantColon
				} else if g.state = wantSeparator; len(g.stack) == 0 {
					return i + 1, complete
				}
			case c == '\n':
				return i, broken // PyTorch breaks lines between nodes only
			}
			i++
			continue
		case inWord:
			if wordByte(c) {
				i++
				continue
			}
			if g.state = wantSeparator; len(g.stack) == 0 {
				return i, complete
			}
		}
		if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
			i++
			continue
		}
		if c == '{' && g.nodes && len(g.stack) > 0 {
			switch at := nodeStart(b[i:], atEnd); at {
			case maybe:
				return i, needMore
			case yes:
				return i, nodeCut
			}
		}
		if v := g.token(c); v != needMore {
			if v == complete {
				i++
			}
			return i, v
		}
		i++
	}
	if atEnd && g.state == inWord && len(g.stack) == 0 {
		return i, complete
	}
	return i, needMore
}

// token takes one byte outside of strings and words.
func (g *grammar) token(c byte) verdict {
	switch g.state {
	case wantKey, wantKeyOrEnd:
		switch {
		case c == '"':
			g.state = inKey
		case c == '}' && g.state == wantKeyOrEnd:
			return g.close(c)
		default:
			return broken
		}
	case wantColon:
		if c != ':' {
			return broken
		}
		g.state = wantValue
	case wantSeparator:
		switch c {
		case ',':
			g.state = wantKey
			if g.stack[len(g.stack)-1] == '[' {
				g.state = wantValue
			}
		case '}', ']':
			return g.close(c)
		default:
			return broken
		}
	default: // a value is due
		switch {
		case c == '{' || c == '[':
			if len(g.stack) >= g.depth {
				return tooDeep
			}
			g.stack = append(g.stack, c)
			g.state = wantKeyOrEnd
			if c == '[' {
				g.state = wantValueOrEnd
			}
		case c == '"':
			g.state = inString
		case c == ']' && g.state == wantValueOrEnd:
			return g.close(c)
		case wordByte(c):
			g.state = inWord
		default:
			return broken
		}
	}
	return needMore
}

func (g *grammar) close(c byte) verdict {
	// '[' and ']', '{' and '}' are two apart in ASCII.
	if len(g.stack) == 0 || g.stack[len(g.stack)-1] != c-2 {
		return broken
	}
	g.stack = g.stack[:len(g.stack)-1]
	g.state = wantSeparator
	if len(g.stack) == 0 {
		return complete
	}
	return needMore
}

// wordByte tells whether c may be part of a number or of a bare word; nan and
// inf are arguments that operators get.
func wordByte(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '-' || c == '+' || c == '.' || c == '_' || c == '#'
}

// answer is that of a look ahead.
type answer uint8

const (
	no answer = iota
	yes
	maybe // the bytes end too early to say
)

// lookAhead is how far nodeStart looks.
const lookAhead = 4 << 10

// nodeStart tells whether b, which begins with a brace, begins a node: with
// the key "id" (since schema 1.0.2), or with "name" followed by "id" (before).
// Attributes begin with "name" too, but "type" follows.
func nodeStart(b []byte, atEnd bool) answer {
	if len(b) > lookAhead {
		b, atEnd = b[:lookAhead], true
	}
	short := maybe
	if atEnd {
		short = no
	}
	i := skipSpace(b, 1)
	if hasKey(b[i:], "id") {
		return yes
	}
	if !hasKey(b[i:], "name") {
		if len(b)-i < len(`"name" :`)+8 {
			return short
		}
		return no
	}
	i = skipSpace(b, skipSpace(b, i+len(`"name"`))+1)
	if i >= len(b) {
		return short
	}
	if b[i] != '"' {
		return no
	}
	for i++; i < len(b) && b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	i = skipSpace(b, i+1)
	if i >= len(b) {
		return short
	}
	if b[i] != ',' {
		return no
	}
	i = skipSpace(b, i+1)
	switch {
	case hasKey(b[i:], "id"):
		return yes
	case len(b)-i < len(`"id" :`)+8:
		return short
	}
	return no
}

// hasKey tells whether b begins with the key and its colon.
func hasKey(b []byte, key string) bool {
	if len(b) < len(key)+2 || b[0] != '"' || string(b[1:1+len(key)]) != key || b[1+len(key)] != '"' {
		return false
	}
	i := skipSpace(b, len(key)+2)
	return i < len(b) && b[i] == ':'
}

// skipSpace returns the index of the first byte from i on that is no white
// space, len(b) at most.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return min(i, len(b))
}
