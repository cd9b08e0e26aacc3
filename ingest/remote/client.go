package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Object is an object as it was when the store was asked.
type Object struct {
	// Name is its whole name as it may be shown: redacted.
	Name string
	// Size is in bytes, -1 when a web server does not say.
	Size int64
	// Version changes with the content: an ETag or a generation; "" when the
	// store has none.
	Version string
	// Modified is when it was written; zero when the store does not say.
	Modified time.Time
}

// Options of a client. The zero value is ready.
type Options struct {
	// Attempts is how often a request is made, or a stream begun again without
	// a byte in between, before it fails; default 7.
	Attempts int
	// Pause is how long to wait before the second attempt; each further one
	// waits twice as long, up to MaxPause. Default 200 ms, and 10 s.
	Pause, MaxPause time.Duration
	// Stall is how long a stream may give nothing before its connection counts
	// as dropped; default 60 s.
	Stall time.Duration
}

func (o Options) withDefaults() Options {
	if o.Attempts <= 0 {
		o.Attempts = 7
	}
	if o.Pause <= 0 {
		o.Pause = 200 * time.Millisecond
	}
	if o.MaxPause <= 0 {
		o.MaxPause = 10 * time.Second
	}
	if o.Stall <= 0 {
		o.Stall = 60 * time.Second
	}
	return o
}

// Client makes requests to all kinds of stores, and keeps what it learns about
// them: credentials, regions, connections. Its methods may be called from several
// goroutines.
type Client struct {
	ctx  context.Context
	opts Options

	mu     sync.Mutex
	stores map[string]store // by scheme and bucket
}

// New returns a client whose requests and streams end with ctx.
func New(ctx context.Context, opts Options) *Client {
	return &Client{ctx: ctx, opts: opts.withDefaults(), stores: map[string]store{}}
}

// item is an object of a store.
type item struct {
	key      string
	size     int64
	version  string
	modified time.Time
}

// store is what the kinds of store differ in. Every method makes one request and
// fails with a *fault.
type store interface {
	// list returns a page of what is below prefix, ordered by key: the first one
	// for the token "", and the token of the next, "" after the last.
	list(ctx context.Context, prefix, token string) (page []item, next string, err error)
	stat(ctx context.Context, key string) (item, error)
	// open begins to read at offset. With a version, another one is the fault
	// changed. The body may begin earlier where a server can't begin anywhere
	// else: at is where it does.
	open(ctx context.Context, key, version string, offset int64) (body io.ReadCloser, at int64, it item, err error)
	// put writes a whole object at once: readers see all of it or none.
	put(ctx context.Context, key string, body io.ReadSeeker, size int64) error
	remove(ctx context.Context, key string) error
}

// storeFor returns the store of a name, made when it is first asked for.
func (c *Client) storeFor(n name) (store, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := n.scheme + "://" + n.bucket
	if n.web != nil {
		id = "web"
	}
	if s, ok := c.stores[id]; ok {
		return s, nil
	}
	var s store
	var err error
	switch n.scheme {
	case schemeS3:
		s, err = newS3(c.ctx, n.bucket)
	case schemeGCS:
		s, err = newGCS(c.ctx, n.bucket)
	case schemeAzure:
		s, err = newAzure(n.bucket)
	default:
		s = &web{client: &http.Client{Transport: transport()}}
	}
	if err != nil {
		return nil, err
	}
	c.stores[id] = s
	return s, nil
}

// transport gives up on servers that do not answer; how long a body takes is
// watched by the stream.
func transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	t.ResponseHeaderTimeout = answerTimeout
	t.MaxIdleConnsPerHost = 32
	t.DisableCompression = true // bytes as stored: their offsets count
	return t
}

const (
	dialTimeout   = 15 * time.Second
	answerTimeout = 60 * time.Second
)

// request makes a request until it succeeds, fails for good, or failed too often.
func (c *Client) request(s, doing string, do func(store, name) error) error {
	n, err := parse(s)
	if err != nil {
		return err
	}
	shown := Redact(s)
	for attempt := 1; ; attempt++ {
		st, err := c.storeFor(n)
		if err == nil {
			err = do(st, n)
		}
		if err == nil {
			return nil
		}
		if e := c.ctx.Err(); e != nil {
			return e
		}
		if pause, again := c.again(attempt, err); !again || !c.sleep(pause) {
			return explain(n, shown, doing, err)
		}
	}
}

// again says whether and when to try once more after the given attempt.
func (c *Client) again(attempt int, err error) (time.Duration, bool) {
	var f *fault
	if !errors.As(err, &f) || f.kind != temporary || attempt >= c.opts.Attempts {
		return 0, false
	}
	pause := min(c.opts.Pause<<(attempt-1), c.opts.MaxPause)
	// Half of it by chance: many ranks that failed together come back apart.
	pause = pause/2 + rand.N(pause/2+1)
	return max(pause, min(f.after, 3*c.opts.MaxPause)), true
}

// sleep reports false when the client's context ended first.
func (c *Client) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// Stat asks for one object.
func (c *Client) Stat(s string) (Object, error) {
	var o Object
	err := c.request(s, "read", func(st store, n name) error {
		it, err := st.stat(c.ctx, keyOf(n))
		o = object(n, it)
		return err
	})
	return o, err
}

// List calls yield for every object whose name begins with prefix, ordered by
// name, until yield reports false.
func (c *Client) List(prefix string, yield func(Object) bool) error {
	if !Listable(prefix) {
		return fmt.Errorf("%w: a web server can't be asked what is in %s: name each file", ErrCannot, Redact(prefix))
	}
	for token := ""; ; {
		var page []item
		var of name
		err := c.request(prefix, "list", func(st store, n name) (err error) {
			of = n
			var next string
			if page, next, err = st.list(c.ctx, n.key, token); err == nil {
				token = next
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, it := range page {
			if !yield(object(of, it)) {
				return nil
			}
		}
		if token == "" {
			return nil
		}
	}
}

// ReadAll returns the content of a small object, of at most limit bytes.
func (c *Client) ReadAll(s string, limit int64) ([]byte, error) {
	r, err := c.Open(s)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", Redact(s), limit)
	}
	return data, err
}

// Write writes an object at once: others see the whole of it or what was there
// before.
func (c *Client) Write(s string, body io.ReadSeeker, size int64) error {
	if !Listable(s) && Is(s) {
		return fmt.Errorf("%w: %s: a web server takes no files: write to s3://, gs://, azblob:// or a file", ErrCannot, Redact(s))
	}
	return c.request(s, "write", func(st store, n name) error {
		if n.key == "" || strings.HasSuffix(n.key, "/") {
			return fmt.Errorf("%w: it names no object", ErrName)
		}
		if _, err := body.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return st.put(c.ctx, n.key, body, size)
	})
}

// WriteBytes writes a small object at once.
func (c *Client) WriteBytes(s string, data []byte) error {
	return c.Write(s, bytes.NewReader(data), int64(len(data)))
}

// Remove removes an object; that it is gone already is no error.
func (c *Client) Remove(s string) error {
	err := c.request(s, "remove", func(st store, n name) error { return st.remove(c.ctx, n.key) })
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// keyOf is what a store calls the object: web addresses are whole.
func keyOf(n name) string {
	if n.web != nil {
		return n.web.String()
	}
	return n.key
}

func object(n name, it item) Object {
	o := Object{Size: it.size, Version: it.version, Modified: it.modified}
	if n.web != nil {
		o.Name = Redact(n.web.String())
	} else {
		o.Name = n.scheme + "://" + n.bucket + "/" + it.key
	}
	return o
}
