package remote_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"strings"
	"testing"
	"time"

	"mixdown/ingest/remote"
	"mixdown/ingest/remote/remotetest"
)

var quick = remote.Options{Pause: time.Millisecond, MaxPause: 4 * time.Millisecond}

func noise(seed int64, n int) []byte {
	b := make([]byte, n)
	rand.New(rand.NewSource(seed)).Read(b)
	return b
}

func write(t *testing.T, c *remote.Client, name string, data []byte) {
	t.Helper()
	if err := c.WriteBytes(name, data); err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, c *remote.Client, prefix string) []string {
	t.Helper()
	var names []string
	if err := c.List(prefix, func(o remote.Object) bool { names = append(names, o.Name); return true }); err != nil {
		t.Fatal(err)
	}
	return names
}

func TestS3(t *testing.T) {
	s := remotetest.StartS3(t)
	s.AddBucket(t, "bucket")
	s.Root.Use(t, s.Address)
	c := remote.New(t.Context(), quick)
	data := noise(1, 300_000)
	odd := "s3://bucket/run 7/a+b%20c/rank[3]é.json"
	for _, name := range []string{"s3://bucket/run7/rank0.json", odd} {
		write(t, c, name, data)
		got, err := c.ReadAll(name, 1<<20)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		o, err := c.Stat(name)
		if err != nil || o.Name != name || o.Size != int64(len(data)) || o.Version == "" || time.Since(o.Modified) > time.Hour {
			t.Errorf("%+v, %v", o, err)
		}
	}
	if got := list(t, c, "s3://bucket/run "); len(got) != 1 || got[0] != odd {
		t.Errorf("listed %q", got)
	}
	r, err := c.OpenAt(odd, 299_990)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if tail, err := io.ReadAll(r); err != nil || !bytes.Equal(tail, data[299_990:]) {
		t.Errorf("%d bytes, %v", len(tail), err)
	}
	if _, err := c.ReadAll(odd, 299_999); err == nil {
		t.Error("more than the limit was read")
	}
	if err := c.Remove(odd); err != nil {
		t.Error(err)
	}
	if err := c.Remove(odd); err != nil {
		t.Errorf("removed twice: %v", err)
	}
	if _, err := c.Open(odd); !errors.Is(err, remote.ErrNotFound) {
		t.Errorf("after it was removed: %v", err)
	}
}

// A listing of three pages, with a 503 for every second request.
func TestS3TwoThousandObjects(t *testing.T) {
	s := remotetest.StartS3(t)
	for i := range 2000 {
		s.Put(t, "bucket", fmt.Sprintf("run/rank%d.json", i), []byte("{}"))
	}
	n := 0
	p := remotetest.NewProxy(t, s.Address, func(*http.Request) remotetest.Fault {
		if n++; n%2 == 1 {
			return remotetest.Fault{Status: 503}
		}
		return remotetest.Fault{}
	})
	s.Root.Use(t, p.Address)
	names := list(t, remote.New(t.Context(), quick), "s3://bucket/run/")
	seen := map[string]bool{}
	for i, name := range names {
		if seen[name] || i > 0 && names[i-1] >= name {
			t.Fatalf("%s after %s", name, names[max(i-1, 0)])
		}
		seen[name] = true
	}
	if len(names) != 2000 || !seen["s3://bucket/run/rank1999.json"] {
		t.Errorf("%d objects", len(names))
	}
}

func TestS3Faults(t *testing.T) {
	s := remotetest.StartS3(t)
	s.AddBucket(t, "bucket")
	s.Root.Use(t, s.Address)
	const name = "s3://bucket/rank0.json"
	data, other := noise(2, 2_000_000), noise(3, 2_000_000)
	direct := remote.New(t.Context(), quick)
	write(t, direct, name, data)

	random := rand.New(rand.NewSource(4))
	n := 0
	p := remotetest.NewProxy(t, s.Address, func(r *http.Request) remotetest.Fault {
		switch n++; {
		case n%5 == 0:
			return remotetest.Fault{Status: 503}
		case n < 40:
			return remotetest.Fault{DropAfter: 1 + random.Int63n(100_000)}
		}
		return remotetest.Fault{}
	})
	s.Root.Use(t, p.Address)
	got, err := remote.New(t.Context(), quick).ReadAll(name, 1<<30)
	if err != nil || !bytes.Equal(got, data) || n < 20 {
		t.Errorf("%d bytes after %d requests, %v", len(got), n, err)
	}

	// Replaced after the first connection dropped.
	n = 0
	p.Decide(func(r *http.Request) remotetest.Fault {
		if n++; n == 1 {
			return remotetest.Fault{DropAfter: 500_000}
		}
		return remotetest.Fault{Hook: func() { write(t, direct, name, other) }}
	})
	got, err = remote.New(t.Context(), quick).ReadAll(name, 1<<30)
	if !errors.Is(err, remote.ErrChanged) || !bytes.Equal(got, data[:len(got)]) {
		t.Errorf("%d bytes, %v", len(got), err)
	}

	// Down for good.
	p.Decide(func(*http.Request) remotetest.Fault { return remotetest.Fault{Status: 503} })
	before := p.Requests()
	_, err = remote.New(t.Context(), quick).Open(name)
	if !errors.Is(err, remote.ErrUnavailable) || p.Requests()-before != 7 {
		t.Errorf("%v after %d requests", err, p.Requests()-before)
	}
}

// Each thing that can be wrong with a name or account is one line that says what
// to do, without the secret.
func TestS3Refusals(t *testing.T) {
	s := remotetest.StartS3(t)
	s.AddBucket(t, "bucket")
	nobody := remotetest.Account{Access: "nobody", Secret: "planted-user-secret"}
	s.AddUser(t, nobody)
	s.Root.Use(t, s.Address)
	write(t, remote.New(t.Context(), quick), "s3://bucket/a.json", []byte("{}"))
	open := func(name string) func(*remote.Client) error {
		return func(c *remote.Client) error { _, err := c.Open(name); return err }
	}
	listing := func(name string) func(*remote.Client) error {
		return func(c *remote.Client) error { return c.List(name, func(remote.Object) bool { return true }) }
	}
	for name, tt := range map[string]struct {
		account remotetest.Account
		do      func(*remote.Client) error
		want    error
		says    string
	}{
		"no object":       {s.Root, open("s3://bucket/none.json"), remote.ErrNotFound, "no such object: s3://bucket/none.json"},
		"no bucket":       {s.Root, listing("s3://nowhere/x"), remote.ErrNotFound, "no such bucket: s3://nowhere"},
		"unknown key":     {remotetest.Account{Access: "stranger", Secret: "planted-secret"}, open("s3://bucket/a.json"), remote.ErrCredentials, "AWS_ACCESS_KEY_ID"},
		"wrong secret":    {remotetest.Account{Access: nobody.Access, Secret: "planted-secret"}, open("s3://bucket/a.json"), remote.ErrCredentials, "AWS_ACCESS_KEY_ID"},
		"may not read":    {nobody, open("s3://bucket/a.json"), remote.ErrDenied, "s3:GetObject on s3://bucket"},
		"may not list":    {nobody, listing("s3://bucket/a"), remote.ErrDenied, "s3:ListBucket on s3://bucket"},
		"may not write":   {nobody, func(c *remote.Client) error { return c.WriteBytes("s3://bucket/b", []byte("x")) }, remote.ErrDenied, "s3:PutObject on s3://bucket"},
		"no credentials":  {remotetest.Account{}, open("s3://bucket/a.json"), remote.ErrCredentials, "AWS_PROFILE"},
		"written nowhere": {s.Root, func(c *remote.Client) error { return c.WriteBytes("s3://bucket/", nil) }, remote.ErrName, "names no object"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.account.Use(t, s.Address)
			err := tt.do(remote.New(t.Context(), quick))
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("%v", err)
			}
			if text := err.Error(); strings.Contains(text, "planted") || strings.Contains(text, "\n") {
				t.Errorf("%s", text)
			}
		})
	}
}
