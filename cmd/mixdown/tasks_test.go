package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"mixdown/cmd/mixdown/cli"
	"mixdown/ingest/remote"
	"mixdown/ingest/remote/remotetest"
)

// ingestSummary is what the tests look at of the JSON of mixdown ingest.
type ingestSummary struct {
	Ranks     []struct{ Rank int }
	Written   int `json:"ranks_written"`
	Unchanged int `json:"ranks_unchanged"`
	Task      *struct {
		Index, Count, Files int
		AllFiles            int `json:"all_files"`
		Complete            bool
		Missing, Differ     []int
	}
}

func ingestTask(t *testing.T, part, out string, inputs ...string) ingestSummary {
	t.Helper()
	code, stdout, stderr := execute(t, append([]string{"ingest", "--format", "json", "--share", part, "-o", out}, inputs...)...)
	if code != cli.Done {
		t.Fatalf("task %s: exit %d: %s", part, code, stderr)
	}
	var s ingestSummary
	if err := json.Unmarshal([]byte(stdout), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// Tasks that write one dataset at the same time, on disk and in a bucket, write
// what one process writes; run again, they have nothing to do.
func TestTasks(t *testing.T) {
	s := remotetest.StartS3(t)
	upload(t, s, "traces", "run/", "world_36rank/rank*.gz")
	s.Root.Use(t, s.Address)
	files := filepath.Join("..", "..", "testdata", "world_36rank", "rank*.gz")
	want := analysisOf(t, files)
	for _, tt := range []struct{ in, out string }{
		{files, filepath.Join(t.TempDir(), "set")},
		{"s3://traces/run", "s3://traces/run.dataset"},
	} {
		for round := range 2 {
			const count = 5
			var wg sync.WaitGroup
			var all [count]ingestSummary
			for i := range count {
				wg.Go(func() { all[i] = ingestTask(t, fmt.Sprintf("%d/%d", i, count), tt.out, tt.in) })
			}
			wg.Wait()
			if t.Failed() {
				return
			}
			seen, complete, written := map[int]bool{}, 0, 0
			for _, s := range all {
				for _, r := range s.Ranks {
					if seen[r.Rank] {
						t.Errorf("rank %d is of two tasks", r.Rank)
					}
					seen[r.Rank] = true
				}
				written += s.Written
				if s.Task.Complete {
					complete++
				}
			}
			if len(seen) != 36 || complete == 0 || round == 0 && written != 36 || round == 1 && (written != 0 || complete != count) {
				t.Errorf("%s, round %d: %d ranks, %d written, complete for %d tasks", tt.out, round, len(seen), written, complete)
			}
		}
		if got := analysisOf(t, tt.out); got != want {
			t.Errorf("%s differs from the traces:\n%s", tt.out, diffOf(want, got))
		}
		// One process takes over what the tasks wrote.
		if s := ingestTask(t, "all", tt.out, tt.in); s.Unchanged != 36 || s.Task != nil {
			t.Errorf("%s, alone: %+v", tt.out, s)
		}
	}
}

// Until the last task is done the dataset says that it isn't whole, and which
// tasks are missing.
func TestTasksMissing(t *testing.T) {
	files := filepath.Join("..", "..", "testdata", "dp_moe_4rank", "rank*.gz")
	out := filepath.Join(t.TempDir(), "set")
	s := ingestTask(t, "1/3", out, files)
	if s.Task.Complete || fmt.Sprint(s.Task.Missing) != "[0 2]" || len(s.Ranks) != 1 || s.Task.AllFiles != 4 {
		t.Errorf("%+v", s.Task)
	}
	code, stdout, _ := execute(t, "analyze", out)
	if code != cli.Done || !strings.Contains(stdout, "dataset-incomplete") {
		t.Errorf("exit %d: an incomplete dataset is not called so", code)
	}
	ingestTask(t, "0/3", out, files)
	if s := ingestTask(t, "2/3", out, files); !s.Task.Complete {
		t.Errorf("%+v", s.Task)
	}
	code, stdout, _ = execute(t, "analyze", out)
	if code != cli.Done || strings.Contains(stdout, "dataset-incomplete") {
		t.Errorf("exit %d: a complete dataset is called incomplete", code)
	}
}

// Tasks that found different files must not pass for one job.
func TestTasksDiffer(t *testing.T) {
	in, out := t.TempDir(), filepath.Join(t.TempDir(), "set")
	files, err := filepath.Glob("../../testdata/dp_moe_4rank/rank*.gz")
	if err != nil {
		t.Fatal(err)
	}
	add := func(i int) {
		data, err := os.ReadFile(files[i])
		if err == nil {
			err = os.WriteFile(filepath.Join(in, filepath.Base(files[i])), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	add(0)
	add(1)
	add(2)
	ingestTask(t, "0/2", out, in)
	add(3)
	if s := ingestTask(t, "1/2", out, in); s.Task.Complete || fmt.Sprint(s.Task.Differ) != "[0]" {
		t.Errorf("%+v", s.Task)
	}
	if s := ingestTask(t, "0/2", out, in); !s.Task.Complete || s.Unchanged != 2 {
		t.Errorf("%+v", s)
	}
	if got, want := analysisOf(t, out), analysisOf(t, in); got != want {
		t.Error(diffOf(want, got))
	}
}

func TestTasksClaimOneRank(t *testing.T) {
	in, out := t.TempDir(), filepath.Join(t.TempDir(), "set")
	for _, name := range []string{"a.json.gz", "b.json.gz"} {
		data, err := os.ReadFile("../../testdata/dp_moe_4rank/rank0.pt.trace.json.gz")
		if err == nil {
			err = os.WriteFile(filepath.Join(in, name), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ingestTask(t, "0/2", out, in)
	code, _, stderr := execute(t, "ingest", "--share", "1/2", "-o", out, in)
	if code != cli.Unreadable || !strings.Contains(stderr, "a.json.gz") || !strings.Contains(stderr, "b.json.gz") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestTasksUsage(t *testing.T) {
	t.Setenv("JOB_COMPLETION_INDEX", "0")
	for _, tt := range []struct{ args, says string }{
		{"ingest x -o y", "JOB_COMPLETIONS"},
		{"ingest x -o y --share 2/2", "0 to N-1"},
		{"ingest x -o y --share 0/2 --force", "--force"},
		{"ingest x -o y --share 0/2 --execution-traces z", "--share all"},
		{"ingest x -o https://host/y?planted --share all", "takes no files"},
	} {
		code, _, stderr := execute(t, strings.Fields(tt.args)...)
		if code != cli.Usage || !strings.Contains(stderr, tt.says) || strings.Contains(stderr, "planted") {
			t.Errorf("%s: exit %d: %s", tt.args, code, stderr)
		}
	}
}

// A store that fails in the middle of a rank leaves no rank that is half there;
// the task goes on where it was.
func TestStoreFailsWhileWritten(t *testing.T) {
	s := remotetest.StartS3(t)
	s.AddBucket(t, "traces")
	files := filepath.Join("..", "..", "testdata", "dp_moe_4rank", "rank*.gz")
	puts := 0
	p := remotetest.NewProxy(t, s.Address, func(r *http.Request) remotetest.Fault {
		if r.Method == http.MethodPut {
			if puts++; puts > 14 { // in the middle of a rank
				return remotetest.Fault{Status: 403}
			}
			return remotetest.Fault{Status: []int{0, 503}[puts%2]}
		}
		return remotetest.Fault{}
	})
	s.Root.Use(t, p.Address)
	code, _, stderr := execute(t, "ingest", files, "-o", "s3://traces/set", "--jobs", "1")
	if code != cli.Unreadable || !strings.Contains(stderr, "s3:PutObject on s3://traces") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit %d: %s", code, stderr)
	}
	p.Decide(nil)
	code, stdout, stderr := execute(t, "ingest", files, "-o", "s3://traces/set", "--format", "json")
	var sum ingestSummary
	if err := json.Unmarshal([]byte(stdout), &sum); err != nil || code != cli.Done || sum.Written+sum.Unchanged != 4 || sum.Written < 3 {
		t.Errorf("exit %d: %s%+v, %v", code, stderr, sum, err)
	}
	if got, want := analysisOf(t, "s3://traces/set"), analysisOf(t, files); got != want {
		t.Error(diffOf(want, got))
	}
	// Written afresh, it is the same once more.
	if code, _, stderr := execute(t, "ingest", files, "-o", "s3://traces/set", "--force"); code != cli.Done {
		t.Errorf("--force: exit %d: %s", code, stderr)
	}
	if got, want := analysisOf(t, "s3://traces/set"), analysisOf(t, files); got != want {
		t.Error(diffOf(want, got))
	}
	// A bucket that holds something else is left alone.
	s.Put(t, "traces", "other/file", []byte("x"))
	if code, _, stderr := execute(t, "ingest", files, "-o", "s3://traces/other"); code != cli.Usage || !strings.Contains(stderr, "neither empty nor a dataset") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// Results written to a bucket are those written to disk, and replace earlier ones
// whole.
func TestResultsInStore(t *testing.T) {
	s := remotetest.StartS3(t)
	s.AddBucket(t, "out")
	s.Root.Use(t, s.Address)
	dir := t.TempDir()
	write := func(to, input string) {
		t.Helper()
		code, _, stderr := execute(t, "analyze", input, "--markdown", to+"/a.md", "--perfetto", to+"/a.pftrace", "--html", to+"/a.html", "--parquet", to+"/tables")
		if code != cli.Done || stderr != "" {
			t.Fatalf("%s: exit %d: %s", to, code, stderr)
		}
	}
	const four, two = "../../testdata/dp_moe_4rank/rank*.gz", "../../testdata/deepspeed_zero2_2rank/rank*.gz"
	write("s3://out/r", four)
	write("s3://out/r", two) // fewer ranks: tables of the others go
	write(dir, two)
	c := remote.New(t.Context(), remote.Options{})
	var have []string
	if err := c.List("s3://out/", func(o remote.Object) bool {
		have = append(have, strings.TrimPrefix(o.Name, "s3://out/r/"))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	var want []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		below, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		want = append(want, filepath.ToSlash(below))
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		got, err := c.ReadAll("s3://out/r/"+filepath.ToSlash(below), 1<<30)
		if err == nil && !bytes.Equal(got, data) && !strings.HasSuffix(path, ".html") { // it has the time it was made
			t.Errorf("%s differs", below)
		}
		return err
	})
	slices.Sort(want)
	slices.Sort(have)
	if err != nil || !slices.Equal(have, want) || len(want) < 10 {
		t.Errorf("%v:\n%v\n%v", err, have, want)
	}
	s.Put(t, "out", "other/file", []byte("x"))
	for _, tt := range []struct {
		flag, to, says string
		code           cli.ExitCode
	}{
		{"--parquet", "s3://out/other", "holds something else", cli.Usage},
		{"--html", "https://me:planted@host/x?planted", "takes no files", cli.Usage},
		{"--html", "s3://nowhere/x.html", "no such bucket", cli.Unreadable},
		{"--parquet", "s3://nowhere/x", "no such bucket", cli.Unreadable},
	} {
		code, _, stderr := execute(t, "analyze", two, tt.flag, tt.to)
		if code != tt.code || !strings.Contains(stderr, tt.says) || strings.Contains(stderr, "planted") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s %s: exit %d: %s", tt.flag, tt.to, code, stderr)
		}
	}
}
