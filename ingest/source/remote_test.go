package source

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mixdown/ingest/remote"
	"mixdown/ingest/remote/remotetest"
)

// The same objects are found in a bucket as in folders, and read the same.
func TestFindObjects(t *testing.T) {
	s := remotetest.StartS3(t)
	for key, content := range map[string]string{
		"run/rank1.json": trace, "run/rank0.json.gz": gz(trace), "run/sub/w.pt.trace.json": trace, "run/by_content": gz(trace),
		"run/notes.txt": "not a trace", "run/.hidden.json": trace, "run/.git/x.json": trace, "run/events/rank=0/part-0.parquet": trace,
		"run7/rank0.json": trace, "empty/readme.md": "nothing", "odd/rank[3].json": trace,
		"more/run.tgz": gz(tarOf("rank2.json", trace)), "more/run.zip": zipOf("rank3.json", trace, "d/rank4.json.gz", gz(trace), "rank5.txt", trace),
		"noend/rank0.json": trace,
	} {
		s.Put(t, "traces", key, []byte(content))
	}
	s.Root.Use(t, s.Address)
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"object", []string{"s3://traces/run/rank1.json"}, "run/rank1.json"},
		{"any name if asked for", []string{"s3://traces/run/notes.txt"}, "run/notes.txt"},
		{"prefix", []string{"s3://traces/run"}, "run/by_content run/rank0.json.gz run/rank1.json run/sub/w.pt.trace.json"},
		{"prefix with slash", []string{"s3://traces/run/sub/"}, "run/sub/w.pt.trace.json"},
		{"pattern", []string{"s3://traces/run/rank*"}, "run/rank0.json.gz run/rank1.json"},
		{"pattern of folders", []string{"s3://traces/[or]*d*"}, "odd/rank[3].json"},
		{"pattern inside", []string{"s3://traces/*/rank0.json"}, "noend/rank0.json run7/rank0.json"},
		{"name with brackets", []string{"s3://traces/odd/rank[3].json"}, "odd/rank[3].json"},
		{"each once", []string{"s3://traces/run/sub", "s3://traces/run/sub/w.pt.trace.json", "s3://traces/run/sub/*"}, "run/sub/w.pt.trace.json"},
		{"archives", []string{"s3://traces/more"}, "more/run.tgz!rank2.json more/run.zip!d/rank4.json.gz more/run.zip!rank3.json"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found, err := Find(tt.args, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Fields(strings.ReplaceAll(names(found), "s3://traces/", ""))
			if tt.name == "archives" && len(got) == 3 { // in the order of the archive
				got[1], got[2] = got[2], got[1]
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("found %s, want %s", got, tt.want)
			}
			for _, f := range found {
				if strings.HasSuffix(f.Name, ".txt") {
					continue
				}
				if s, err := read(f); s != trace || err != nil {
					t.Errorf("%s: %q, %v", f.Name, s, err)
				}
				if f.Size <= 0 || f.Modified == 0 || f.Version == "" {
					t.Errorf("%s: %d bytes, modified %d, version %q", f.Name, f.Size, f.Modified, f.Version)
				}
			}
		})
	}
	for arg, tt := range map[string]struct {
		opts Options
		want error
		says string
	}{
		"s3://traces/nothing": {Options{}, ErrNoTraces, "'s3://traces/nothing*'"},
		"s3://traces/empty":   {Options{}, ErrNoTraces, "expected *.json"},
		"s3://traces/ru*x":    {Options{}, ErrNoTraces, "no object matches"},
		"s3://traces/run/[":   {Options{}, nil, "bad pattern"},
		"s3://nowhere/x":      {Options{}, remote.ErrNotFound, "no such bucket"},
		"s3://traces/run/ra*": {Options{MaxFiles: 1}, ErrLimit, "more than 1 files"},
		"https:///x?sig=":     {Options{}, remote.ErrName, "https://HOST/PATH"},
	} {
		if _, err := Find([]string{arg}, tt.opts); err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

// Addresses are shown without what may be their key, each with a name of its own.
func TestFindAddresses(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v"`)
		switch {
		case strings.HasSuffix(r.URL.Path, ".zip"):
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(zipOf("rank3.json", trace)))
		case r.URL.Query().Get("file") != "":
			_, _ = w.Write([]byte(gz(trace + strings.Repeat(" ", len(r.URL.Query().Get("file"))))))
		default:
			_, _ = w.Write([]byte(trace))
		}
	}))
	defer server.Close()
	a := server.URL
	found, err := Find([]string{a + "/rank0.json?sig=planted", a + "/get?file=planted", a + "/get?file=planted2", a + "/run.zip?sig=planted", a + "/rank0.json?sig=planted"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll("A/rank0.json A/get A/get#2 A/run.zip!rank3.json", "A", a)
	if names(found) != want {
		t.Errorf("found %s, want %s", names(found), want)
	}
	for i, f := range found {
		if s, err := read(f); strings.TrimSpace(s) != trace || err != nil || i == 2 && len(s) != len(trace)+8 {
			t.Errorf("%s: %q, %v", f.Name, s, err)
		}
	}
}
