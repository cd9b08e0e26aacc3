package cluster

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"
)

// protocol is the version of what leader and members say to each other. They are the
// same program on all hosts, or should be.
const protocol = 1

const (
	// maxFrame bounds a frame: an experiment of a large job is the largest.
	maxFrame = 2 << 30
	// maxHello bounds the first frame, of a peer that is not known yet.
	maxHello = 1 << 16
	// writeLimit is how long a peer may take to take a frame.
	writeLimit = 30 * time.Second
	// silence is how long a peer may say nothing. Both sides speak far more often.
	silence = 10 * time.Second
	// beat is how often they speak at least.
	beat = 500 * time.Millisecond
)

// wire is a connection on which frames go both ways. Writing is safe for several
// goroutines.
type wire struct {
	conn net.Conn
	in   *bufio.Reader

	mu  sync.Mutex
	out *bufio.Writer
}

func newWire(conn net.Conn) *wire {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetNoDelay(true)
	}
	return &wire{conn: conn, in: bufio.NewReaderSize(conn, 1<<16), out: bufio.NewWriterSize(conn, 1<<16)}
}

// send writes a frame. An error ends the connection.
func (w *wire) send(m proto.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.conn.SetWriteDeadline(time.Now().Add(writeLimit))
	_, err := protodelim.MarshalTo(w.out, m)
	if err == nil {
		err = w.out.Flush()
	}
	if err != nil {
		w.conn.Close()
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

// receive reads a frame of at most so many bytes, within the limit of silence.
func (w *wire) receive(m proto.Message, most int64) error {
	_ = w.conn.SetReadDeadline(time.Now().Add(silence))
	return protodelim.UnmarshalOptions{MaxSize: most}.UnmarshalFrom(w.in, m)
}

func (w *wire) close() { w.conn.Close() }
