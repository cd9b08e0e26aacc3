package remotetest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
)

// Fault is what happens to one request on its way.
type Fault struct {
	// Status, when not 0, is answered instead of asking the server.
	Status int
	// DropAfter, when not 0, ends the connection after so many bytes of the body.
	DropAfter int64
	// Hook, when not nil, runs before the request is passed on.
	Hook func()
}

// Proxy passes requests on to a server, with the faults that a test decides on.
type Proxy struct {
	Address string

	mu       sync.Mutex
	decide   func(*http.Request) Fault
	requests int
}

// NewProxy starts a proxy before the server at the given address. decide is called
// for each request, one at a time; nil passes all.
func NewProxy(t testing.TB, address string, decide func(*http.Request) Fault) *Proxy {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{decide: decide}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.pass(w, r, to) }))
	t.Cleanup(server.Close)
	p.Address = server.URL
	return p
}

// Requests is how many requests came so far.
func (p *Proxy) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// Decide replaces what decides on faults.
func (p *Proxy) Decide(decide func(*http.Request) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decide = decide
}

func (p *Proxy) fault(r *http.Request) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	if p.decide == nil {
		return Fault{}
	}
	return p.decide(r)
}

func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, to *url.URL) {
	f := p.fault(r)
	if f.Hook != nil {
		f.Hook()
	}
	if f.Status != 0 {
		w.WriteHeader(f.Status)
		return
	}
	out := r.Clone(r.Context())
	out.RequestURI = ""
	out.URL.Scheme, out.URL.Host = to.Scheme, to.Host // r.Host stays: it is signed
	resp, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	for k, v := range resp.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(resp.StatusCode)
	if f.DropAfter == 0 {
		_, _ = io.Copy(w, resp.Body)
		return
	}
	_, _ = io.CopyN(w, resp.Body, f.DropAfter)
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler) // ends the connection
}
