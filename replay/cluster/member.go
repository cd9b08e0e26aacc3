package cluster

import (
	"sync"
	"time"

	"mixdown/replay/cluster/clusterpb"
	"mixdown/replay/launch"
)

// member is a task as the leader knows it.
type member struct {
	wire  *wire
	hello *clusterpb.Hello
	gone  chan struct{} // closed when it is lost or dismissed

	mu      sync.Mutex
	lost    error
	clock   Clock
	asked   map[uint64]int64 // when each open question was asked
	crew    *crew            // of the run in progress, nil between runs
	status  launch.Status
	process byte
	exit    string
	ended   bool // its worker, with all files sent
}

func newMember(w *wire, hello *clusterpb.Hello) *member {
	return &member{wire: w, hello: hello, gone: make(chan struct{}), asked: map[uint64]int64{}}
}

// host names where it is. Names of hosts may be alike; addresses are not.
func (m *member) host() string {
	if m.hello.Address == "" {
		return m.hello.Host
	}
	return m.hello.Host + " (" + m.hello.Address + ")"
}

// leave ends the connection, for the first reason that is given.
func (m *member) leave(why error) {
	m.mu.Lock()
	first := m.lost == nil
	if first {
		m.lost = why
	}
	m.mu.Unlock()
	if first {
		close(m.gone)
		m.wire.close()
	}
}

func (m *member) lostBecause() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost
}

// question asks for the member's clock, often at first, and so shows that the leader
// is there.
func (m *member) question() {
	const often, quick = 16, 5 * time.Millisecond
	for id := uint64(1); ; id++ {
		m.mu.Lock()
		m.asked[id] = launch.Now()
		m.mu.Unlock()
		if err := m.wire.send(&clusterpb.Order{Kind: &clusterpb.Order_Ping{Ping: &clusterpb.Ping{Id: id}}}); err != nil {
			m.leave(err)
			return
		}
		pause := beat
		if id < often {
			pause = quick
		}
		select {
		case <-m.gone:
			return
		case <-time.After(pause):
		}
	}
}

// offset of the member's clock, and how far off that may be. Those of one kernel have
// one clock.
func (m *member) offset() (offset, bound time.Duration) {
	if m.hello.Boot != "" && m.hello.Boot == bootID() {
		return 0, 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	offset, bound, _ = m.clock.Offset()
	return offset, bound
}

// answers is how many questions about its clock it has answered, up to what counts.
func (m *member) answers() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.clock.last)
}

func (m *member) roundTrip() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock.RoundTrip()
}

// hear takes a frame of the member.
func (m *member) hear(word *clusterpb.Word) {
	now := launch.Now()
	m.mu.Lock()
	c := m.crew
	m.mu.Unlock()
	switch kind := word.Kind.(type) {
	case *clusterpb.Word_Pong:
		m.mu.Lock()
		if asked, ok := m.asked[kind.Pong.Id]; ok {
			delete(m.asked, kind.Pong.Id)
			m.clock.Observe(asked, kind.Pong.NowNs, now)
		}
		m.mu.Unlock()
	case *clusterpb.Word_Status:
		status := statusOf(kind.Status, now)
		m.mu.Lock()
		if c != nil {
			m.status, m.process = status, byte(kind.Status.Process)
		}
		m.mu.Unlock()
	case *clusterpb.Word_Arrived:
		if c != nil {
			c.arrived(kind.Arrived.Generation)
		}
	case *clusterpb.Word_Rendezvous:
		if c != nil {
			c.share(m, kind.Rendezvous)
		}
	case *clusterpb.Word_File:
		if c != nil {
			if err := c.keep(m, kind.File); err != nil {
				m.leave(err)
			}
		}
	case *clusterpb.Word_Ended:
		m.mu.Lock()
		m.exit, m.ended = kind.Ended.Exit, true
		m.mu.Unlock()
	}
}

// statusOf turns what a member says into what a control file of this host would show.
func statusOf(s *clusterpb.Status, now int64) launch.Status {
	status := launch.Status{PID: s.Pid, State: launch.State(s.State), Plan: s.Plan, Iteration: s.Iteration, TasksEnded: s.TasksEnded, Message: s.Message}
	for _, st := range s.Streams {
		status.Streams = append(status.Streams, launch.StreamState{Task: st.Task, Doing: st.Doing, Since: now - st.AgeNs})
	}
	return status
}
