package perfetto

import (
	"bytes"
	"io"
	"slices"

	"github.com/klauspost/compress/zlib"
	"google.golang.org/protobuf/encoding/protowire"
)

// packet is what is needed of a TracePacket before its payload can be read.
type packet struct {
	at, end int64 // offsets in the stream
	seq     *sequence
	flags   uint64

	hasTime bool
	time    uint64
	clock   uint32 // 0: the default of the sequence

	event, track, snapshot, thread, process, compressed, stage []byte
	interned, defaults                                         [][]byte
	cleared, dropped                                           bool
	other                                                      protowire.Number // a payload that is not read
}

// packet reads one packet. Packets inside of a compressed one have its offsets.
func (r *Reader) packet(b []byte, at, end int64, depth int) {
	p := packet{at: at, end: end}
	var seq uint64
	recognised := 0
	whole := fields(b, func(x field) bool {
		ok := true
		recognised++
		switch x.num {
		case packetTimestamp:
			p.time, p.hasTime = x.n, true
		case packetClockID:
			p.clock = uint32(x.n)
		case packetSequenceID:
			seq = x.n
		case packetSequenceFlags:
			p.flags = x.n
		case packetStateCleared:
			p.cleared = x.n != 0
		case packetPreviousDropped:
			p.dropped = x.n != 0
		case packetDefaults:
			p.defaults, ok = append(p.defaults, x.data), x.isBytes()
		case packetInternedData:
			p.interned, ok = append(p.interned, x.data), x.isBytes()
		case packetTrackEvent:
			p.event, ok = x.data, x.isBytes()
		case packetTrackDescriptor:
			p.track, ok = x.data, x.isBytes()
		case packetClockSnapshot:
			p.snapshot, ok = x.data, x.isBytes()
		case packetThread:
			p.thread, ok = x.data, x.isBytes()
		case packetProcess:
			p.process, ok = x.data, x.isBytes()
		case packetCompressed:
			p.compressed, ok = x.data, x.isBytes()
		case packetRenderStage:
			p.stage, ok = x.data, x.isBytes()
		default:
			if _, known := unread[x.num]; known && x.isBytes() {
				p.other = x.num
				break
			}
			if x.num > maxPacketField {
				recognised--
			}
		}
		return ok
	})
	if !whole || recognised == 0 && len(b) > 0 {
		r.note(CodeBrokenPacket, at, "packet of %d bytes", len(b))
		return
	}
	p.seq = r.sequence(uint32(seq))
	if p.seq == nil {
		return
	}
	if !r.apply(&p, depth) {
		r.note(CodeBrokenPacket, at, "packet of %d bytes", len(b))
		return
	}
	r.good++
}

// maxPacketField is above all field numbers of TracePacket, of which some are
// for extensions.
const maxPacketField = 2000

// apply carries out what a packet says, and reports whether all of it could be
// read.
func (r *Reader) apply(p *packet, depth int) bool {
	s := p.seq
	if p.cleared || p.flags&flagStateCleared != 0 {
		s.clear()
	}
	if p.dropped {
		r.note(CodePacketLoss, p.at, "packets of sequence %d", s.id)
		r.clocks.lost(s.id)
	}
	for _, b := range p.interned {
		if !r.intern(s, b, p.at) {
			return false
		}
	}
	for _, b := range p.defaults {
		if !s.setDefaults(b) {
			return false
		}
	}
	switch {
	case p.snapshot != nil && !r.clocks.snapshot(p.snapshot, s.id):
		return false
	case p.process != nil && !s.setProcess(p.process):
		return false
	case p.thread != nil && !s.setThread(p.thread):
		return false
	case p.track != nil && !r.describeTrack(p.track, p.at):
		return false
	case p.compressed != nil && !r.decompress(p, depth):
		return false
	case p.other != 0:
		r.note(CodeUnreadPacket, p.at, "%s", unread[p.other])
	}
	return (p.stage == nil || r.renderStage(p)) && (p.event == nil || r.trackEvent(p))
}

// Compressed packets may hold so many times the bytes read so far, beyond the
// grace.
const (
	maxInflate   = 250
	inflateGrace = 256 << 20
)

// decompress reads the packets in a compressed one, which may not hold another.
func (r *Reader) decompress(p *packet, depth int) bool {
	if depth > 0 {
		return false
	}
	z, err := zlib.NewReader(bytes.NewReader(p.compressed))
	if err != nil {
		return false
	}
	defer z.Close()
	inner, err := io.ReadAll(io.LimitReader(z, int64(r.opts.MaxPacketBytes)+1))
	r.inflated += int64(len(inner))
	if r.inflated > inflateGrace && r.inflated/maxInflate > r.in.at {
		r.stop(p.at, "compressed packets of %d bytes in the first %d bytes", r.inflated, r.in.at)
	}
	if len(inner) > r.opts.MaxPacketBytes {
		r.note(CodePacketTooLarge, p.at, "more than %d bytes when decompressed", r.opts.MaxPacketBytes)
		inner = inner[:r.opts.MaxPacketBytes]
	}
	ok := fields(inner, func(x field) bool {
		if x.num == tracePacket && x.isBytes() {
			r.packet(slices.Clip(x.data), p.at, p.end, depth+1)
		}
		return !r.full
	})
	return (ok || r.full) && err == nil
}
