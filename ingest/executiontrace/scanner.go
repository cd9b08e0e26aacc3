package executiontrace

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"mixdown/ingest/chrome"
	"mixdown/ingest/diagnostic"
)

// scanner finds the nodes in a stream. It holds one node at a time.
type scanner struct {
	src   io.Reader
	buf   []byte
	pos   int // of the next byte in buf
	end   int
	base  int64 // stream offset of buf[0]
	err   error // what ended src
	limit limits
	g     grammar

	schema string
	rank   int
	lost   int64
	diags  *diagnostic.Set
	before separator // what stands before pos in the array of nodes
	closed bool      // the array of nodes ended as it should
	inNode bool      // the file ended inside a node
}

// separator is what was read last in the array of nodes.
type separator uint8

const (
	sepComma separator = iota // or the bracket
	sepNode
	sepLost // bytes that were skipped
)

const readSize = 64 << 10

func newScanner(src io.Reader, limit limits, rank int, diags *diagnostic.Set) *scanner {
	return &scanner{src: src, buf: make([]byte, readSize), limit: limit, rank: rank, diags: diags}
}

func (s *scanner) offset() int64 { return s.base + int64(s.pos) }
func (s *scanner) rest() []byte  { return s.buf[s.pos:s.end] }
func (s *scanner) atEnd() bool   { return s.err != nil }

// more reads on and reports whether rest became longer.
func (s *scanner) more() bool {
	if s.err != nil {
		return false
	}
	if s.pos > 0 {
		copy(s.buf, s.buf[s.pos:s.end])
		s.base += int64(s.pos)
		s.end -= s.pos
		s.pos = 0
	}
	if s.end == len(s.buf) {
		// Callers bound what they keep, so this ends at about limit.node.
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	for range 100 {
		n, err := s.src.Read(s.buf[s.end:])
		if n < 0 || n > len(s.buf)-s.end {
			n, err = 0, errors.New("reader returned an impossible count")
		}
		s.end += n
		s.err = err
		if n > 0 || err != nil {
			return n > 0
		}
	}
	s.err = io.ErrNoProgress
	return false
}

// peek skips white space and returns the next byte.
func (s *scanner) peek() (byte, bool) {
	for {
		s.pos += skipSpace(s.rest(), 0)
		if s.pos < s.end {
			return s.buf[s.pos], true
		}
		if !s.more() {
			return 0, false
		}
	}
}

// header reads the top level up to the first node.
func (s *scanner) header() error {
	for s.end-s.pos < 3 && s.more() {
	}
	if bytes.HasPrefix(s.rest(), []byte("\xef\xbb\xbf")) {
		s.pos += 3
	}
	c, ok := s.peek()
	switch {
	case !ok && s.failed() != nil:
		return s.failed()
	case !ok:
		return fmt.Errorf("%w: empty file", ErrNotExecutionTrace)
	case c != '{':
		return fmt.Errorf("%w: it does not begin with an object", ErrNotExecutionTrace)
	}
	s.pos++
	for {
		key, err := s.member()
		switch {
		case err != nil:
			return err
		case key == "nodes" && s.schema == "":
			return fmt.Errorf("%w: a graph without schema", ErrNotExecutionTrace)
		case key == "nodes":
			return nil
		case key == "traceEvents":
			return fmt.Errorf("%w: it is a profiler trace", ErrNotExecutionTrace)
		}
	}
}

// member reads one member of the top-level object and returns its key; of
// "nodes" only the bracket.
func (s *scanner) member() (string, error) {
	c, ok := s.peek()
	for ok && c == ',' {
		s.pos++
		c, ok = s.peek()
	}
	if !ok || c != '"' {
		return "", s.noNodes()
	}
	raw, v := s.value(1 << 10)
	key, isKey := chrome.ParseValue(raw).Str()
	if v != complete || !isKey {
		return "", s.noNodes()
	}
	if c, ok := s.peek(); !ok || c != ':' {
		return "", s.noNodes()
	}
	s.pos++
	c, ok = s.peek()
	switch {
	case !ok:
		return "", s.noNodes()
	case key == "nodes" && c != '[':
		return "", s.noNodes()
	case key == "nodes":
		s.pos++
		return key, nil
	case key == "traceEvents":
		return key, nil
	}
	raw, v = s.value(1 << 10)
	if v != complete {
		return "", s.noNodes()
	}
	if key == "schema" {
		s.schema, _ = chrome.ParseValue(raw).Str()
	}
	return key, nil
}

func (s *scanner) noNodes() error {
	if err := s.failed(); err != nil {
		return err
	}
	if s.schema == "" {
		return fmt.Errorf("%w: it has no schema and no nodes", ErrNotExecutionTrace)
	}
	return fmt.Errorf("%w: schema %q, but no nodes", ErrNotExecutionTrace, s.schema)
}

// value passes over one value at the current place. It returns the bytes when
// they are not more than keep.
func (s *scanner) value(keep int) ([]byte, verdict) {
	s.g.begin(s.limit.depth, false)
	var kept []byte
	for {
		n, v := s.g.feed(s.rest(), 0, s.atEnd())
		if len(kept)+n <= keep {
			kept = append(kept, s.rest()[:n]...)
		} else {
			kept, keep = nil, -1
		}
		s.pos += n
		if v != needMore {
			return kept, v
		}
		if !s.more() {
			if _, v := s.g.feed(nil, 0, true); v == complete { // a word at the very end
				return kept, v
			}
			return nil, broken
		}
	}
}

// next returns the next complete node and its offset; nil at the end. The
// bytes are valid until the following call.
func (s *scanner) next() ([]byte, int64) {
	for {
		c, ok := s.peek()
		if !ok {
			return nil, 0
		}
		switch c {
		case ',':
			s.pos++
			if s.before == sepNode {
				s.before = sepComma
			}
		case ']':
			if s.arrayEnds() {
				s.closed = true
				return nil, 0
			}
			s.skipStray()
		case '{':
			if s.before == sepNode {
				s.diags.Addf("execution-trace-missing-comma", s.rank, s.offset(), "no comma between two nodes")
			}
			if node, at, ok := s.node(); ok {
				s.before = sepNode
				return node, at
			}
			s.before = sepLost
			s.resync()
		default:
			s.skipStray()
		}
	}
}

// skipStray passes over bytes between nodes that belong to none. Behind a node
// that was lost they are the rest of it.
func (s *scanner) skipStray() {
	if s.before != sepLost {
		s.lose(s.offset(), "bytes that belong to no node")
	}
	s.before = sepLost
	s.resync()
}

// lose counts a node that cannot be read.
func (s *scanner) lose(at int64, why string) {
	s.lost++
	s.diags.Addf("execution-trace-node-lost", s.rank, at, "a node cannot be read: %s", why)
}

// node delimits the node at the current place. Where there is none that can be
// read, it counts that and moves behind its beginning.
func (s *scanner) node() ([]byte, int64, bool) {
	at := s.offset()
	s.g.begin(s.limit.depth, true)
	n := 0
	for {
		var v verdict
		n, v = s.g.feed(s.rest(), n, s.atEnd())
		switch {
		case v == complete:
			node := s.rest()[:n]
			s.pos += n
			return node, at, true
		case v == nodeCut:
			s.lose(at, "it is cut off by the next one")
			s.pos += n
			return nil, 0, false
		case v == broken:
			s.lose(at, "its structure is broken")
			s.pos++
			return nil, 0, false
		case v == tooDeep:
			s.lose(at, fmt.Sprintf("nested deeper than %d", s.limit.depth))
			s.pos++
			return nil, 0, false
		case n > s.limit.node:
			s.lose(at, fmt.Sprintf("larger than %d bytes", s.limit.node))
			s.pos += n
			return nil, 0, false
		case !s.more() && n >= s.end-s.pos:
			s.lose(at, "the file ends in it")
			s.pos, s.inNode = s.end, true
			return nil, 0, false
		}
	}
}

// resync moves to the next place that looks like the beginning of a node.
func (s *scanner) resync() {
	for {
		i := bytes.IndexByte(s.rest(), '{')
		if i < 0 {
			s.pos = s.end
			if !s.more() {
				return
			}
			continue
		}
		s.pos += i
		switch nodeStart(s.rest(), s.atEnd()) {
		case yes:
			return
		case maybe:
			s.more() // without more bytes the answer is no the next time
		default:
			s.pos++
		}
	}
}

// arrayEnds tells whether the bracket at the current place ends the nodes.
// Brackets that a broken node left over are followed by something else.
func (s *scanner) arrayEnds() bool {
	for s.end-s.pos < 64 && s.more() {
	}
	b := s.rest()
	i := skipSpace(b, 1)
	switch {
	case i >= len(b):
		return true
	case b[i] == ',':
		i = skipSpace(b, i+1)
		return i == len(b) || b[i] == '"'
	case b[i] == '}':
		return skipSpace(b, i+1) == len(b)
	}
	return false
}

// failed is what ended the stream, nil for its proper end and for one that
// came too early.
func (s *scanner) failed() error {
	if s.err == nil || errors.Is(s.err, io.EOF) || errors.Is(s.err, io.ErrUnexpectedEOF) {
		return nil
	}
	return fmt.Errorf("cannot read execution trace: %w", s.err)
}

// truncated tells whether the file ends before its nodes do. Behind a node that
// was lost, the end of the array may have been lost with it.
func (s *scanner) truncated() bool {
	return !s.closed && (s.inNode || s.before != sepLost || errors.Is(s.err, io.ErrUnexpectedEOF))
}
