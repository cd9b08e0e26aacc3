package gate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mixdown/analyze/gate"
	"mixdown/cmd/mixdown/cli"
	command "mixdown/cmd/mixdown/gate"
	"mixdown/ingest/comm"
	"mixdown/ingest/synthetic"
)

// usual is a run of 16 steps on 4 ranks with some noise.
func usual(seed uint64) synthetic.Options {
	return synthetic.Options{Ranks: 4, Steps: 16, Noise: 0.02, Seed: seed, Kernels: 8, Collectives: []synthetic.Collective{
		{Op: comm.AllGather, Scope: synthetic.Tensor, Elements: 1 << 16},
		{Op: comm.ReduceScatter, Scope: synthetic.Tensor, Elements: 1 << 16},
		{Op: comm.AllReduce, Scope: synthetic.Data, Elements: 1 << 20},
		{Op: comm.AllToAll, Scope: synthetic.World, Elements: 1 << 15},
	}}
}

// traces writes a run to a folder.
func traces(t *testing.T, opts synthetic.Options) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := synthetic.WriteFiles(dir, opts); err != nil {
		t.Fatal(err)
	}
	return dir
}

// streams are buffers.
func buffers() (*cli.Streams, *bytes.Buffer, *bytes.Buffer) {
	var out, messages bytes.Buffer
	return &cli.Streams{In: strings.NewReader(""), Out: &out, Err: &messages, Quiet: true}, &out, &messages
}

// run gates with JSON output.
func run(t *testing.T, opts command.Options) (*gate.Result, error) {
	t.Helper()
	streams, out, _ := buffers()
	opts.Streams, opts.Output.Format = streams, "json"
	opts.Now = func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }
	opts.Getenv = func(string) string { return "" }
	err := command.Run(context.Background(), &opts)
	r := &gate.Result{}
	if jsonErr := json.Unmarshal(out.Bytes(), r); jsonErr != nil {
		t.Fatalf("%v (%v)\n%s", jsonErr, err, out)
	}
	return r, err
}

// TestFromTracesToOutcome: a policy made from one run lets another clean run pass,
// finds slower computation and larger messages, and names them.
func TestFromTracesToOutcome(t *testing.T) {
	base := traces(t, usual(1))
	streams, _, _ := buffers()
	saved, policy := filepath.Join(t.TempDir(), "base.json"), filepath.Join(t.TempDir(), "gate.yaml")
	save := command.SaveOptions{Streams: streams, Output: saved, ByRank: "auto"}
	save.Input.Args = []string{base}
	if err := command.RunSave(context.Background(), &save); err != nil {
		t.Fatal(err)
	}
	init := command.InitOptions{Streams: streams, Baselines: []string{saved}, Output: policy, Suggest: gate.DefaultSuggestOptions()}
	if err := command.RunInit(context.Background(), &init); err != nil {
		t.Fatal(err)
	}
	slower := usual(3)
	slower.KernelNs = 140_000
	late := usual(4)
	for step := range late.Steps {
		late.Stragglers = append(late.Stragglers, synthetic.Straggler{Rank: 2, Step: step, Collective: 2, Delay: 400_000})
	}
	more := usual(5)
	more.Collectives[2].Elements *= 2
	for _, c := range []struct {
		name    string
		opts    synthetic.Options
		outcome gate.Outcome
		says    string
	}{
		{"clean", usual(2), gate.Pass, "within the limits"},
		{"slower computation", slower, gate.Regression, "computation"},
		{"a straggler", late, gate.Regression, "most on rank 2: compute"},
		{"larger messages", more, gate.NotComparable, "8 MiB of all_reduce"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := run(t, command.Options{Baseline: saved, Candidate: traces(t, c.opts), Policy: policy})
			text, _ := json.MarshalIndent(r.Checks, "", " ")
			if r.Outcome != c.outcome || !strings.Contains(r.Answer+string(text), c.says) {
				yaml, _ := os.ReadFile(policy)
				t.Errorf("%s: %s, want %s and %q\n%s\n%s\n%v", c.name, r.Answer, c.outcome, c.says, yaml, text, err)
			}
			want := map[gate.Outcome]cli.ExitCode{gate.Pass: cli.Done, gate.Regression: cli.Regression, gate.NotComparable: cli.Inconclusive}[c.outcome]
			if got := cli.CodeOf(err); got != want {
				t.Errorf("exit code %d, want %d (%v)", got, want, err)
			}
		})
	}
}

// TestManyRuns: of clean runs through the whole reader none is a regression by a
// policy from three others, and slower computation is found from twice its limit.
func TestManyRuns(t *testing.T) {
	streams, _, _ := buffers()
	policy := filepath.Join(t.TempDir(), "gate.yaml")
	init := command.InitOptions{Streams: streams, Output: policy, Suggest: gate.DefaultSuggestOptions()}
	for seed := range uint64(3) {
		init.Baselines = append(init.Baselines, traces(t, usual(100+seed)))
	}
	if err := command.RunInit(context.Background(), &init); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		r, err := run(t, command.Options{Baseline: init.Baselines[0], Candidate: traces(t, usual(200+seed)), Policy: policy})
		if err != nil || r.Outcome != gate.Pass {
			t.Errorf("clean run %d: %v", seed, err)
		}
	}
	for seed, slower := range []int64{3, 5, 10, 20} { // percent
		opts := usual(300 + uint64(seed))
		opts.KernelNs = 100_000 + slower*1_000
		r, err := run(t, command.Options{Baseline: init.Baselines[0], Candidate: traces(t, opts), Policy: policy})
		if cli.CodeOf(err) != cli.Regression || r.Count(gate.Regression) < 2 {
			t.Errorf("computation slower by %d %%: %v", slower, err)
		}
	}
}

// TestFlags: what the command line says reaches the options.
func TestFlags(t *testing.T) {
	streams, _, _ := buffers()
	var got *command.Options
	cmd := command.NewCmd(streams, func(_ context.Context, o *command.Options) error {
		got = o
		return nil
	})
	cmd.SetArgs([]string{
		"--baseline", "a", "--candidate", "b", "--policy", "p.yaml", "--rule", "step +5%", "--rule", "comm[group=x,op=y] +1%, z",
		"--format", "json", "--output", "junit=x.xml", "--output", "sarif=y", "--allow-inconclusive", "--ranks-from", "r(\\d)", "--strict",
	})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	if got.Baseline != "a" || got.Candidate != "b" || got.Policy != "p.yaml" || len(got.Rules) != 2 || len(got.Output.Outputs) != 2 ||
		got.Output.Format != "json" || !got.AllowInconclusive || !got.Input.Strict || got.Input.RanksFrom != "r(\\d)" || got.Now().IsZero() {
		t.Errorf("%+v", got)
	}
}

// TestStepSummaryHasALimit: GitHub drops a summary of more than 1 MiB, so what is
// there already counts, and when there is no room nothing is added.
func TestStepSummaryHasALimit(t *testing.T) {
	base := traces(t, usual(1))
	for _, there := range []int{0, 1<<20 - 30<<10, 1<<20 - 5<<10, 1 << 20} {
		file := filepath.Join(t.TempDir(), "summary.md")
		if err := os.WriteFile(file, bytes.Repeat([]byte("x"), there), 0o644); err != nil {
			t.Fatal(err)
		}
		streams, _, messages := buffers()
		opts := command.Options{
			Streams: streams, Now: time.Now, Baseline: base, Candidate: base,
			Rules: []string{"exposed_comm[group=*,op=*,size=*] +5%", "step[rank=*] +5%", "compute[rank=*] +5%", "comm[op=*] +0.00001%"},
			Getenv: func(name string) string {
				return map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": file}[name]
			},
		}
		opts.Output.Format = "json"
		err := command.Run(context.Background(), &opts)
		if code := cli.CodeOf(err); code != cli.Inconclusive {
			t.Fatalf("exit code %d: %v", code, err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		grown := info.Size() > int64(there)
		if info.Size() > 1<<20 || grown != (there < 1<<20-8<<10) || !strings.Contains(messages.String(), "::warning title=") {
			t.Errorf("%d bytes there: now %d\n%s", there, info.Size(), messages)
		}
	}
}
