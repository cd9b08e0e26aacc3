package source

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// bufferSize is how many stored bytes are read at a time.
const bufferSize = 256 << 10

// zstdWindow bounds the memory that a zstd file may ask for.
const zstdWindow = 128 << 20

// format is how a file is stored.
type format uint8

const (
	plain format = iota
	gzipped
	zstandard
	bzipped
	zipped
	tarred
	xz
	lz4
)

// headBytes is how many bytes formatOf wants to see: tar has its signature at
// 257.
const headBytes = 512

// formatOf tells how the file that begins with b is stored.
func formatOf(b []byte) format {
	has := func(prefix string) bool { return bytes.HasPrefix(b, []byte(prefix)) }
	switch {
	case has("\x1f\x8b"):
		return gzipped
	case has("\x28\xb5\x2f\xfd"), len(b) >= 4 && b[0]&0xf0 == 0x50 && string(b[1:4]) == "\x2a\x4d\x18":
		return zstandard // the second form is a skippable frame
	case has("BZh") && len(b) > 3 && b[3] >= '1' && b[3] <= '9':
		return bzipped
	case has("PK\x03\x04"), has("PK\x05\x06"):
		return zipped
	case has("\xfd7zXZ\x00"):
		return xz
	case has("\x04\x22\x4d\x18"):
		return lz4
	case len(b) >= 262 && string(b[257:262]) == "ustar":
		return tarred
	}
	return plain
}

// stream is a decompressed file.
type stream struct {
	r      io.Reader
	name   string
	stored *countingReader
	limits Options
	done   int64 // decompressed bytes delivered
	plain  bool
	close  []func() error
}

// decompress returns the decompressed bytes of stored, which it closes with
// the result.
func decompress(name string, stored io.ReadCloser, limits Options) (io.ReadCloser, error) {
	counted := &countingReader{r: stored}
	buffered := bufio.NewReaderSize(counted, bufferSize)
	head, err := buffered.Peek(headBytes)
	if len(head) == 0 {
		if err == nil || errors.Is(err, io.EOF) {
			err = ErrEmpty
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s := &stream{name: name, stored: counted, limits: limits, close: []func() error{stored.Close}}
	switch f := formatOf(head); f {
	case gzipped:
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, unexpected(err))
		}
		s.r = z
		s.close = append(s.close, z.Close)
	case zstandard:
		z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s.r = z
		s.close = append(s.close, func() error { z.Close(); return nil })
	case bzipped:
		s.r = bzip2.NewReader(buffered)
	case xz, lz4:
		return nil, fmt.Errorf("%s: %w (%s): decompress it first", name, ErrUnsupported, map[format]string{xz: "xz", lz4: "lz4"}[f])
	default:
		s.r, s.plain = buffered, true
	}
	return s, nil
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	if s.done >= s.limits.MaxBytes {
		// One more byte would be too many; the end would be fine.
		var one [1]byte
		if n, err := s.r.Read(one[:]); n == 0 {
			return 0, s.wrap(err)
		}
		return 0, fmt.Errorf("%s: %w: more than %d bytes", s.name, ErrLimit, s.limits.MaxBytes)
	}
	if int64(len(p)) > s.limits.MaxBytes-s.done {
		p = p[:s.limits.MaxBytes-s.done]
	}
	n, err := s.r.Read(p)
	s.done += int64(n)
	if !s.plain && s.done > ratioGrace && s.done/max(s.stored.n.Load(), 1) > s.limits.MaxRatio {
		return n, fmt.Errorf("%s: %w: more than %d times larger than compressed", s.name, ErrLimit, s.limits.MaxRatio)
	}
	return n, s.wrap(err)
}

// Stored returns how many bytes of the file as stored have been read so far. It
// may be called while another goroutine reads.
func (s *stream) Stored() int64 { return s.stored.n.Load() }

func (s *stream) wrap(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return fmt.Errorf("%s: %w", s.name, unexpected(err))
}

// Close implements io.Closer.
func (s *stream) Close() error {
	var errs []error
	for i := len(s.close) - 1; i >= 0; i-- {
		errs = append(errs, s.close[i]())
	}
	return errors.Join(errs...)
}

// unexpected makes the end of the file inside compressed data recognisable.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// countingReader counts the bytes that pass.
type countingReader struct {
	r io.Reader
	n atomic.Int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
