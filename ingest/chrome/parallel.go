package chrome

import (
	"errors"
	"io"
	"sync"
)

// Sink takes events, in the order of the file. An event and what it refers to
// are valid until Event returns.
type Sink interface {
	Event(*Event)
}

// Sinks says where Scan delivers events: a sink for each stretch of the file.
type Sinks struct {
	// New returns a sink for events that a worker is about to read. Workers
	// are numbered from 0 up to and including Options.Workers; calls for one of
	// them do not overlap, those for different ones do.
	New func(worker int) Sink

	// Take gets the sinks with their events, one by one and in file order, in
	// the goroutine that called Scan. A sink that was made but is not taken
	// held what turned out to be no events; Drop, when set, gets it.
	Take, Drop func(Sink)
}

// flushEvents is how many events the sink of what is read in order may hold.
const flushEvents = 4096

// errPart ends Next where a part read by others may follow.
var errPart = errors.New("part")

// Scan reads the trace in r to its end and delivers its events. The Reader that
// it returns has the metadata and the diagnostics. Events, offsets, diagnostics
// and errors are those of [Reader.Next], whatever the number of workers.
//
// With several workers, one goroutine reads r and cuts it where events seem to
// begin, and the workers read the parts. What they found is taken only if the
// part before ended exactly where theirs begins; otherwise, and wherever a
// trace is damaged, the Reader goes through the bytes itself up to the next
// part that begins as it should.
func Scan(r io.Reader, opts Options, sinks Sinks) (*Reader, error) {
	x := NewReader(r, opts)
	s := scan{Reader: x, sinks: sinks, workers: max(opts.Workers, 1)}
	// A limit of events can be kept only by counting from the start.
	x.split = s.workers > 1 && opts.MaxEvents <= 0
	err := s.next()
	if errors.Is(err, errPart) {
		x.split = false
		if x.err == nil {
			err = s.parallel()
		} else { // it is all in memory
			err = s.next()
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	s.flush()
	return x, nil
}

type scan struct {
	*Reader
	sinks   Sinks
	workers int
	sink    Sink // of what is read in order
	held    int  // events in it
}

// next reads in order, to the error that ends Next.
func (s *scan) next() error {
	for {
		ev, err := s.Next()
		if err != nil {
			return err
		}
		if s.sink == nil {
			s.sink = s.sinks.New(s.workers)
		}
		s.sink.Event(ev)
		if s.held++; s.held == flushEvents {
			s.flush()
		}
	}
}

// flush delivers what was read in order.
func (s *scan) flush() {
	if s.sink != nil {
		s.sinks.Take(s.sink)
		s.sink, s.held = nil, 0
	}
}

// parallel reads on from an event behind a comma.
func (s *scan) parallel() error {
	q := &parts{ordered: make(chan *part, 2*s.workers+2)}
	c := &cutter{src: s.src, size: s.opts.PartBytes, base: s.offset(), start: true}
	c.carry = append(c.carry, s.rest()...)
	c.size = max(c.size, 1)
	s.src, s.parts, s.sips = q, q, true
	s.base, s.pos, s.end = c.base, 0, 0

	// All parts that can be in memory.
	free := make(chan *part, cap(q.ordered))
	for range cap(free) {
		free <- &part{read: make(chan struct{}, 1)}
	}
	work := make(chan *part, cap(free))
	var wg sync.WaitGroup
	wg.Go(func() {
		for p := range free {
			if !c.fill(p) {
				break
			}
			work <- p
			q.ordered <- p
		}
		q.err = c.err
		close(work)
		close(q.ordered)
	})
	for n := range s.workers {
		wg.Go(func() {
			x := parser{maxDepth: s.p.maxDepth}
			for p := range work {
				if p.start {
					p.sink = s.sinks.New(n)
					x.readPart(p, s.max)
				}
				p.read <- struct{}{}
			}
		})
	}
	q.done = func(p *part) {
		if p.sink != nil && s.sinks.Drop != nil {
			s.sinks.Drop(p.sink)
		}
		p.sink = nil
		if p.faults {
			p.diags, p.faults = diagnostics{}, false
		}
		free <- p
	}
	err := s.next()
	for errors.Is(err, errPart) {
		if p := q.take(); p != nil && p.start {
			s.adopt(p)
			if p.complete() {
				q.release()
			}
		}
		err = s.next()
	}
	for q.take() != nil { // nobody waits for what is left after an error
	}
	close(free)
	wg.Wait()
	return err
}

// adopt takes over what a worker read at exactly the current position.
func (s *scan) adopt(p *part) {
	if p.events > 0 {
		s.flush()
		s.sinks.Take(p.sink)
		p.sink = nil
	}
	s.events += p.events
	s.elements += p.events
	s.sep = p.sep
	if p.faults {
		s.diags.merge(&p.diags)
	}
	s.base, s.pos, s.end = p.base+int64(p.stop), 0, 0
	s.parts.at = p.stop
}

// atPart tells whether all before the next part has been read and an event of
// the array is due.
func (r *Reader) atPart() bool {
	if r.state != stEvents || r.sep != sepComma || !r.parts.drained() {
		return false
	}
	r.pos += skipSpace(r.rest(), 0)
	return r.pos == r.end
}

// parts is the stream as it arrives in parts, for the Reader that goes through
// those that nobody could read ahead. It is an io.Reader of them.
type parts struct {
	ordered chan *part
	done    func(*part)
	err     error // what ended the stream; set before ordered is closed

	cur  *part
	at   int  // index in cur.data of what has not been read
	over bool // there are no more
}

// drained tells whether all parts taken so far have been read, and others may
// follow.
func (q *parts) drained() bool { return !q.over && (q.cur == nil || q.at == len(q.cur.data)) }

// take waits for the next part; nil at the end.
func (q *parts) take() *part {
	q.release()
	p, ok := <-q.ordered
	if !ok {
		q.over = true
		return nil
	}
	<-p.read // its worker is done with it
	q.cur, q.at = p, 0
	return p
}

// release returns the current part.
func (q *parts) release() {
	if q.cur != nil {
		q.done(q.cur)
		q.cur, q.at = nil, 0
	}
}

// Read implements io.Reader.
func (q *parts) Read(b []byte) (int, error) {
	if q.over || q.drained() && q.take() == nil {
		return 0, q.err
	}
	n := copy(b, q.cur.data[q.at:])
	q.at += n
	return n, nil
}
