package source

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const trace = `{"schemaVersion": 1, "traceEvents": [{"ph": "X", "ts": 1, "dur": 1}]}`

func gz(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, s)
	w.Close()
	return b.String()
}

func zst(s string) string {
	var b bytes.Buffer
	w, _ := zstd.NewWriter(&b)
	io.WriteString(w, s)
	w.Close()
	return b.String()
}

func tarOf(members ...string) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		w.WriteHeader(&tar.Header{Name: members[i], Size: int64(len(members[i+1])), Mode: 0o644, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR})
		io.WriteString(w, members[i+1])
	}
	w.Close()
	return b.String()
}

func zipOf(members ...string) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		f, _ := w.Create(members[i])
		io.WriteString(f, members[i+1])
	}
	w.Close()
	return b.String()
}

// files makes a folder with the given names and contents and enters it.
func files(t *testing.T, content map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, s := range content {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

func names(files []File) string {
	var s []string
	for _, f := range files {
		s = append(s, f.Name)
	}
	return strings.Join(s, " ")
}

func read(f File) (string, error) {
	r, err := f.Open()
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	return string(b), errors.Join(err, r.Close())
}

func TestFind(t *testing.T) {
	files(t, map[string]string{
		"run/rank1.json":           trace,
		"run/rank0.json.gz":        gz(trace),
		"run/sub/w.pt.trace.json":  trace,
		"run/sub/x.trace":          trace,
		"run/sub/y.JSON.ZST":       zst(trace),
		"run/by_content":           gz(trace),
		"run/notes.txt":            "not a trace",
		"run/script.py":            "[1, 2]",
		"run/.hidden.json":         trace,
		"run/.git/x.json":          trace,
		"empty/readme.md":          "nothing",
		"odd/rank[3].json":         trace,
		"other/a.json":             trace,
		"more/run.tar":             tarOf("d/rank0.json", trace, "d/readme", "x", "../../rank1.json.gz", gz(trace)),
		"more/run.tgz":             gz(tarOf("rank2.json", trace)),
		"more/run.zip":             zipOf("rank3.json", trace, "/abs/../rank4.json.gz", gz(trace), "rank5.txt", trace),
		"more/none.zip":            zipOf("a.txt", "a"),
		"more/unrelated.json.orig": "x",
	})
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"file", []string{"run/rank1.json"}, "run/rank1.json"},
		{"folder", []string{"run"}, "run/by_content run/rank0.json.gz run/rank1.json run/sub/w.pt.trace.json run/sub/x.trace run/sub/y.JSON.ZST"},
		{"folder with slash", []string{"run/sub/"}, "run/sub/w.pt.trace.json run/sub/x.trace run/sub/y.JSON.ZST"},
		{"each once", []string{"run/sub", "./run/sub/x.trace", "run/sub/*"}, "run/sub/w.pt.trace.json run/sub/x.trace run/sub/y.JSON.ZST"},
		{"order of arguments", []string{"run/rank1.json", "other"}, "run/rank1.json other/a.json"},
		{"glob", []string{"run/rank*"}, "run/rank0.json.gz run/rank1.json"},
		{"glob of folders", []string{"o*"}, "odd/rank[3].json other/a.json"},
		{"name with brackets", []string{"odd/rank[3].json"}, "odd/rank[3].json"},
		{"any name if asked for", []string{"run/notes.txt"}, "run/notes.txt"},
		{"tar", []string{"more/run.tar"}, "more/run.tar!d/rank0.json more/run.tar!rank1.json.gz"},
		{"compressed tar", []string{"more/run.tgz"}, "more/run.tgz!rank2.json"},
		{"zip", []string{"more/run.zip"}, "more/run.zip!rank3.json more/run.zip!rank4.json.gz"},
		{"folder with archives", []string{"more"}, "more/run.tar!d/rank0.json more/run.tar!rank1.json.gz more/run.tgz!rank2.json more/run.zip!rank3.json more/run.zip!rank4.json.gz"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found, err := Find(tt.args, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := names(found); got != tt.want {
				t.Errorf("found %s, want %s", got, tt.want)
			}
			for _, f := range found {
				if f.Name == "run/notes.txt" {
					continue
				}
				if s, err := read(f); s != trace || err != nil {
					t.Errorf("%s: %q, %v", f.Name, s, err)
				}
			}
		})
	}
}

func TestExplicit(t *testing.T) {
	files(t, map[string]string{"d/a.json": trace, "b.json": trace})
	found, err := Find([]string{"b.json", "d"}, Options{})
	if err != nil || len(found) != 2 || !found[0].Explicit || found[1].Explicit {
		t.Errorf("%+v, %v", found, err)
	}
	if found[0].Size != int64(len(trace)) {
		t.Errorf("size %d", found[0].Size)
	}
}

func TestFindErrors(t *testing.T) {
	files(t, map[string]string{
		"empty/readme.md": "nothing", "a.json": trace, "b.json": trace, "none.zip": zipOf("a.txt", "a"), "void.json": "",
		"bad.zip": "PK\x03\x04 and then nothing",
	})
	tests := []struct {
		args []string
		opts Options
		want error
		says string
	}{
		{[]string{"missing.json"}, Options{}, fs.ErrNotExist, "no such file or folder: missing.json"},
		{[]string{"miss*.json"}, Options{}, fs.ErrNotExist, "no file matches miss*.json"},
		{[]string{"empty"}, Options{}, ErrNoTraces, "no trace files in empty: expected *.json or *.json.gz as written by torch.profiler"},
		{[]string{"emp*"}, Options{}, ErrNoTraces, "in emp*"},
		{[]string{"none.zip"}, Options{}, ErrNoTraces, "in none.zip"},
		{nil, Options{}, ErrNoTraces, "no input"},
		{[]string{"a.json", "b.json"}, Options{MaxFiles: 1}, ErrLimit, "more than 1 file"},
		{[]string{"-"}, Options{}, nil, "standard input"},
		{[]string{"x["}, Options{}, filepath.ErrBadPattern, "x["},
		{[]string{"bad.zip"}, Options{}, zip.ErrFormat, "bad.zip"},
		{[]string{"x1", "x2"}, Options{}, fs.ErrNotExist, "x2"},
	}
	for _, tt := range tests {
		found, err := Find(tt.args, tt.opts)
		if err == nil || found != nil {
			t.Errorf("%v: %v, %v", tt.args, found, err)
			continue
		}
		if tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v: error %v", tt.args, err)
		}
	}
	found, err := Find([]string{"void.json"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := found[0].Open(); !errors.Is(err, ErrEmpty) || !strings.Contains(err.Error(), "void.json") {
		t.Errorf("empty file: %v", err)
	}
}

func TestLinks(t *testing.T) {
	files(t, map[string]string{"real/a.json": trace, "else/b.json": trace})
	for from, to := range map[string]string{"link": "real", "real/loop": ".", "real/b.json": "../else/b.json"} {
		if err := os.Symlink(to, from); err != nil {
			t.Skip(err)
		}
	}
	found, err := Find([]string{"link"}, Options{})
	if err != nil || names(found) != "link/a.json link/b.json" {
		t.Errorf("%s, %v", names(found), err)
	}
}

func TestStdin(t *testing.T) {
	found, err := Find([]string{"-", "-"}, Options{Stdin: strings.NewReader(gz(trace))})
	if err != nil || names(found) != "-" {
		t.Fatalf("%v, %v", found, err)
	}
	if s, err := read(found[0]); s != trace || err != nil {
		t.Errorf("%q, %v", s, err)
	}
	if _, err := found[0].Open(); err == nil {
		t.Error("standard input was opened twice")
	}
}

func TestCutTar(t *testing.T) {
	whole := tarOf("rank0.json", trace, "rank1.json", strings.Repeat("x", 5000))
	files(t, map[string]string{"cut.tar": whole[:3000], "cut.tgz": gz(whole)[:120]})
	found, err := Find([]string{"cut.tar"}, Options{})
	if err != nil || names(found) != "cut.tar!rank0.json cut.tar!rank1.json" {
		t.Fatalf("%s, %v", names(found), err)
	}
	if s, err := read(found[0]); s != trace || err != nil {
		t.Errorf("%q, %v", s, err)
	}
	if s, err := read(found[1]); len(s) == 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d bytes, %v", len(s), err)
	}
}

// TestDamagedArchiveInFolder must not keep the good files from being read.
func TestDamagedArchiveInFolder(t *testing.T) {
	files(t, map[string]string{"run/bad.zip": "PK\x03\x04 and then nothing", "run/rank0.json": trace})
	found, err := Find([]string{"run"}, Options{})
	if err != nil || names(found) != "run/bad.zip run/rank0.json" {
		t.Fatalf("%s, %v", names(found), err)
	}
	if _, err := found[0].Open(); !errors.Is(err, zip.ErrFormat) {
		t.Errorf("bad archive: %v", err)
	}
}

// TestCorpus opens every real trace.
func TestCorpus(t *testing.T) {
	root := os.Getenv("MIXDOWN_CORPUS")
	if root == "" {
		t.Skip("MIXDOWN_CORPUS is not set: not run on real traces")
	}
	found, err := Find([]string{root}, Options{})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d files, %v", len(found), err)
	}
	for _, f := range found {
		s, err := read(f)
		if err != nil || !traceHead([]byte(s)) && !strings.Contains(s, `"nodes"`) && !strings.Contains(s, `"workload_graph"`) {
			t.Errorf("%s: %d bytes, %v", f.Name, len(s), err)
		}
	}
}

func TestManyFiles(t *testing.T) {
	content := make(map[string]string)
	for i := range 300 {
		content[fmt.Sprintf("run/rank%03d.json", i)] = trace
	}
	files(t, content)
	found, err := Find([]string{"run"}, Options{})
	if err != nil || len(found) != 300 || found[299].Name != "run/rank299.json" {
		t.Errorf("%d files, %v", len(found), err)
	}
	if _, err := Find([]string{"run"}, Options{MaxFiles: 299}); !errors.Is(err, ErrLimit) {
		t.Errorf("limit: %v", err)
	}
}
