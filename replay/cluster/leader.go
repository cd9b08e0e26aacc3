package cluster

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"mixdown/replay/cluster/clusterpb"
	"mixdown/replay/launch"
)

// ErrRefused: a task can't take part in the job, or a job lacks tasks.
var ErrRefused = errors.New("the job's tasks don't fit")

// LeaderOptions of Listen.
type LeaderOptions struct {
	// Address to listen on, "HOST:PORT"; port 0 takes a free one.
	Address string
	// Token is the secret that members must know, "" for none.
	Token string
	// Version of mixdown: members of another are refused.
	Version string
	// Patience is how long tasks may take to join. 0 means DefaultPatience.
	Patience time.Duration
	// Note, when set, is told who joined and who was refused.
	Note func(string)
}

// DefaultPatience is how long tasks may take to join: engines start them one after
// the other.
const DefaultPatience = 2 * time.Minute

// Leader gathers the members of a job, and starts runs on them.
type Leader struct {
	opts     LeaderOptions
	listener net.Listener

	mu      sync.Mutex
	members map[int]*member // by rank
	refused []error         // tasks of the job that were
	changed chan struct{}   // closed, and made anew, when members or refused change
	usedMPI bool            // by a run on tasks that stay
	size    int             // of the job, as its members say; 0 before the first
	came    map[int]bool    // the ranks that ever joined
	over    *int            // the outcome of the job, once it is over
}

// Listen makes a leader.
func Listen(o LeaderOptions) (*Leader, error) {
	if o.Patience <= 0 {
		o.Patience = DefaultPatience
	}
	if o.Note == nil {
		o.Note = func(string) {}
	}
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for the job's tasks: %w", err)
	}
	l := &Leader{opts: o, listener: listener, members: map[int]*member{}, came: map[int]bool{}, changed: make(chan struct{})}
	go l.accept()
	return l, nil
}

// Port is where it listens.
func (l *Leader) Port() int { return l.listener.Addr().(*net.TCPAddr).Port }

// lateComers is how long a closing leader waits for tasks that have not joined yet.
const lateComers = 5 * time.Second

// Close tells all members to exit with a code, those too that are about to join, and
// stops listening.
func (l *Leader) Close(code int) {
	l.mu.Lock()
	l.over = &code
	l.mu.Unlock()
	l.dismiss(code)
	for deadline := time.Now().Add(lateComers); time.Now().Before(deadline) && !l.allCame(); {
		time.Sleep(10 * time.Millisecond)
	}
	l.listener.Close()
}

// allCame says whether every task of the job has joined once.
func (l *Leader) allCame() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.came) >= l.size
}

// dismiss sends all members home.
func (l *Leader) dismiss(code int) {
	l.mu.Lock()
	members := l.members
	l.members = map[int]*member{}
	l.mu.Unlock()
	for _, m := range members {
		_ = m.wire.send(&clusterpb.Order{Kind: &clusterpb.Order_Farewell{Farewell: &clusterpb.Farewell{Code: int32(code)}}})
		m.leave(errors.New("the job is over"))
	}
}

func (l *Leader) accept() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		go l.welcome(newWire(conn))
	}
}

// welcome lets a task in, or tells it why not.
func (l *Leader) welcome(w *wire) {
	var word clusterpb.Word
	if err := w.receive(&word, maxHello); err != nil || word.GetHello() == nil {
		w.close() // something else that knocked
		return
	}
	hello := word.GetHello()
	m := newMember(w, hello)
	if err := l.admit(m); err != nil {
		_ = w.send(&clusterpb.Order{Kind: &clusterpb.Order_Refusal{Refusal: &clusterpb.Refusal{Reason: err.Error()}}})
		w.close()
		l.opts.Note("refused: " + err.Error())
		return
	}
	if err := w.send(&clusterpb.Order{Kind: &clusterpb.Order_Welcome{Welcome: &clusterpb.Welcome{}}}); err != nil {
		m.leave(err)
		return
	}
	l.mu.Lock()
	over := l.over
	l.mu.Unlock()
	if over != nil {
		l.dismiss(*over)
		return
	}
	go m.question()
	l.listen(m)
}

func (l *Leader) admit(m *member) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := m.hello
	// Who does not know the token is a stranger, whose visit is no matter of the job.
	known := subtle.ConstantTimeCompare([]byte(h.Token), []byte(l.opts.Token)) == 1
	err := func() error {
		switch {
		case !known:
			return fmt.Errorf("%w: rank %d on %s does not know the job's token", ErrRefused, h.Rank, m.host())
		case h.Protocol != protocol || h.Version != l.opts.Version:
			return fmt.Errorf("%w: rank %d on %s runs mixdown %s, the leader %s: all hosts need the same", ErrRefused, h.Rank, m.host(), h.Version, l.opts.Version)
		case h.Rank < 0 || h.Rank >= h.Size:
			return fmt.Errorf("%w: rank %d of %d tasks", ErrRefused, h.Rank, h.Size)
		}
		if other, taken := l.members[int(h.Rank)]; taken {
			if other.lostBecause() != nil {
				return fmt.Errorf("%w: rank %d on %s came back after it was lost: a running job can't take tasks in again; start all of it anew", ErrRefused, h.Rank, m.host())
			}
			return fmt.Errorf("%w: rank %d on %s is already there, from %s", ErrRefused, h.Rank, m.host(), other.host())
		}
		return nil
	}()
	switch {
	case err == nil:
		l.members[int(h.Rank)] = m
		l.size = int(h.Size)
		l.came[int(h.Rank)] = true
	case known:
		l.refused = append(l.refused, err)
	}
	close(l.changed)
	l.changed = make(chan struct{})
	return err
}

// listen hears a member until it is lost.
func (l *Leader) listen(m *member) {
	for {
		var word clusterpb.Word
		if err := m.wire.receive(&word, maxFrame); err != nil {
			m.leave(lossOf(err))
			return
		}
		m.hear(&word)
	}
}

// lossOf words why nothing more is heard.
func lossOf(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("nothing was heard of it for %v", silence)
	}
	return errors.New("its connection ended")
}

// gather waits until n members are there.
func (l *Leader) gather(ctx context.Context, n int, ended func() error) ([]*member, error) {
	deadline := time.NewTimer(l.opts.Patience)
	defer deadline.Stop()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		l.mu.Lock()
		changed, err := l.changed, l.misfit(n)
		list := l.fit(n)
		l.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if list != nil {
			return list, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-deadline.C:
			l.mu.Lock()
			defer l.mu.Unlock()
			return nil, fmt.Errorf("%w: after %v, %s of %d", ErrRefused, l.opts.Patience, l.missing(n), n)
		case <-look.C:
			if err := ended(); err != nil {
				return nil, err
			}
		case <-changed:
		}
	}
}

// fit returns the members 0 to n-1 when all are there.
func (l *Leader) fit(n int) []*member {
	if len(l.members) < n {
		return nil
	}
	list := make([]*member, n)
	for i := range list {
		if list[i] = l.members[i]; list[i] == nil {
			return nil
		}
	}
	l.refused = nil
	return list
}

// misfit says why the members can't be those of n workers, whoever else comes.
func (l *Leader) misfit(n int) error {
	if len(l.refused) > 0 {
		return l.refused[0]
	}
	for _, m := range l.members {
		if int(m.hello.Size) != n {
			return fmt.Errorf("%w: the traces are of %d ranks, the job has %d tasks: start it with %d", ErrRefused, n, m.hello.Size, n)
		}
		if err := m.lostBecause(); err != nil {
			return fmt.Errorf("rank %d on %s is lost: %w", m.hello.Rank, m.host(), err)
		}
	}
	return nil
}

func (l *Leader) missing(n int) string {
	var missing []string
	for i := range n {
		if l.members[i] == nil {
			missing = append(missing, fmt.Sprint(i))
		}
	}
	text := strings.Join(missing[:min(len(missing), 16)], ", ")
	if len(missing) > 16 {
		text += ", ..."
	}
	return fmt.Sprintf("no task of rank %s has joined", text)
}

// Hosts are those of a crew's workers, in the order of their first ranks.
func hostsOf(members []*member) []launch.Host {
	var list []launch.Host
	for rank, m := range members {
		name := m.host()
		i := slices.IndexFunc(list, func(h launch.Host) bool { return h.Name == name })
		if i < 0 {
			offset, bound := m.offset()
			list = append(list, launch.Host{Name: name, Address: m.hello.Address, Interface: m.hello.Interface, CPUs: m.hello.Cpus, NUMA: m.hello.Numa, ClockOffset: offset, ClockBound: bound, RoundTrip: m.roundTrip()})
			i = len(list) - 1
		}
		list[i].Workers = append(list[i].Workers, rank)
	}
	return list
}
