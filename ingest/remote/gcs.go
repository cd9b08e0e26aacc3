package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

// gcs is a bucket of Google Cloud Storage, by its JSON interface
// (https://cloud.google.com/storage/docs/json_api/v1). Versions are generations.
type gcs struct {
	client *http.Client
	base   string // "https://storage.googleapis.com"
	bucket string
}

// emulatorHost is what Google's libraries take an emulator's address from.
const emulatorHost = "STORAGE_EMULATOR_HOST"

func newGCS(ctx context.Context, bucket string) (*gcs, error) {
	client := &http.Client{Transport: transport()}
	if host := os.Getenv(emulatorHost); host != "" {
		if !strings.Contains(host, "://") {
			host = "http://" + host
		}
		return &gcs{client: client, base: strings.TrimRight(host, "/"), bucket: bucket}, nil
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, client)
	found, err := google.FindDefaultCredentials(ctx, "https://www.googleapis.com/auth/devstorage.read_write")
	if err != nil {
		return nil, &fault{kind: noCredentials}
	}
	client = &http.Client{Transport: &oauth2.Transport{Source: found.TokenSource, Base: client.Transport}}
	return &gcs{client: client, base: "https://storage.googleapis.com", bucket: bucket}, nil
}

// resource is what the interface says of an object: numbers are text.
type resource struct {
	Name       string    `json:"name"`
	Size       string    `json:"size"`
	Generation string    `json:"generation"`
	Updated    time.Time `json:"updated"`
}

func (r resource) item() item {
	size, err := strconv.ParseInt(r.Size, 10, 64)
	if err != nil {
		size = -1
	}
	return item{key: r.Name, size: size, version: r.Generation, modified: r.Updated}
}

// do makes a request; the body of an answer that is no failure is the caller's.
func (g *gcs) do(ctx context.Context, method, path string, query url.Values, header http.Header, body io.Reader, size int64) (*http.Response, error) {
	address := g.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, &fault{code: "the name can't be used"}
	}
	if body != nil {
		req.ContentLength = size
	}
	for k, v := range header {
		req.Header[k] = v
	}
	resp, err := g.client.Do(req)
	if err != nil {
		var refused *oauth2.RetrieveError
		if errors.As(err, &refused) {
			return nil, &fault{kind: badCredentials, code: "no token was given for them"}
		}
		return nil, transportFault(ctx, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	f := ofStatus(resp.StatusCode, "")
	f.after = retryAfter(resp.Header)
	if f.kind == notFound {
		// Only the text tells a missing bucket from a missing object.
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		if strings.Contains(string(text), "bucket does not exist") {
			f.kind = noBucket
		}
	}
	return nil, f
}

func (g *gcs) objects() string { return "/storage/v1/b/" + url.PathEscape(g.bucket) + "/o" }

func (g *gcs) objectPath(key string) string { return g.objects() + "/" + url.PathEscape(key) }

// maxAnswer bounds a page of a listing: 1,000 names of at most 1 KiB and what
// is said of each.
const maxAnswer = 64 << 20

func (g *gcs) list(ctx context.Context, prefix, token string) ([]item, string, error) {
	query := url.Values{"prefix": {prefix}, "fields": {"nextPageToken,items(name,size,generation,updated)"}}
	if token != "" {
		query.Set("pageToken", token)
	}
	resp, err := g.do(ctx, http.MethodGet, g.objects(), query, nil, nil, 0)
	if err != nil {
		if f, ok := errors.AsType[*fault](err); ok && f.kind == notFound {
			f.kind = noBucket // what else could a listing miss
		}
		return nil, "", err
	}
	defer resp.Body.Close()
	var answer struct {
		Items []resource `json:"items"`
		Next  string     `json:"nextPageToken"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&answer); err != nil {
		return nil, "", ofTransport(err)
	}
	page := make([]item, len(answer.Items))
	for i, r := range answer.Items {
		page[i] = r.item()
	}
	return page, answer.Next, nil
}

func (g *gcs) stat(ctx context.Context, key string) (item, error) {
	resp, err := g.do(ctx, http.MethodGet, g.objectPath(key), nil, nil, nil, 0)
	if err != nil {
		return item{}, err
	}
	defer resp.Body.Close()
	var r resource
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&r); err != nil {
		return item{}, ofTransport(err)
	}
	return r.item(), nil
}

// open asks for the bytes as stored: objects with Content-Encoding gzip would be
// sent unpacked otherwise, without ranges.
func (g *gcs) open(ctx context.Context, key, version string, offset int64) (io.ReadCloser, int64, item, error) {
	query := url.Values{"alt": {"media"}}
	if version != "" {
		query.Set("ifGenerationMatch", version)
	}
	header := http.Header{"Accept-Encoding": {"gzip"}}
	if offset > 0 {
		header.Set("Range", "bytes="+strconv.FormatInt(offset, 10)+"-")
	}
	resp, err := g.do(ctx, http.MethodGet, g.objectPath(key), query, header, nil, 0)
	if err != nil {
		return nil, 0, item{}, err
	}
	it, at, f := answer(resp, offset)
	if f != nil {
		resp.Body.Close()
		return nil, 0, item{}, f
	}
	it.key, it.version = key, resp.Header.Get("X-Goog-Generation")
	return resp.Body, at, it, nil
}

func (g *gcs) put(ctx context.Context, key string, body io.ReadSeeker, size int64) error {
	query := url.Values{"uploadType": {"media"}, "name": {key}}
	header := http.Header{"Content-Type": {"application/octet-stream"}}
	resp, err := g.do(ctx, http.MethodPost, "/upload"+g.objects(), query, header, io.NopCloser(body), size)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

func (g *gcs) remove(ctx context.Context, key string) error {
	resp, err := g.do(ctx, http.MethodDelete, g.objectPath(key), nil, nil, nil, 0)
	if err == nil {
		resp.Body.Close()
	}
	return err
}
