package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"mixdown/replay/launch"
)

// jsonCommand compares a value in JSON output: json FILE PATH VALUE. A path is
// keys and indices with dots, * for all elements of a list, length for their
// number.
func jsonCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: json FILE PATH VALUE")
	}
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	dec.UseNumber()
	var v any
	ts.Check(dec.Decode(&v))
	values, err := find(v, strings.Split(args[1], "."))
	ts.Check(err)
	if len(values) == 0 {
		ts.Fatalf("%s: no such value", args[1])
	}
	for _, got := range values {
		data, err := json.Marshal(got)
		ts.Check(err)
		if (string(data) == args[2]) == neg {
			ts.Fatalf("%s is %s, want %s (negated: %v)", args[1], data, args[2], neg)
		}
	}
}

// sameCommand compares two values of JSON files: same FILE PATH FILE PATH, as of the
// json command.
func sameCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 4 {
		ts.Fatalf("usage: same FILE PATH FILE PATH")
	}
	var texts [2]string
	for i := range texts {
		dec := json.NewDecoder(strings.NewReader(ts.ReadFile(args[2*i])))
		dec.UseNumber()
		var v any
		ts.Check(dec.Decode(&v))
		values, err := find(v, strings.Split(args[2*i+1], "."))
		ts.Check(err)
		if len(values) == 0 {
			ts.Fatalf("%s: no such value", args[2*i+1])
		}
		data, err := json.Marshal(values)
		ts.Check(err)
		texts[i] = string(data)
	}
	if (texts[0] == texts[1]) == neg {
		ts.Fatalf("%s is %s, %s is %s (negated: %v)", args[1], texts[0], args[3], texts[1], neg)
	}
}

// predictedAlike compares the first variants of two results: predictedalike FILE FILE N,
// which must be that many, with the same names and predictions.
func predictedAlike(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 || neg {
		ts.Fatalf("usage: predictedalike FILE FILE N")
	}
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	type variant struct {
		Name      string  `json:"name"`
		Predicted float64 `json:"predicted_speedup"`
	}
	var found [2]struct{ Variants []variant }
	for i, file := range args[:2] {
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), &found[i]))
		if len(found[i].Variants) < n {
			ts.Fatalf("%s has %d variants, want %d", file, len(found[i].Variants), n)
		}
	}
	for i := range n {
		if a, b := found[0].Variants[i], found[1].Variants[i]; a != b || a.Predicted == 0 {
			ts.Fatalf("variant %d: %v and %v", i, a, b)
		}
	}
}

func find(v any, path []string) ([]any, error) {
	if len(path) == 0 {
		return []any{v}, nil
	}
	switch x := v.(type) {
	case map[string]any:
		inner, ok := x[path[0]]
		if !ok {
			return nil, fmt.Errorf("no key %q", path[0])
		}
		return find(inner, path[1:])
	case []any:
		if path[0] == "length" {
			return []any{len(x)}, nil
		}
		if path[0] != "*" {
			i, err := strconv.Atoi(path[0])
			if err != nil || i >= len(x) {
				return nil, fmt.Errorf("no element %q of %d", path[0], len(x))
			}
			return find(x[i], path[1:])
		}
		var all []any
		for _, e := range x {
			values, err := find(e, path[1:])
			if err != nil {
				return nil, err
			}
			all = append(all, values...)
		}
		return all, nil
	}
	return nil, fmt.Errorf("%q leads into %v", path[0], v)
}

// command makes a command of a script's words, in the script's environment.
func command(ts *testscript.TestScript, words []string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	path := filepath.Join(strings.Split(ts.Getenv("PATH"), string(os.PathListSeparator))[0], words[0])
	cmd = exec.Command(path, words[1:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "MIXDOWN_WORKER="+ts.Getenv("MIXDOWN_WORKER"), "PATH="+ts.Getenv("PATH"))
	for _, name := range []string{"LD_LIBRARY_PATH", "MIXDOWN_FAKE_GPU", "MIXDOWN_FAKE_DEVICES", "MIXDOWN_TEST_EMULATED"} {
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

// finish writes a command's output to the files output and stderr and compares
// its exit code.
func finish(ts *testscript.TestScript, cmd *exec.Cmd, stdout, stderr *bytes.Buffer, want string) {
	ts.Check(os.WriteFile(ts.MkAbs("output"), stdout.Bytes(), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs("stderr"), stderr.Bytes(), 0o644))
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != want {
		ts.Fatalf("exit code %s, want %s\n%s%s", got, want, stdout.Bytes(), stderr.Bytes())
	}
}

// exitCode runs a command and compares its exit code: exitcode CODE COMMAND...;
// its output is in the files output and stderr.
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode CODE COMMAND...")
	}
	cmd, stdout, stderr := command(ts, args[1:])
	_ = cmd.Run() // the code tells
	finish(ts, cmd, stdout, stderr, args[0])
}

// workers lists the running workers whose files are below dir.
func workers(dir string) (pids []int, ranks []string) {
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range found {
		data, err := os.ReadFile(file)
		args := strings.Split(string(data), "\x00")
		if err != nil || filepath.Base(args[0]) != "mixdown-worker" || !strings.Contains(string(data), dir) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		rank := ""
		for i, a := range args {
			if a == "--index" {
				rank = args[i+1]
			}
		}
		if env, err := os.ReadFile(filepath.Join(filepath.Dir(file), "environ")); err == nil && rank == "" {
			for _, e := range strings.Split(string(env), "\x00") {
				for _, name := range []string{"OMPI_COMM_WORLD_RANK=", "PMI_RANK="} {
					if v, ok := strings.CutPrefix(e, name); ok {
						rank = v
					}
				}
			}
		}
		pids, ranks = append(pids, pid), append(ranks, rank)
	}
	return pids, ranks
}

// killWorker starts a replay and sends a signal to one rank's worker once all
// workers run: killworker KILL|STOP DIR RANK WORKERS CODE COMMAND..., where DIR
// is the replay's --keep. The command must end within 30 s with the code.
func killWorker(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 6 {
		ts.Fatalf("usage: killworker KILL|STOP DIR RANK WORKERS CODE COMMAND...")
	}
	signal := map[string]syscall.Signal{"KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP}[args[0]]
	args = args[1:]
	dir, rank := ts.MkAbs(args[0]), args[1]
	want, err := strconv.Atoi(args[2])
	ts.Check(err)
	cmd, stdout, stderr := command(ts, args[4:])
	ts.Check(cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	pid := runningWorker(dir, rank, want)
	if pid == 0 {
		_ = cmd.Process.Kill()
		<-done
		ts.Fatalf("%d workers below %s did not run within a minute\n%s", want, dir, stderr.Bytes())
	}
	ts.Check(syscall.Kill(pid, signal))
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		_ = cmd.Process.Kill()
		<-done
		ts.Fatalf("still running 30 s after the signal to rank %s\n%s", rank, stderr.Bytes())
	}
	finish(ts, cmd, stdout, stderr, args[3])
}

// runningWorker waits until all workers have completed a timed iteration, and
// returns the process of one rank; 0 when that takes more than a minute.
func runningWorker(dir, rank string, want int) int {
	deadline := time.Now().Add(60 * time.Second)
	for time.Now().Before(deadline) {
		pids, ranks := workers(dir)
		if len(pids) >= want && iterating(dir) {
			if i := slices.Index(ranks, rank); i >= 0 {
				return pids[i]
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return 0
}

// iterating says whether the run below a folder has written a complete iteration.
func iterating(dir string) bool {
	runs, _ := filepath.Glob(filepath.Join(dir, "run-*"))
	for _, run := range runs {
		kept, err := launch.ReadKept(run)
		if err == nil && len(kept.Plans) > 0 && len(kept.Plans[0].Iterations) > 0 {
			return true
		}
	}
	return false
}

// noWorkers fails when a worker of the run is still there: noworkers DIR [orphans]. Orphans,
// whose launcher was killed, get the time to notice that: they look five times a second.
func noWorkers(ts *testscript.TestScript, neg bool, args []string) {
	pids, _ := workers(ts.MkAbs(args[0]))
	for wait := 0; len(args) > 1 && args[1] == "orphans" && len(pids) > 0 && wait < 100; wait++ {
		time.Sleep(100 * time.Millisecond)
		pids, _ = workers(ts.MkAbs(args[0]))
	}
	if len(pids) > 0 != neg {
		ts.Fatalf("workers still running: %v", pids)
	}
}
