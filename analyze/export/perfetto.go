package export

import (
	"context"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"mixdown/analyze/track"
)

// WritePerfetto writes the run's time line as a Perfetto trace.
//
// Every rank is a process, its streams and threads are tracks below it: device
// work (the CPU's where there is none), communication with what is known of it
// as debug annotations, steps, and a counter of exposed communication in per
// cent. Matched collectives, and sends with their receives, are joined by flows.
//
// Times are those of the aligned clocks. Perfetto has no negative times: when
// there are any, all are moved, which the instant "mixdown" that every rank
// begins with says, beside the corrections of its clock.
func WritePerfetto(ctx context.Context, w io.Writer, in *Input) error {
	x := newExporter(in)
	flows := track.NewFlows(in.Match)
	p := &perfettoWriter{w: w}
	if first := earliest(in); first < 0 {
		p.shift = -first
	}
	for r := range in.Run.Ranks {
		if err := ctx.Err(); err != nil {
			return err
		}
		p.rank(x, r, flows)
		if p.err != nil {
			return fmt.Errorf("perfetto: %w", p.err)
		}
	}
	return nil
}

// earliest is the first time of anything in the run, ns, or 0.
func earliest(in *Input) int64 {
	first := int64(math.MaxInt64)
	for _, rank := range in.Run.Ranks {
		for _, t := range rank.Events.TS {
			first = min(first, t)
		}
		for i := range rank.Operations {
			first = min(first, rank.Operations[i].Start)
		}
		for _, s := range rank.Steps {
			first = min(first, s.Start)
		}
	}
	if first == math.MaxInt64 {
		return 0
	}
	return first
}

// perfettoWriter writes packets of one sequence. Interned texts are forgotten
// between ranks, so that what it holds is bounded by one rank.
type perfettoWriter struct {
	w     io.Writer
	err   error
	shift int64 // ns, added to all times
	flags uint64

	tracks   uint64 // uuids given
	interned [4]map[string]uint64
	fresh    []byte // interned data for the next packet

	packet, event, inner []byte
}

// The kinds of interned texts.
const (
	ofCategory = iota
	ofName
	ofNoteName
	ofNoteText
)

var internedField = [4]protowire.Number{internedCategories, internedNames, internedNoteNames, internedNoteTexts}

func (p *perfettoWriter) rank(x *exporter, r int, flows *track.Flows) {
	t := x.timeline(r, flows)
	p.flags = stateCleared
	for i := range p.interned {
		p.interned[i] = map[string]uint64{}
	}
	process := p.describe(func(b []byte) []byte {
		b = appendVarint(b, trackOrdering, orderingExplicit)
		// Process 0 is the idle process of the kernel to trace_processor.
		inner := appendVarint(nil, processPID, uint64(t.rank.Rank)+1)
		inner = appendText(inner, processName, fmt.Sprintf("rank %d", t.rank.Rank))
		return appendBytes(b, trackProcess, inner)
	})
	begin := t.begin()
	p.begin(process, begin, typeInstant, "mixdown", "metadata", nil, append(x.clockNotes(r), numberNote("times_moved_ns", p.shift)))
	for i := range t.tracks {
		tr := &t.tracks[i]
		track := p.describe(func(b []byte) []byte {
			b = appendVarint(b, trackOrderRank, uint64(i))
			return appendText(appendVarint(b, trackParent, process), trackName, printable(tr.name))
		})
		p.track(t, tr, track)
	}
	counter := p.describe(func(b []byte) []byte {
		b = appendText(appendVarint(b, trackParent, process), trackName, "exposed communication")
		return appendBytes(b, trackCounter, appendText(nil, counterUnitName, "%"))
	})
	for _, s := range t.exposed {
		p.counter(counter, s)
	}
}

// begin is the first time of a rank, ns.
func (t *timeline) begin() int64 {
	first := int64(math.MaxInt64)
	for i := range t.tracks {
		first = min(first, t.tracks[i].slices[0].start)
	}
	if first == math.MaxInt64 {
		return 0
	}
	return first
}

// track writes slices that nest, begins and ends by time.
func (p *perfettoWriter) track(t *timeline, tr *row, track uint64) {
	var open []int64
	for i := range tr.slices {
		s := &tr.slices[i]
		for n := len(open); n > 0 && open[n-1] <= s.start; n-- {
			p.end(track, open[n-1])
			open = open[:n-1]
		}
		var notes []note
		if s.operation >= 0 {
			notes = t.operations[s.operation].notes()
		}
		p.begin(track, s.start, typeBegin, s.name, s.category, s.flows, notes)
		open = append(open, s.end)
	}
	for n := len(open); n > 0; n-- {
		p.end(track, open[n-1])
	}
}

// describe writes a track's descriptor and returns its uuid.
func (p *perfettoWriter) describe(fill func([]byte) []byte) uint64 {
	p.tracks++
	p.event = fill(appendVarint(p.event[:0], trackUUID, p.tracks))
	p.packet = appendBytes(p.packet[:0], packetTrackDescriptor, p.event)
	p.write()
	return p.tracks
}

// begin writes the begin of a slice, or an instant.
func (p *perfettoWriter) begin(track uint64, ts int64, kind uint64, name, category string, flows []uint64, notes []note) {
	b := appendVarint(p.event[:0], eventType, kind)
	b = appendVarint(b, eventTrack, track)
	b = appendVarint(b, eventCategories, p.intern(ofCategory, category))
	b = appendVarint(b, eventName, p.intern(ofName, name))
	for _, f := range flows {
		b = protowire.AppendTag(b, eventFlows, protowire.Fixed64Type)
		b = protowire.AppendFixed64(b, f)
	}
	for _, n := range notes {
		p.inner = appendVarint(p.inner[:0], annotationName, p.intern(ofNoteName, n.name))
		if n.isText {
			p.inner = appendVarint(p.inner, annotationTextIID, p.intern(ofNoteText, n.text))
		} else {
			p.inner = appendVarint(p.inner, annotationInt, uint64(n.number))
		}
		b = appendBytes(b, eventAnnotations, p.inner)
	}
	p.event = b
	p.trackEvent(ts)
}

func (p *perfettoWriter) end(track uint64, ts int64) {
	p.event = appendVarint(appendVarint(p.event[:0], eventType, typeEnd), eventTrack, track)
	p.trackEvent(ts)
}

func (p *perfettoWriter) counter(track uint64, s share) {
	b := appendVarint(appendVarint(p.event[:0], eventType, typeCounter), eventTrack, track)
	b = protowire.AppendTag(b, eventDoubleValue, protowire.Fixed64Type)
	p.event = protowire.AppendFixed64(b, math.Float64bits(s.percent))
	p.trackEvent(s.ts)
}

// trackEvent writes p.event with the texts that it is the first to use.
func (p *perfettoWriter) trackEvent(ts int64) {
	b := appendVarint(p.packet[:0], packetTimestamp, uint64(ts)+uint64(p.shift))
	if len(p.fresh) > 0 {
		b = appendBytes(b, packetInternedData, p.fresh)
		p.fresh = p.fresh[:0]
	}
	p.packet = appendBytes(b, packetTrackEvent, p.event)
	p.write()
}

// sequence is the number of the only sequence of packets.
const sequence = 1

// write writes p.packet with what all packets have.
func (p *perfettoWriter) write() {
	if p.err != nil {
		return
	}
	b := appendVarint(p.packet, packetSequenceID, sequence)
	b = appendVarint(b, packetSequenceFlags, p.flags|needsState)
	p.flags = 0
	p.packet = b
	head := protowire.AppendTag(p.event[:0], tracePacket, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(len(b)))
	p.event = head
	if _, p.err = p.w.Write(head); p.err == nil {
		_, p.err = p.w.Write(b)
	}
}

// intern gives a text of a trace its number, and adds it, as it may be shown, to
// the next packet when it is new.
func (p *perfettoWriter) intern(kind int, text string) uint64 {
	if id, ok := p.interned[kind][text]; ok {
		return id
	}
	id := uint64(len(p.interned[kind]) + 1)
	p.interned[kind][text] = id
	entry := appendText(appendVarint(nil, internedIID, id), internedText, printable(text))
	p.fresh = appendBytes(p.fresh, internedField[kind], entry)
	return id
}

func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendText(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), valid(s))
}
