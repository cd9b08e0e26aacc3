// Package diagnostic collects faults that do not stop an analysis: what was
// repaired, skipped or could not be known. Each is counted, with the place and
// text of its first occurrence, so that nothing is dropped in silence and a
// million broken events still make one line.
package diagnostic

import (
	"fmt"
	"slices"
	"strings"
)

// Diagnostic is one kind of fault on one rank.
type Diagnostic struct {
	Code    string // for example "truncated-file"
	Rank    int    // NoRank when it concerns no single rank
	Count   int64
	Offset  int64 // of the first occurrence in the decompressed file, NoOffset when it has none
	Example string
}

// NoRank and NoOffset mark what does not apply.
const (
	NoRank   = -1
	NoOffset = -1
)

// String is the line shown to a user.
func (d Diagnostic) String() string {
	var b strings.Builder
	b.WriteString(d.Code)
	if d.Count != 1 {
		fmt.Fprintf(&b, " (%d times)", d.Count)
	}
	if d.Rank != NoRank {
		fmt.Fprintf(&b, ", rank %d", d.Rank)
	}
	if d.Offset != NoOffset {
		fmt.Fprintf(&b, ", byte %d", d.Offset)
	}
	if d.Example != "" {
		b.WriteString(": ")
		b.WriteString(d.Example)
	}
	return b.String()
}

type key struct {
	code string
	rank int
}

// Set counts diagnostics by code and rank. The zero value is empty and ready.
type Set struct {
	byKey map[key]*Diagnostic
}

// Add counts d; the first of its code and rank gives offset and example.
func (s *Set) Add(d Diagnostic) {
	if d.Count == 0 {
		d.Count = 1
	}
	if s.byKey == nil {
		s.byKey = map[key]*Diagnostic{}
	}
	k := key{d.Code, d.Rank}
	if have := s.byKey[k]; have != nil {
		have.Count += d.Count
		return
	}
	s.byKey[k] = &d
}

// Addf counts one fault of a rank at a byte offset.
func (s *Set) Addf(code string, rank int, offset int64, format string, args ...any) {
	if have := s.byKey[key{code, rank}]; have != nil {
		have.Count++
		return
	}
	s.Add(Diagnostic{Code: code, Rank: rank, Offset: offset, Example: fmt.Sprintf(format, args...)})
}

// Merge counts everything in other.
func (s *Set) Merge(other *Set) {
	for _, d := range other.List() {
		s.Add(d)
	}
}

// List returns the diagnostics by code, then rank.
func (s *Set) List() []Diagnostic {
	list := make([]Diagnostic, 0, len(s.byKey))
	for _, d := range s.byKey {
		list = append(list, *d)
	}
	slices.SortFunc(list, func(a, b Diagnostic) int {
		if c := strings.Compare(a.Code, b.Code); c != 0 {
			return c
		}
		return a.Rank - b.Rank
	})
	return list
}
