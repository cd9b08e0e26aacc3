package perfetto

import (
	"bytes"
	"math"
	"unicode/utf8"

	"mixdown/ingest/trace"
)

// sequence is the state of one writer.
type sequence struct {
	id uint32

	// By interned id, until the writer clears them.
	names, categories, annotationNames, annotationStrings map[uint64]trace.NameID
	gpuSpecs, kernels, argNames                           map[uint64]trace.NameID

	clock    uint32 // default, 0 when not set
	track    uint64 // default
	hasTrack bool

	// Legacy writers name their thread once and count microseconds from the
	// event before.
	pid, tid    int64
	hasThread   bool
	micros      int64
	microsKnown bool
}

// maxSequences bounds what a hostile file can make of the table.
const maxSequences = 1 << 20

func (r *Reader) sequence(id uint32) *sequence {
	s := r.sequences[id]
	if s == nil {
		if len(r.sequences) >= maxSequences {
			r.stop(r.in.at, "more than %d sequences", maxSequences)
			return nil
		}
		s = &sequence{id: id}
		r.sequences[id] = s
	}
	return s
}

// stop ends reading at a limit.
func (r *Reader) stop(at int64, format string, args ...any) {
	if !r.full {
		r.full = true
		r.note(CodeEventLimit, at, format, args...)
	}
}

// hold counts memory that stays.
func (r *Reader) hold(n int, at int64) {
	r.heldBytes += int64(n)
	if r.heldBytes > r.opts.MaxHeldBytes {
		r.stop(at, "more than %d bytes of names and arguments", r.opts.MaxHeldBytes)
	}
}

// text interns a text, made valid.
func (r *Reader) text(b []byte, at int64) trace.NameID {
	if !utf8.Valid(b) {
		r.note(CodeInvalidUTF8, at, "%+.40q", b)
		b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	before := r.names.Len()
	id := r.names.Intern(b)
	if r.names.Len() > before {
		r.hold(len(b)+64, at)
	}
	return id
}

// clear forgets what the writer no longer relies on.
func (s *sequence) clear() { *s = sequence{id: s.id} }

// intern adds the entries of an InternedData.
func (r *Reader) intern(s *sequence, b []byte, at int64) bool {
	return fields(b, func(x field) bool {
		var table *map[uint64]trace.NameID
		switch x.num {
		case internedCategories:
			table = &s.categories
		case internedNames:
			table = &s.names
		case internedAnnotationNames:
			table = &s.annotationNames
		case internedAnnotationStrings:
			table = &s.annotationStrings
		case internedGPUSpecifications:
			table = &s.gpuSpecs
		case internedComputeKernels:
			table = &s.kernels
		case internedComputeArgNames:
			table = &s.argNames
		default:
			return true
		}
		var iid uint64
		var text, demangled []byte
		if !x.isBytes() || !fields(x.data, func(y field) bool {
			switch y.num {
			case internedIID:
				iid = y.n
			case internedText:
				text = y.data
			case internedDemangled:
				demangled = y.data
			}
			return true
		}) {
			return false
		}
		if x.num == internedComputeKernels && demangled != nil {
			text = demangled
		}
		if *table == nil {
			*table = map[uint64]trace.NameID{}
		}
		if _, have := (*table)[iid]; !have {
			r.hold(48, at)
		}
		(*table)[iid] = r.text(text, at)
		return true
	})
}

// lookup finds an interned text.
func (r *Reader) lookup(table map[uint64]trace.NameID, iid uint64, at int64) trace.NameID {
	id, ok := table[iid]
	if !ok {
		r.note(CodeMissingInterned, at, "interned id %d", iid)
	}
	return id
}

func (s *sequence) setDefaults(b []byte) bool {
	return fields(b, func(x field) bool {
		switch x.num {
		case defaultsClockID:
			s.clock = uint32(x.n)
		case defaultsTrackEvent:
			return x.isBytes() && fields(x.data, func(y field) bool {
				if y.num == defaultsTrackUUID {
					s.track, s.hasTrack = y.n, true
				}
				return true
			})
		}
		return true
	})
}

func (s *sequence) setProcess(b []byte) bool {
	return fields(b, func(x field) bool {
		if x.num == processPID {
			s.pid = int64(int32(x.n))
		}
		return true
	})
}

func (s *sequence) setThread(b []byte) bool {
	return fields(b, func(x field) bool {
		switch x.num {
		case threadPID:
			s.pid, s.hasThread = int64(int32(x.n)), true
		case threadTID:
			s.tid, s.hasThread = int64(x.n), true
		case threadReferenceMicros:
			s.micros, s.microsKnown = int64(x.n), true
		}
		return true
	})
}

// microsToNS moves the time of the sequence on by delta microseconds and
// returns it in ns.
func (s *sequence) microsToNS(delta int64) (int64, bool) {
	if !s.microsKnown || delta > 0 && s.micros > math.MaxInt64-delta || delta < 0 && s.micros < math.MinInt64-delta {
		s.microsKnown = false
		return 0, false
	}
	s.micros += delta
	return scaleNS(s.micros, 1000)
}

// scaleNS multiplies, false when the product does not fit.
func scaleNS(n, by int64) (int64, bool) {
	p := n * by
	return p, by == 0 || p/by == n && !(n == math.MinInt64 && by == -1)
}
