package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// quick are options that lose no time.
var quick = Options{Pause: time.Millisecond, MaxPause: 2 * time.Millisecond}

// serve answers with handle.
func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s.URL + "/rank0.json"
}

func bytesOf(n int) []byte {
	b := make([]byte, n)
	rand.New(rand.NewSource(int64(n))).Read(b)
	return b
}

func readAll(t *testing.T, address string, opts Options) ([]byte, error) {
	t.Helper()
	r, err := New(t.Context(), opts).Open(address)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// dropping serves data with http.ServeContent, dropping the connection after at
// most some bytes of each answer.
func dropping(data func() []byte, tag func() string, some int, count *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		if tag() != "" {
			w.Header().Set("ETag", tag())
		}
		http.ServeContent(&dropped{ResponseWriter: w, left: some}, r, "", time.Time{}, bytes.NewReader(data()))
	}
}

type dropped struct {
	http.ResponseWriter
	left int
}

func (d *dropped) Write(p []byte) (int, error) {
	if len(p) <= d.left {
		d.left -= len(p)
		return d.ResponseWriter.Write(p)
	}
	_, _ = d.ResponseWriter.Write(p[:d.left])
	_ = http.NewResponseController(d.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

func always[T any](v T) func() T { return func() T { return v } }

func TestDroppedConnections(t *testing.T) {
	data := bytesOf(1_000_000)
	var count atomic.Int64
	got, err := readAll(t, serve(t, dropping(always(data), always(`"v1"`), 90_001, &count)), quick)
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes of %d, %v", len(got), len(data), err)
	}
	if n := count.Load(); n != 12 { // 1,000,000 / 90,001
		t.Errorf("%d requests", n)
	}
}

// A server that knows no ranges begins again: what was read before passes by.
func TestNoRanges(t *testing.T) {
	data := bytesOf(300_000)
	var count atomic.Int64
	got, err := readAll(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := count.Add(1)
		w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		some := min(int(n)*100_000, len(data))
		_, _ = w.Write(data[:some])
		_ = http.NewResponseController(w).Flush()
		if some < len(data) {
			panic(http.ErrAbortHandler)
		}
	}), quick)
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes of %d, %v", len(got), len(data), err)
	}
}

// An object that is replaced must not become a mixture of two.
func TestReplacedWhileRead(t *testing.T) {
	old, fresh := bytesOf(200_000), bytesOf(200_001)[:200_000]
	for name, tags := range map[string][2]string{"another tag": {`"v1"`, `"v2"`}, "same tag, other size": {`"v1"`, `"v1"`}} {
		var count atomic.Int64
		now := func() []byte {
			if count.Load() == 1 {
				return old
			}
			if tags[0] == tags[1] {
				return append(fresh, 'x')
			}
			return fresh
		}
		tag := func() string { return tags[min(count.Load()-1, 1)] }
		got, err := readAll(t, serve(t, dropping(now, tag, 50_000, &count)), quick)
		if !errors.Is(err, ErrChanged) || !bytes.Equal(got, old[:len(got)]) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

// Without a version, nothing says that the rest is of the same object.
func TestNoVersion(t *testing.T) {
	var count atomic.Int64
	_, err := readAll(t, serve(t, dropping(always(bytesOf(100_000)), always(""), 40_000, &count)), quick)
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "byte 40000") {
		t.Error(err)
	}
}

func TestLengthUnknown(t *testing.T) {
	data := bytesOf(100_000)
	got, err := readAll(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		for i := range 10 {
			_, _ = w.Write(data[i*10_000 : (i+1)*10_000])
			_ = http.NewResponseController(w).Flush() // chunked
		}
	}), quick)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// Servers that compress on the way are asked not to; objects that are compressed
// come as they are stored.
func TestStoredBytes(t *testing.T) {
	got, err := readAll(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("Accept-Encoding %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "\x1f\x8bnot unpacked")
	}), quick)
	if err != nil || string(got) != "\x1f\x8bnot unpacked" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestTriedAgain(t *testing.T) {
	for _, status := range []int{429, 500, 502, 503, 504} {
		var count atomic.Int64
		got, err := readAll(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
			if count.Add(1) < 4 {
				w.WriteHeader(status)
				return
			}
			_, _ = io.WriteString(w, "{}")
		}), quick)
		if err != nil || string(got) != "{}" || count.Load() != 4 {
			t.Errorf("%d: %q, %v after %d requests", status, got, err, count.Load())
		}
	}
}

// Each way to fail has its error, at once or after as many attempts as allowed;
// none tells the secret of the address.
func TestFailures(t *testing.T) {
	for status, tt := range map[int]struct {
		want     error
		requests int64
	}{
		400: {ErrDenied, 1}, 401: {ErrCredentials, 1}, 403: {ErrDenied, 1}, 404: {ErrNotFound, 1}, 410: {ErrNotFound, 1},
		503: {ErrUnavailable, 3},
	} {
		var count atomic.Int64
		address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			count.Add(1)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "planted")
		})
		opts := quick
		opts.Attempts = 3
		address = strings.Replace(address, "http://", "http://user:planted@", 1) + "?sig=planted"
		_, err := readAll(t, address, opts)
		if !errors.Is(err, tt.want) || count.Load() != tt.requests {
			t.Errorf("%d: %v after %d requests", status, err, count.Load())
		}
		if text := err.Error(); strings.Contains(text, "planted") || strings.Contains(text, "\n") || !strings.Contains(text, ":") {
			t.Errorf("%d: %s", status, text)
		}
	}
	for _, address := range []string{"http://127.0.0.1:1/x?planted", "https://u:planted@nothing.invalid/x?planted", "https://u:planted@[::1/x"} {
		opts := quick
		opts.Attempts = 2
		_, err := readAll(t, address, opts)
		if err == nil || strings.Contains(err.Error(), "planted") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestUserAndPassword(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if user, word, _ := r.BasicAuth(); user != "me" || word != "p@ss" {
			w.WriteHeader(401)
		}
	})
	if _, err := readAll(t, strings.Replace(address, "http://", "http://me:p%40ss@", 1), quick); err != nil {
		t.Error(err)
	}
}

// A server that falls silent is left and asked for the rest.
func TestStall(t *testing.T) {
	data := bytesOf(50_000)
	var once sync.Once
	release := make(chan struct{})
	defer close(release)
	opts := quick
	opts.Stall = 100 * time.Millisecond
	got, err := readAll(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v"`)
		silent := false
		once.Do(func() { silent = true })
		if silent {
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
			_, _ = w.Write(data[:20_000])
			_ = http.NewResponseController(w).Flush()
			<-release
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}), opts)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestCanceled(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		stop()
		w.WriteHeader(503)
	})
	_, err := New(ctx, Options{Pause: time.Hour, MaxPause: time.Hour}).Open(address)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestWebIsOnlyRead(t *testing.T) {
	c := New(t.Context(), quick)
	if err := c.WriteBytes("https://h/x?planted", nil); !errors.Is(err, ErrCannot) || strings.Contains(err.Error(), "planted") {
		t.Error(err)
	}
	if err := c.List("https://h/x?planted", nil); !errors.Is(err, ErrCannot) || strings.Contains(err.Error(), "planted") {
		t.Error(err)
	}
}
