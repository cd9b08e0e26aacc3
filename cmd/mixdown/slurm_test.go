package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"mixdown/ingest/remote/remotetest"
	"mixdown/ingest/synthetic"
)

// clusterRanks is how many ranks TestSlurm ingests; "make check-cluster" sets it
// to 2,000.
func clusterRanks(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("MIXDOWN_CLUSTER_RANKS"))
	if err != nil {
		return 40
	}
	return n
}

// startSlurm starts a cluster of this machine and returns its configuration.
func startSlurm(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"munged", "slurmctld", "slurmd", "srun"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed: make check-cluster installs Slurm", program)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("Slurm's daemons need root")
	}
	script := filepath.Join("..", "..", "scripts", "cluster", "slurm.sh")
	dir, err := os.MkdirTemp("", "slurm") // short: sockets are in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if text, err := exec.Command(script, "stop", dir).CombinedOutput(); err != nil {
			t.Errorf("slurm.sh stop: %v: %s", err, text)
		}
		os.RemoveAll(dir)
	})
	if text, err := exec.Command(script, "start", dir).CombinedOutput(); err != nil {
		t.Fatalf("slurm.sh start: %v: %s", err, text)
	}
	return filepath.Join(dir, "slurm.conf")
}

// program is this test binary under the name by which it is mixdown.
func program(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "mixdown")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// killTask kills the process of a task of the job that runs program.
func killTask(program string, task int) error {
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, p := range processes {
		line, err := os.ReadFile(p)
		if err != nil || !bytes.HasPrefix(line, []byte(program+"\x00")) {
			continue
		}
		vars, err := os.ReadFile(filepath.Join(filepath.Dir(p), "environ"))
		if err != nil || !slices.Contains(strings.Split(string(vars), "\x00"), fmt.Sprintf("SLURM_PROCID=%d", task)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p)))
		if err != nil {
			return err
		}
		return syscall.Kill(pid, syscall.SIGKILL)
	}
	return fmt.Errorf("no process of task %d", task)
}

// srunIngest runs an ingest of four tasks and returns their summaries; a task that
// was killed has none.
func srunIngest(t *testing.T, conf, mixdown string, env []string, in, out string) map[int]ingestSummary {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("srun", "--quiet", "-n", "4", "--kill-on-bad-exit=0", "--output", filepath.Join(dir, "task%t.json"), "--error", filepath.Join(dir, "task%t.err"),
		mixdown, "ingest", in, "-o", out, "--format", "json", "--jobs", "1", "--quiet")
	cmd.Env = append(append(os.Environ(), env...), "SLURM_CONF="+conf)
	text, err := cmd.CombinedOutput()
	all := map[int]ingestSummary{}
	for i := range 4 {
		data, readErr := os.ReadFile(filepath.Join(dir, fmt.Sprintf("task%d.json", i)))
		var s ingestSummary
		if readErr == nil && json.Unmarshal(data, &s) == nil {
			all[i] = s
		}
	}
	if len(all) == 0 {
		stderr, _ := os.ReadFile(filepath.Join(dir, "task0.err"))
		t.Fatalf("srun: %v: %s%s", err, text, stderr)
	}
	return all
}

// Ranks in a bucket are ingested by four tasks of a real Slurm. One is killed in
// the middle of its share; started again, the tasks read what was left of that
// share and nothing else, and the analysis is that of the traces.
func TestSlurm(t *testing.T) {
	conf := startSlurm(t)
	s := remotetest.StartS3(t)
	n := clusterRanks(t)
	traces := t.TempDir()
	if _, err := synthetic.WriteFiles(traces, synthetic.Options{Ranks: n, Seed: 5}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(traces, "*.json"))
	if err != nil || len(files) != n {
		t.Fatal(len(files), err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		s.Put(t, "traces", "run/"+filepath.Base(f), data)
	}
	mixdown := program(t)
	const victim = 2
	marker := regexp.MustCompile(`/_ranks/rank=(\d+)$`)
	var mu sync.Mutex
	written := map[int]int{} // by task
	p := remotetest.NewProxy(t, s.Address, func(r *http.Request) remotetest.Fault {
		m := marker.FindStringSubmatch(r.URL.Path)
		if r.Method != http.MethodPut || m == nil {
			return remotetest.Fault{}
		}
		rank, err := strconv.Atoi(m[1])
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if written[rank%4]++; rank%4 == victim && written[victim] == 3 {
			// Before the third is whole.
			if err := killTask(mixdown, victim); err != nil {
				t.Error(err)
			}
			return remotetest.Fault{Status: 503}
		}
		return remotetest.Fault{}
	})
	env := s.Root.Environment(p.Address)

	first := srunIngest(t, conf, mixdown, env, "s3://traces/run/", "s3://traces/run.dataset")
	for i, s := range first {
		if i == victim || s.Written != n/4 || s.Task.Index != i || s.Task.Count != 4 || s.Task.AllFiles != n || s.Task.Complete {
			t.Errorf("task %d: %d written, %+v", i, s.Written, s.Task)
		}
	}
	if _, there := first[victim]; len(first) != 3 || there {
		t.Errorf("tasks %v are done", first)
	}

	mu.Lock()
	clear(written)
	written[victim] = 3 // no more killing
	mu.Unlock()
	again := srunIngest(t, conf, mixdown, env, "s3://traces/run/", "s3://traces/run.dataset")
	complete := false
	for i, s := range again {
		want := 0
		if i == victim {
			want = n/4 - 2
		}
		if s.Written != want || s.Unchanged != n/4-want {
			t.Errorf("task %d wrote %d ranks and kept %d, want %d written", i, s.Written, s.Unchanged, want)
		}
		complete = complete || s.Task.Complete
	}
	if len(again) != 4 || !complete {
		t.Errorf("%d tasks are done, complete: %v", len(again), complete)
	}
	s.Root.Use(t, s.Address)
	if got, want := analysisOf(t, "s3://traces/run.dataset"), analysisOf(t, traces); got != want {
		t.Errorf("the analysis differs:\n%s", diffOf(want, got))
	}
}

// A batch script is not a task: what runs in it without srun reads everything.
func TestSlurmBatchScript(t *testing.T) {
	conf := startSlurm(t)
	dir := t.TempDir()
	traces, err := filepath.Abs("../../testdata/dp_moe_4rank/")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "job.sh")
	text := fmt.Sprintf("#!/bin/sh\nexec %s ingest '%s/rank*.gz' -o %s/set --format json --quiet\n", program(t), traces, dir)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sbatch", "--wait", "-n", "4", "-o", filepath.Join(dir, "out"), script)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+conf)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("sbatch: %v: %s", err, text)
	}
	out, err := os.ReadFile(filepath.Join(dir, "out"))
	var s ingestSummary
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil || s.Written != 4 || s.Task != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// mpirun of either library is known by its variables.
func TestMPI(t *testing.T) {
	ran := false
	for _, mpirun := range []string{"mpirun.openmpi", "mpirun.mpich"} {
		if _, err := exec.LookPath(mpirun); err != nil {
			continue
		}
		ran = true
		args := []string{"-n", "3"}
		if mpirun == "mpirun.openmpi" {
			args = append(args, "--allow-run-as-root", "--oversubscribe")
		}
		out := filepath.Join(t.TempDir(), "set")
		cmd := exec.Command(mpirun, append(args, program(t), "ingest", "../../testdata/dp_moe_4rank/rank*.gz", "-o", out, "--quiet")...)
		text, err := cmd.CombinedOutput()
		if err != nil || strings.Count(string(text), " of 3 (") != 3 || !strings.Contains(string(text), "the dataset is complete") {
			t.Errorf("%s: %v: %s", mpirun, err, text)
		}
		if got, want := analysisOf(t, out), analysisOf(t, "../../testdata/dp_moe_4rank/rank*.gz"); got != want {
			t.Errorf("%s: %s", mpirun, diffOf(want, got))
		}
	}
	if !ran {
		t.Skip("neither Open MPI nor MPICH is installed")
	}
}

// A replay of four ranks that srun starts: as tasks that are there when it begins, and by
// the replay itself, which asks for the wire-up that each library needs.
func TestSlurmReplay(t *testing.T) {
	conf := startSlurm(t)
	worker, err := filepath.Abs("../../bin/mixdown-worker")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	mixdown := filepath.Join(t.TempDir(), "mixdown") // no link: it starts itself, by this name
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mixdown, data, 0o755); err != nil {
		t.Fatal(err)
	}
	traces, err := filepath.Abs("../../testdata/dp_moe_4rank")
	if err != nil {
		t.Fatal(err)
	}
	replay := []string{mixdown, "replay", traces, "--iters", "3", "--format", "json", "--quiet", "--launch"}
	for name, line := range map[string][]string{
		"tasks":   append(append([]string{"srun", "--quiet", "-n", "4"}, replay...), "env"),
		"gloo":    append(replay, "slurm"),
		"openmpi": append(replay, "slurm", "--mix", "*=openmpi"),
		"mpich":   append(replay, "slurm", "--mix", "*=mpich"),
	} {
		t.Run(name, func(t *testing.T) {
			if name == "openmpi" || name == "mpich" {
				if _, err := os.Stat(filepath.Join(filepath.Dir(worker), "libmixdown_"+name+".so")); err != nil {
					t.Skip(err)
				}
			}
			cmd := exec.Command(line[0], line[1:]...)
			cmd.Env = append(os.Environ(), "SLURM_CONF="+conf, "MIXDOWN_WORKER="+worker)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil {
				t.Fatalf("%s: %v\n%s", strings.Join(line, " "), err, stderr.Bytes())
			}
			type plan struct {
				Verified bool `json:"data_verified"`
			}
			var result struct {
				Hosts []struct {
					Ranks []int `json:"ranks"`
				} `json:"hosts"`
				Baseline plan   `json:"baseline"`
				Variants []plan `json:"variants"`
			}
			if err := json.Unmarshal(stdout.Bytes(), &result); err != nil {
				t.Fatalf("%v: %s%s", err, stdout.Bytes(), stderr.Bytes())
			}
			if !result.Baseline.Verified || slices.ContainsFunc(result.Variants, func(p plan) bool { return !p.Verified }) {
				t.Errorf("data are not verified: %+v", result)
			}
			if len(result.Hosts) != 1 || !slices.Equal(result.Hosts[0].Ranks, []int{0, 1, 2, 3}) {
				t.Errorf("hosts %+v, expected one with four ranks", result.Hosts)
			}
		})
	}
}
