package chrome

import (
	"sort"
	"strconv"
	"unicode/utf8"
)

// Diagnostic is one kind of fault found in a file.
type Diagnostic struct {
	Code    string // one of the Code constants
	Count   int64  // how often
	Offset  int64  // of the first one, in bytes of the decompressed stream
	Example string // of the first one: short, printable ASCII
}

// Codes of diagnostics. The comment says what the Reader did.
const (
	CodeTruncated         = "truncated-file"        // the file ends, or cannot be read further, before it is complete; what came before was delivered
	CodeMissingArrayEnd   = "missing-array-end"     // a bare array without its "]": legal by the format, nothing known to be lost
	CodeBrokenEvent       = "broken-event"          // event skipped
	CodeNotAnEvent        = "not-an-event"          // array element without "ph" and "ts" skipped
	CodeEventTooLarge     = "event-too-large"       // event above MaxEventBytes skipped
	CodeTooDeep           = "too-deep"              // value nested deeper than MaxDepth; its event or metadata was skipped
	CodeEventLimit        = "event-limit"           // MaxEvents reached, the rest was not read
	CodeNoEvents          = "no-events"             // the event array is empty
	CodeUnexpectedBytes   = "unexpected-bytes"      // bytes between events skipped
	CodeTrailingData      = "trailing-data"         // bytes after the end of the trace skipped
	CodeBrokenMetadata    = "broken-metadata"       // top-level value skipped
	CodeMetadataTooLarge  = "metadata-too-large"    // top-level value read but not kept
	CodeDuplicateMetadata = "duplicate-metadata"    // top-level key met again, values merged
	CodeConflictMetadata  = "conflicting-metadata"  // top-level key met again with another value, the fuller or first one preferred
	CodeDuplicateArray    = "duplicate-traceEvents" // second event array appended to the first
	CodeConcatenated      = "concatenated-values"   // further top-level value after the first, read as well
	CodeDuplicateKey      = "duplicate-event-key"   // key twice in one event, last one taken
	CodeControlByte       = "control-byte"          // string with raw bytes below 0x20, kept as they are
	CodeIllegalEscape     = "illegal-escape"        // string with a backslash that starts no escape; taken literally
	CodeInvalidUTF8       = "invalid-utf8"          // string with invalid UTF-8, or half a surrogate pair, replaced by U+FFFD
	CodeUnescapedQuote    = "unescaped-quote"       // quote inside a string taken literally
	CodeMissingComma      = "missing-comma"         // comma between two values supplied
	CodeTrailingComma     = "trailing-comma"        // comma before a closing bracket ignored
	CodeMissingValue      = "missing-value"         // key without value taken as null
	CodeNotANumber        = "not-a-number"          // bare nan or inf taken as missing
	CodeBadLiteral        = "bad-literal"           // bare word or malformed number taken as missing
	CodeNumericString     = "numeric-string"        // ts or dur written as string, accepted
	CodeSubNanosecond     = "sub-nanosecond-time"   // ts or dur rounded to ns, half away from zero
	CodeTimeOverflow      = "time-overflow"         // ts or dur beyond int64 ns taken as missing
	CodeBadTime           = "bad-time"              // ts or dur that is no number taken as missing
	CodeMissingTS         = "missing-ts"            // timed event without ts, delivered with HasTS false
	CodeMissingDur        = "missing-dur"           // X event without dur, delivered with HasDur false
	CodeMissingPhase      = "missing-phase"         // event without ph, delivered with Phase 0
	CodeMissingPID        = "missing-pid"           // timed event without pid, delivered; take it as process 0
	CodeNegativeDuration  = "negative-duration"     // unfinished event: Dur negative, HasDur false, to be taken as open
	CodeZeroTime          = "zero-time"             // X event with ts 0 and dur 0: often a device event that could not be timed
	CodeUnmatchedBegin    = "unmatched-begin"       // Pairer: B event without E, delivered as B
	CodeUnmatchedEnd      = "unmatched-end"         // Pairer: E event without B, delivered as E
	CodeCrossedPair       = "crossed-pair"          // Pairer: E closes a B that is not the innermost; joined by name
)

// codeID is the dense form of a code inside the scanner.
type codeID uint8

const (
	cTruncated codeID = iota
	cMissingArrayEnd
	cBrokenEvent
	cNotAnEvent
	cEventTooLarge
	cTooDeep
	cEventLimit
	cNoEvents
	cUnexpectedBytes
	cTrailingData
	cBrokenMetadata
	cMetadataTooLarge
	cDuplicateMetadata
	cConflictMetadata
	cDuplicateArray
	cConcatenated
	cDuplicateKey
	cControlByte
	cIllegalEscape
	cInvalidUTF8
	cUnescapedQuote
	cMissingComma
	cTrailingComma
	cMissingValue
	cNotANumber
	cBadLiteral
	cNumericString
	cSubNanosecond
	cTimeOverflow
	cBadTime
	cMissingTS
	cMissingDur
	cMissingPhase
	cMissingPID
	cNegativeDuration
	cZeroTime
	cUnmatchedBegin
	cUnmatchedEnd
	cCrossedPair
	numCodes
)

var codeNames = [numCodes]string{
	CodeTruncated, CodeMissingArrayEnd, CodeBrokenEvent, CodeNotAnEvent, CodeEventTooLarge, CodeTooDeep,
	CodeEventLimit, CodeNoEvents, CodeUnexpectedBytes, CodeTrailingData, CodeBrokenMetadata,
	CodeMetadataTooLarge, CodeDuplicateMetadata, CodeConflictMetadata, CodeDuplicateArray, CodeConcatenated,
	CodeDuplicateKey, CodeControlByte, CodeIllegalEscape, CodeInvalidUTF8, CodeUnescapedQuote,
	CodeMissingComma, CodeTrailingComma, CodeMissingValue, CodeNotANumber, CodeBadLiteral,
	CodeNumericString, CodeSubNanosecond, CodeTimeOverflow, CodeBadTime, CodeMissingTS, CodeMissingDur,
	CodeMissingPhase, CodeMissingPID, CodeNegativeDuration, CodeZeroTime,
	CodeUnmatchedBegin, CodeUnmatchedEnd, CodeCrossedPair,
}

// faults collects the faults of one event. They become diagnostics only when
// the event is accepted: an event at the edge of the window is scanned twice,
// and a broken one counts as broken and nothing else.
type faults struct {
	any bool
	n   [numCodes]int64
	at  [numCodes]int // index of the first one in the scanned bytes
}

func (f *faults) add(c codeID, at int) {
	f.any = true
	if f.n[c] == 0 {
		f.at[c] = at
	}
	f.n[c]++
}

func (f *faults) reset() {
	if f.any {
		*f = faults{}
	}
}

// commit turns the faults found in b, which begins at stream offset from, into
// diagnostics.
func (f *faults) commit(d *diagnostics, b []byte, from int64) {
	if !f.any {
		return
	}
	for c, n := range f.n {
		if n > 0 {
			d.add(codeID(c), n, from+int64(f.at[c]), excerpt(b, f.at[c]))
		}
	}
}

// diagnostics is the running count by code.
type diagnostics [numCodes]Diagnostic

func (d *diagnostics) add(c codeID, n, offset int64, example []byte) {
	if d[c].Count == 0 {
		d[c] = Diagnostic{Code: codeNames[c], Offset: offset, Example: printable(example)}
	}
	d[c].Count += n
}

// merge counts what was found further on.
func (d *diagnostics) merge(later *diagnostics) {
	for c := range later {
		if n := later[c].Count; n > 0 {
			if d[c].Count == 0 {
				d[c] = later[c]
				continue
			}
			d[c].Count += n
		}
	}
}

// list returns the diagnostics in order of first offset, then code.
func (d *diagnostics) list() []Diagnostic {
	var out []Diagnostic
	for _, x := range d {
		if x.Count > 0 {
			out = append(out, x)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Offset < out[j].Offset })
	return out
}

// exampleBytes is the length of the excerpt shown for a fault.
const exampleBytes = 80

// excerpt returns the bytes around index at, for a message.
func excerpt(b []byte, at int) []byte {
	lo := max(0, min(at, len(b))-exampleBytes/3)
	hi := min(len(b), lo+exampleBytes)
	return b[lo:hi]
}

// printable escapes b so that it is safe to show anywhere: what is not
// printable ASCII becomes a Go escape, and the length is limited.
func printable(b []byte) string {
	if len(b) > 2*exampleBytes {
		b = b[:2*exampleBytes]
	}
	out := make([]byte, 0, len(b)+8)
	for len(b) > 0 {
		c := b[0]
		if c >= ' ' && c < 0x7f && c != '\\' {
			out = append(out, c)
			b = b[1:]
			continue
		}
		if r, n := utf8.DecodeRune(b); r != utf8.RuneError {
			q := strconv.AppendQuoteRuneToASCII(nil, r)
			out = append(out, q[1:len(q)-1]...)
			b = b[n:]
			continue
		}
		const hex = "0123456789abcdef"
		out = append(out, '\\', 'x', hex[c>>4], hex[c&15])
		b = b[1:]
	}
	return string(out)
}
