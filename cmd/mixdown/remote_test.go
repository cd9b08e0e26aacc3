package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/root"
	"mixdown/ingest/remote/remotetest"
)

// execute runs a command line in this process.
func execute(t *testing.T, args ...string) (code cli.ExitCode, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = root.Execute(t.Context(), &cli.Streams{In: strings.NewReader(""), Out: &out, Err: &err}, append([]string{"--quiet"}, args...))
	return code, out.String(), err.String()
}

// upload puts the traces of a folder of testdata into a bucket.
func upload(t *testing.T, s *remotetest.S3, bucket, prefix, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s.Put(t, bucket, prefix+filepath.Base(name), data)
	}
	return files
}

// analysisOf is the JSON of an analysis without what names the files.
func analysisOf(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := execute(t, append([]string{"analyze", "--format", "json"}, args...)...)
	if code != cli.Done {
		t.Fatalf("%v: exit %d: %s", args, code, stderr)
	}
	var v map[string]any
	if err := json.Unmarshal([]byte(stdout), &v); err != nil {
		t.Fatal(err)
	}
	for _, r := range v["ranks"].([]any) {
		delete(r.(map[string]any), "source")
	}
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Traces in a bucket, with every third connection dropped or refused, give the
// analysis of the same traces on disk.
func TestAnalyzeFromStore(t *testing.T) {
	s := remotetest.StartS3(t)
	files := upload(t, s, "traces", "run7/", "dp_moe_4rank/rank*.gz")
	n := 0
	p := remotetest.NewProxy(t, s.Address, func(r *http.Request) remotetest.Fault {
		switch n++; n % 3 {
		case 1:
			return remotetest.Fault{Status: 503}
		case 2:
			if r.Method == http.MethodGet && !strings.Contains(r.URL.RawQuery, "list-type") {
				return remotetest.Fault{DropAfter: 30_000}
			}
		}
		return remotetest.Fault{}
	})
	s.Root.Use(t, p.Address)
	want := analysisOf(t, files...)
	for _, input := range []string{"s3://traces/run7", "s3://traces/run7/rank*.gz"} {
		if got := analysisOf(t, input); got != want {
			t.Errorf("%s differs from the files:\n%s", input, diffOf(want, got))
		}
	}
	if n < 10 {
		t.Errorf("%d requests", n)
	}
}

// Everything that can be wrong with remote input ends with code 3 and one line,
// and the planted secrets are in no output and no file.
func TestRemoteFailures(t *testing.T) {
	s := remotetest.StartS3(t)
	upload(t, s, "traces", "run7/", "dp_moe_4rank/rank0*.gz")
	s.Put(t, "traces", "empty/readme.txt", []byte("nothing"))
	nobody := remotetest.Account{Access: "nobody", Secret: "planted-user"}
	s.AddUser(t, nobody)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/expired" {
			w.WriteHeader(403)
			return
		}
		http.NotFound(w, r)
	}))
	defer web.Close()
	for name, tt := range map[string]struct {
		account remotetest.Account
		input   string
		says    string
	}{
		"expired address":      {s.Root, web.URL + "/expired?X-Amz-Signature=planted", "make a new one"},
		"wrong address":        {s.Root, strings.Replace(web.URL, "//", "//me:planted@", 1) + "/none.json?planted", "check the address"},
		"missing credentials":  {remotetest.Account{}, "s3://traces/run7", "AWS_PROFILE"},
		"unknown credentials":  {remotetest.Account{Access: "stranger", Secret: "planted"}, "s3://traces/run7", "AWS_ACCESS_KEY_ID"},
		"empty prefix":         {s.Root, "s3://traces/empty/", "expected *.json"},
		"no prefix":            {s.Root, "s3://traces/none", "check the name"},
		"no permission":        {nobody, "s3://traces/run7/", "s3:ListBucket"},
		"no permission object": {nobody, "s3://traces/run7/rank0.json.gz", "s3:GetObject"},
		"no bucket":            {s.Root, "s3://nowhere/run7", "no such bucket"},
		"no name":              {s.Root, "s3://", "s3://BUCKET/KEY"},
		"web folder":           {s.Root, web.URL + "/run7/?planted", "check the address"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.account.Use(t, s.Address)
			dir := filepath.Join(t.TempDir(), "set")
			for _, args := range [][]string{{"analyze", tt.input}, {"ingest", tt.input, "-o", dir}, {"analyze", tt.input, "--html", dir + ".html"}} {
				code, stdout, stderr := execute(t, args...)
				if code != cli.Unreadable || !strings.Contains(stderr, tt.says) || strings.Count(stderr, "\n") != 1 || stdout != "" {
					t.Errorf("%v: exit %d: %s", args, code, stderr)
				}
				if strings.Contains(stdout+stderr, "planted") {
					t.Errorf("a secret: %s", stderr)
				}
			}
		})
	}
}

// A signed address works, and its secret is in nothing that is written.
func TestNoSecretInFiles(t *testing.T) {
	files, err := filepath.Glob("../../testdata/dp_moe_4rank/rank*.gz")
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, word, _ := r.BasicAuth(); r.URL.Query().Get("sig") != "planted" || word != "planted" {
			w.WriteHeader(403)
			return
		}
		http.ServeFile(w, r, "../../testdata/dp_moe_4rank/"+filepath.Base(r.URL.Path))
	}))
	defer web.Close()
	var inputs []string
	for _, f := range files {
		inputs = append(inputs, strings.Replace(web.URL, "//", "//me:planted@", 1)+"/"+filepath.Base(f)+"?sig=planted")
	}
	dir := t.TempDir()
	out := ""
	for _, args := range [][]string{
		append([]string{"ingest", "-o", dir + "/set"}, inputs...),
		append([]string{"ingest", "-o", dir + "/set", "--format", "json"}, inputs...),
		append([]string{"analyze", "--format", "json", "--html", dir + "/a.html", "--markdown", dir + "/a.md", "--parquet", dir + "/tables",
			"--perfetto", dir + "/a.pftrace", "--chrome", dir + "/a.json"}, inputs...),
		append([]string{"inspect"}, inputs...),
		{"diff", inputs[0], inputs[1], "--html", dir + "/diff.html"},
		{"diff", inputs[0], inputs[1], "--format", "json"},
		append([]string{"plan", "-o", dir + "/plan.pb"}, inputs...),
		append([]string{"gate", "baseline", "save", "-o", dir + "/baseline.json"}, inputs...),
	} {
		code, stdout, stderr := execute(t, args...)
		if code != cli.Done {
			t.Errorf("%s: exit %d: %s", args[0], code, stderr)
		}
		out += stdout + stderr
	}
	if strings.Contains(out, "planted") {
		t.Error("the secret is in an output")
	}
	seen := 0
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		seen++
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte("planted")) || strings.Contains(path, "planted") {
			t.Errorf("the secret is in %s", path)
		}
		return err
	})
	if err != nil || seen < 40 {
		t.Errorf("%d files, %v", seen, err)
	}
}

// diffOf is the first line that differs.
func diffOf(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return w[i] + "\n" + g[i]
		}
	}
	return "one is longer"
}
