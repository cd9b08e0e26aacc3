package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Open begins to read an object. The stream goes on from where it was after a
// dropped connection; see the package's comment.
func (c *Client) Open(s string) (*Stream, error) { return c.OpenAt(s, 0) }

// OpenAt is Open from the given byte on.
func (c *Client) OpenAt(s string, offset int64) (*Stream, error) {
	n, err := parse(s)
	if err != nil {
		return nil, err
	}
	r := &Stream{c: c, name: n, given: s, shown: Redact(s), offset: offset, size: -1}
	if err := r.begin(); err != nil {
		return nil, err
	}
	return r, nil
}

// Stream reads one version of an object, across as many connections as it takes.
type Stream struct {
	c     *Client
	name  name
	given string // as the user wrote it
	shown string

	version string // of the first answer; all later ones must be of it
	begun   bool
	offset  int64 // of the next byte
	size    int64 // -1 when not known

	body    io.ReadCloser
	stop    context.CancelFunc
	timer   *time.Timer
	dropped int // connections in a row that gave no byte
}

// Size is how many bytes the object has, -1 when a web server does not say.
func (r *Stream) Size() int64 { return r.size }

// begin opens a connection at the offset.
func (r *Stream) begin() error {
	return r.c.request(r.given, "read", func(st store, n name) error {
		ctx, stop := context.WithCancel(r.c.ctx)
		version := ""
		if r.begun {
			version = r.version
		}
		body, at, it, err := st.open(ctx, keyOf(n), version, r.offset)
		if err == nil && r.begun && (it.version != r.version || it.size >= 0 && r.size >= 0 && it.size != r.size) {
			body.Close()
			err = &fault{kind: changed}
		}
		if err == nil && at < r.offset {
			// The server gives no ranges: what was read before passes again.
			if _, skipErr := io.CopyN(io.Discard, body, r.offset-at); skipErr != nil {
				body.Close()
				err = ofTransport(skipErr)
			}
		}
		if err != nil {
			stop()
			return err
		}
		r.body, r.stop = body, stop
		if !r.begun {
			r.version, r.size, r.begun = it.version, it.size, true
		}
		r.timer = time.AfterFunc(r.c.opts.Stall, stop)
		r.timer.Stop()
		return nil
	})
}

// Read implements io.Reader.
func (r *Stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if r.size >= 0 && r.offset >= r.size {
			return 0, io.EOF
		}
		if r.body == nil {
			return 0, errClosed
		}
		r.timer.Reset(r.c.opts.Stall)
		n, err := r.body.Read(p)
		r.timer.Stop()
		r.offset += int64(n)
		if n > 0 {
			r.dropped = 0
			return n, nil // an error comes again
		}
		if err == nil {
			continue
		}
		if errors.Is(err, io.EOF) && r.size < 0 {
			return 0, io.EOF
		}
		if err := r.resume(err); err != nil {
			return 0, err
		}
	}
}

var errClosed = errors.New("read of a closed stream")

// resume connects again after a connection ended early.
func (r *Stream) resume(cause error) error {
	r.hangUp()
	if err := r.c.ctx.Err(); err != nil {
		return err
	}
	if r.version == "" && r.offset > 0 {
		return fmt.Errorf("cannot read %s: %w: the connection dropped at byte %d, and the server gives neither ETag nor Last-Modified to go on by: try again",
			r.shown, ErrUnavailable, r.offset)
	}
	r.dropped++
	pause, again := r.c.again(r.dropped, ofTransport(cause))
	if !again || !r.c.sleep(pause) {
		return fmt.Errorf("cannot read %s: %w: the connection dropped %d times at byte %d: try again later", r.shown, ErrUnavailable, r.dropped, r.offset)
	}
	return r.begin()
}

func (r *Stream) hangUp() {
	if r.body != nil {
		r.body.Close() // the connection is given up: its error tells nothing
		r.stop()
		r.timer.Stop()
		r.body = nil
	}
}

// Close implements io.Closer.
func (r *Stream) Close() error {
	r.hangUp()
	return nil
}
