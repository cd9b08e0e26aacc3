package perfetto

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// msg builds a message: num and value in turn, where a value is an int, a
// string or another message.
func msg(parts ...any) []byte {
	var b []byte
	for i := 0; i < len(parts); i += 2 {
		num := protowire.Number(parts[i].(int))
		switch v := parts[i+1].(type) {
		case int:
			b = protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), uint64(v))
		case string:
			b = protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), v)
		case []byte:
			b = protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
		}
	}
	return b
}

// pkt is a packet at the top level.
func pkt(parts ...any) []byte { return msg(tracePacket, msg(parts...)) }

// ev is a packet with a track event of sequence 1.
func ev(ts, kind, track int, more ...any) []byte {
	return pkt(packetTimestamp, ts, packetSequenceID, 1, packetTrackEvent, msg(append([]any{eventType, kind, eventTrackUUID, track}, more...)...))
}

func begin(ts int, name string) []byte { return ev(ts, typeSliceBegin, 5, eventName, name) }
func end(ts int) []byte                { return ev(ts, typeSliceEnd, 5) }

func snapshot(seq int, parts ...any) []byte {
	return pkt(packetSequenceID, seq, packetClockSnapshot, msg(parts...))
}

func clock(id, ts int, more ...any) []byte {
	return msg(append([]any{clockID, id, clockTimestamp, ts}, more...)...)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func TestPairs(t *testing.T) {
	thread := pkt(packetTrackDescriptor, msg(trackUUID, 5, trackThread, msg(threadPID, 1, threadTID, 2)))
	for _, c := range []struct {
		name  string
		input []byte
		want  string
	}{
		{"nested", join(begin(1, "a"), begin(2, "b"), end(3), end(4)), `X "a" 1/2 1+3, X "b" 1/2 2+1`},
		{"one after the other, touching", join(begin(1, "a"), end(2), begin(2, "b"), end(3)), `X "a" 1/2 1+1, X "b" 1/2 2+1`},
		{"no time", join(begin(1, "a"), end(1)), `X "a" 1/2 1+0`},
		{"a lost begin before another at the same time", join(end(5), begin(5, "a"), end(7)), `X "a" 1/2 5+2, ! unmatched-end x1: at 5 ns`},
		{"a batch", join(begin(1, "a"), begin(4, "b"), end(3), end(6)), `X "a" 1/2 1+2, X "b" 1/2 4+2`},
		{"a batch of touching slices, one without time", join(begin(1, "a"), begin(3, "b"), begin(3, "c"), begin(9, "d"), end(3), end(3), end(6), end(10)),
			`X "a" 1/2 1+2, X "b" 1/2 3+0, X "c" 1/2 3+3, X "d" 1/2 9+1`},
		{"a batch that overlaps", join(begin(1, "a"), begin(4, "b"), begin(8, "c"), end(5), end(7), end(9)), `X "a" 1/2 1+4, X "b" 1/2 4+3, X "c" 1/2 8+1`},
		{"batches out of order", join(begin(10, "a"), end(20), begin(1, "b"), end(5)), `X "a" 1/2 10+10, X "b" 1/2 1+4`},
		{"sorted", join(end(5), begin(1, "a"), end(8), begin(5, "b")), `X "a" 1/2 1+4, X "b" 1/2 5+3, ! unordered-track x1: 4 begins and ends`},
		{"sorted, without time", join(end(5), end(8), begin(5, "a"), begin(8, "b")), `X "a" 1/2 5+0, X "b" 1/2 8+0, ! unordered-track x1: 4 begins and ends`},
		{"open and unmatched", join(end(1), begin(2, "a")), `B "a" 1/2 2, ! unmatched-end x1: at 1 ns, ! unmatched-begin x1: "a"`},
		{"without time stamp", join(pkt(packetTrackEvent, msg(eventType, typeSliceBegin, eventTrackUUID, 5, eventName, "a")), end(3)),
			`B "a" 1/2, ! missing-ts x1: "a", ! unmatched-begin x1: "a", ! unmatched-end x1: at 3 ns`},
		{"time beyond int64", join(begin(-1, "a")), `B "a" 1/2, ! time-overflow x1: "a", ! unmatched-begin x1: "a"`},
	} {
		checkEvents(t, c.name, join(thread, c.input), c.want)
	}
}

// checkEvents compares events and diagnostics, joined by ", ".
func checkEvents(t *testing.T, name string, input []byte, want string) {
	t.Helper()
	got, err := readAll(bytes.NewReader(input), Options{})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if got = strings.ReplaceAll(strings.TrimSpace(got), "\n", ", "); got != want {
		t.Errorf("%s:\n got %s\nwant %s", name, got, want)
	}
}

func TestTracks(t *testing.T) {
	instant := ev(1, typeInstant, 5, eventName, "a")
	describe := func(parts ...any) []byte { return pkt(packetTrackDescriptor, msg(parts...)) }
	for _, c := range []struct {
		name  string
		input []byte
		want  string
	}{
		{"thread, described later", join(instant, describe(trackUUID, 5, trackThread, msg(threadPID, 1, threadTID, 2, threadName, "t"))),
			`M "thread_name" 1/2 {"name": "t"}, i "a" 1/2 1`},
		{"process", join(describe(trackUUID, 5, trackProcess, msg(processPID, 1, processName, "p")), instant), `M "process_name" 1/ {"name": "p"}, i "a" 1/ 1`},
		{"own track of a process", join(describe(trackUUID, 4, trackProcess, msg(processPID, 1)), describe(trackUUID, 5, trackParent, 4, trackName, "lane"), instant), `i "a" 1/lane 1`},
		{"own track of a thread", join(describe(trackUUID, 4, trackThread, msg(threadPID, 1, threadTID, 2)), describe(trackUUID, 5, trackParent, 4, trackName, "lane"), instant), `i "a" 1/2 1`},
		{"track of nobody", join(describe(trackUUID, 5, trackName, "lane"), instant), `i "a" /lane 1`},
		{"parents in a circle", join(describe(trackUUID, 4, trackParent, 5), describe(trackUUID, 5, trackParent, 4), instant), `i "a" /track 5 1`},
		{"not described", instant, `i "a" /track 5 1, ! unknown-track x1: track 5`},
		{"no track", pkt(packetTimestamp, 1, packetTrackEvent, msg(eventType, typeInstant, eventName, "a")), `i "a" / 1`},
		{"legacy thread, micros", join(
			pkt(packetSequenceID, 1, packetThread, msg(threadPID, 7, threadTID, 8, threadReferenceMicros, 100)),
			pkt(packetSequenceID, 1, packetTrackEvent, msg(eventDeltaMicros, 5, eventName, "x", eventLegacy, msg(legacyPhase, int('X'), legacyDuration, 3))),
			pkt(packetSequenceID, 1, packetTrackEvent, msg(eventDeltaMicros, 5, eventName, "b", eventLegacy, msg(legacyPhase, int('B')))),
			pkt(packetSequenceID, 1, packetTrackEvent, msg(eventAbsoluteMicros, 200, eventLegacy, msg(legacyPhase, int('E')))),
			pkt(packetSequenceID, 1, packetTrackEvent, msg(eventAbsoluteMicros, 200, eventName, "i", eventLegacy, msg(legacyPhase, int('I'), legacyPID, 3, legacyTID, 4))),
			pkt(packetSequenceID, 1, packetTrackEvent, msg(eventAbsoluteMicros, 200, eventLegacy, msg(legacyPhase, int('b'))))),
			`X "x" 7/8 105000+3000, X "b" 7/8 110000+90000, i "i" 3/4 200000, ! unread-event x1: event of type 0, phase 98`},
	} {
		checkEvents(t, c.name, c.input, c.want)
	}
}

func TestClocks(t *testing.T) {
	at := func(clock, ts int) []byte {
		return pkt(packetTimestamp, ts, packetClockID, clock, packetSequenceID, 1, packetTrackEvent, msg(eventType, typeInstant, eventName, "a"))
	}
	for _, c := range []struct {
		name  string
		input []byte
		want  string
	}{
		{"tied before", join(snapshot(9, snapshotClocks, clock(6, 1000), snapshotClocks, clock(3, 400)), at(3, 500), at(6, 7)), `i "a" / 1100, i "a" / 7`},
		{"tied after", join(at(3, 500), at(6, 7), snapshot(9, snapshotClocks, clock(6, 1000), snapshotClocks, clock(3, 400))), `i "a" / 1100, i "a" / 7`},
		{"never tied", join(at(3, 500), at(6, 7)), `i "a" /, i "a" / 7, ! unknown-clock x1: clock 3`},
		{"the only clock", join(at(3, 500), at(3, 700)), `i "a" / 500, i "a" / 700`},
		{"Unix time is the only clock", at(1, 500), `i "a" / 500, unix +0`},
		{"primary clock is Unix time", join(snapshot(9, snapshotPrimary, 1, snapshotClocks, clock(6, 1000), snapshotClocks, clock(1, 4000)), at(6, 1500)), `i "a" / 4500, unix +0`},
		{"tied through a third", join(snapshot(9, snapshotClocks, clock(6, 1000), snapshotClocks, clock(3, 400)), snapshot(9, snapshotClocks, clock(3, 600), snapshotClocks, clock(200, 10)), at(200, 11)), `i "a" / 1201`},
		{"clock of another sequence", join(snapshot(9, snapshotClocks, clock(6, 1000), snapshotClocks, clock(64, 0)), at(64, 1), at(6, 2)), `i "a" /, i "a" / 2, ! unknown-clock x1: clock 64`},
		{"counting on", join(snapshot(1, snapshotClocks, clock(6, 1000), snapshotClocks, clock(64, 0, clockIncremental, 1, clockUnitNS, 1000)), at(64, 1), at(64, 2)), `i "a" / 2000, i "a" / 4000`},
		{"lost in between", join(snapshot(1, snapshotClocks, clock(6, 1000), snapshotClocks, clock(64, 0, clockIncremental, 1)), at(64, 1), pkt(packetSequenceID, 1, packetPreviousDropped, 1), at(64, 2), at(6, 9)),
			`i "a" / 1001, i "a" /, i "a" / 9, ! packet-loss x1: packets of sequence 1, ! unknown-clock x1: clock 64 after packets were lost`},
		{"a huge unit", join(snapshot(1, snapshotClocks, clock(6, 1000), snapshotClocks, clock(64, 1, clockUnitNS, 1<<40)), at(64, 1<<30)), `i "a" /, ! time-overflow x1: "a"`},
	} {
		checkEvents(t, c.name, c.input, c.want)
	}
}

// FuzzReader checks what holds for every input: no panic, an end, offsets in
// the file, no negative durations, args that are
// objects, and the same result in pieces.
func FuzzReader(f *testing.F) {
	for _, name := range []string{"pytorch.pftrace", "kineto.pftrace", "sdk.pftrace", "stages.pftrace"} {
		f.Add(fixture(f, name))
	}
	f.Add(join(begin(1, "a"), begin(4, "b"), end(3), end(6)))
	f.Add(join(end(5), begin(1, "a"), end(8), begin(5, "b")))
	f.Fuzz(func(t *testing.T, input []byte) {
		opts := Options{MaxPacketBytes: 1 << 16, MaxEvents: 1000, MaxTracks: 100, MaxHeldBytes: 1 << 20}
		checkReader(t, input, opts)
	})
}
