package perfetto

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// stream takes packets from the top level of a trace.
type stream struct {
	src *bufio.Reader
	max int
	buf bytes.Buffer
	at  int64 // offset of the next byte
}

func newStream(r io.Reader, most int) stream {
	return stream{src: bufio.NewReaderSize(r, 64<<10), max: most}
}

var (
	errTooLarge = errors.New("packet too large")
	errOther    = errors.New("not a packet")
)

// packet returns the next packet and where it begins; io.EOF at the end, and
// io.ErrUnexpectedEOF inside a packet. What is above the limit, or no packet,
// has been passed over when errTooLarge or errOther is returned.
func (s *stream) packet() (b []byte, at int64, err error) {
	at = s.at
	tag, err := s.varint()
	if err != nil {
		return nil, at, err
	}
	num, typ := protowire.DecodeTag(tag)
	if num < 1 {
		return nil, at, fmt.Errorf("%w: field number %d", errBadStream, num)
	}
	switch {
	case typ == protowire.VarintType:
		if _, err := s.varint(); err != nil {
			return nil, at, unexpected(err)
		}
		return nil, at, errOther
	case typ == protowire.Fixed64Type:
		return nil, at, s.skip(8, errOther)
	case typ == protowire.Fixed32Type:
		return nil, at, s.skip(4, errOther)
	case typ != protowire.BytesType:
		return nil, at, fmt.Errorf("%w: wire type %d", errBadStream, typ)
	}
	length, err := s.varint()
	switch {
	case err != nil:
		return nil, at, unexpected(err)
	case length > 1<<62:
		return nil, at, fmt.Errorf("%w: packet of %d bytes", errBadStream, length)
	case num != tracePacket:
		return nil, at, s.skip(int64(length), errOther)
	case length > uint64(s.max):
		return nil, at, s.skip(int64(length), errTooLarge)
	}
	// The buffer grows with what comes, not with what is announced.
	s.buf.Reset()
	n, err := io.CopyN(&s.buf, s.src, int64(length))
	s.at += n
	return s.buf.Bytes(), at, unexpected(err)
}

var errBadStream = errors.New("not a message")

func (s *stream) varint() (uint64, error) {
	start := s.at
	v, err := binary.ReadUvarint(s)
	if err != nil && s.at-start >= binary.MaxVarintLen64 {
		return 0, errBadStream
	}
	return v, err
}

// ReadByte is for binary.ReadUvarint.
func (s *stream) ReadByte() (byte, error) {
	b, err := s.src.ReadByte()
	if err == nil {
		s.at++
	}
	return b, err
}

// skip passes over n bytes and then returns why.
func (s *stream) skip(n int64, why error) error {
	skipped, err := io.CopyN(io.Discard, s.src, n)
	s.at += skipped
	if err != nil {
		return unexpected(err)
	}
	return why
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readAll reads the trace to its end and joins slices.
func (r *Reader) readAll() error {
	for !r.full {
		b, at, err := r.in.packet()
		switch {
		case err == nil:
			r.packet(b, at, r.in.at, 0)
			continue
		case errors.Is(err, errTooLarge):
			r.note(CodePacketTooLarge, at, "more than %d bytes", r.opts.MaxPacketBytes)
			continue
		case errors.Is(err, errOther):
			r.note(CodeBrokenPacket, at, "a field that no trace has, before or between packets")
			continue
		}
		if err := r.ended(err, b, at); err != nil {
			return err
		}
		break
	}
	if r.good == 0 {
		return fmt.Errorf("%w: none of its packets can be read", ErrNotPerfetto)
	}
	r.settle()
	if len(r.events) == 0 {
		r.note(CodeNoEvents, r.in.at, "%d packets without track events", r.good)
	}
	return nil
}

// ended decides what the end of the stream means.
func (r *Reader) ended(err error, b []byte, at int64) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("stopped at byte %d: %w", r.in.at, err)
	case r.in.at == 0 && errors.Is(err, io.EOF):
		return ErrEmpty
	case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil
	case r.good == 0 && errors.Is(err, errBadStream):
		return fmt.Errorf("%w: byte %d begins no packet", ErrNotPerfetto, at)
	case r.good == 0 && !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("unreadable at byte %d: %w", r.in.at, err)
	}
	r.truncated = true
	r.note(CodeTruncated, at, "%v, %d bytes into a packet", err, len(b))
	return nil
}
