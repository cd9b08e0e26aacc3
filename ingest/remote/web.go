package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// web is all web servers. Its keys are whole addresses.
type web struct{ client *http.Client }

func (w *web) list(context.Context, string, string) ([]item, string, error) { return nil, "", errWeb }

func (w *web) put(context.Context, string, io.ReadSeeker, int64) error { return errWeb }

func (w *web) remove(context.Context, string) error { return errWeb }

var errWeb = errors.New("web servers are only read")

// stat asks by GET: an address that is signed for GET is not valid for HEAD.
func (w *web) stat(ctx context.Context, key string) (item, error) {
	body, _, it, err := w.open(ctx, key, "", 0)
	if err == nil {
		body.Close()
	}
	return it, err
}

// open compares no versions: its caller does.
func (w *web) open(ctx context.Context, key, _ string, offset int64) (io.ReadCloser, int64, item, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, key, nil)
	if err != nil {
		return nil, 0, item{}, &fault{code: "the address can't be used"}
	}
	req.Header.Set("Accept-Encoding", "identity")
	if offset > 0 {
		req.Header.Set("Range", "bytes="+strconv.FormatInt(offset, 10)+"-")
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, 0, item{}, transportFault(ctx, err)
	}
	it, at, f := answer(resp, offset)
	if f != nil {
		resp.Body.Close()
		if f.kind == other && resp.StatusCode == http.StatusBadRequest {
			f.kind = denied // how stores call a signed address that is damaged
		}
		return nil, 0, item{}, f
	}
	it.key = key
	it.version = resp.Header.Get("ETag")
	if it.version == "" {
		it.version = resp.Header.Get("Last-Modified")
	}
	return resp.Body, at, it, nil
}

// answer reads the head of an answer to a request for all from offset on.
func answer(resp *http.Response, offset int64) (it item, at int64, f *fault) {
	it.size = -1
	if t, err := http.ParseTime(resp.Header.Get("Last-Modified")); err == nil {
		it.modified = t
	}
	switch resp.StatusCode {
	case http.StatusOK:
		it.size = resp.ContentLength
		return it, 0, nil
	case http.StatusPartialContent:
		var size int64
		if at, size, f = contentRange(resp.Header.Get("Content-Range")); f != nil {
			return it, 0, f
		}
		if at > offset {
			return it, 0, &fault{code: "the server gives other bytes than it was asked for"}
		}
		it.size = size
		return it, at, nil
	}
	f = ofStatus(resp.StatusCode, "")
	f.after = retryAfter(resp.Header)
	return it, 0, f
}

// contentRange reads "bytes 5-9/10"; the size is -1 when it is "*".
func contentRange(s string) (at, size int64, f *fault) {
	bad := &fault{code: "the server's Content-Range makes no sense"}
	span, whole, ok := strings.Cut(strings.TrimPrefix(s, "bytes "), "/")
	first, _, dash := strings.Cut(span, "-")
	at, err := strconv.ParseInt(first, 10, 64)
	if !ok || !dash || err != nil || at < 0 {
		return 0, 0, bad
	}
	if whole == "*" {
		return at, -1, nil
	}
	size, err = strconv.ParseInt(whole, 10, 64)
	if err != nil || size < at {
		return 0, 0, bad
	}
	return at, size, nil
}

// retryAfter reads when a server wants to be asked again.
func retryAfter(h http.Header) time.Duration {
	if n, err := strconv.ParseInt(h.Get("Retry-After"), 10, 32); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	return 0
}

// transportFault keeps a cancellation what it is.
func transportFault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w", ctx.Err())
	}
	return ofTransport(err)
}
