package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/replay"
)

// TestClusterExamples: the command lines of examples/cluster are such that mixdown takes
// them, and the manifests set what tasks read from their environment.
func TestClusterExamples(t *testing.T) {
	lines := map[string][]string{}
	for _, name := range []string{"replay.sbatch", "torchrun.sh"} {
		data := read(t, name)
		at := strings.Index(data, "mixdown replay")
		if at < 0 {
			t.Fatalf("%s has no replay", name)
		}
		line := strings.NewReplacer("\\\n", " ", "\"", "", "${1:?the folder of the traces}", "traces/", "${MIX:-*=openmpi}", "*=openmpi").Replace(data[at:])
		lines[name] = strings.Fields(line)
	}
	for _, document := range documents(t, read(t, "job.yaml")) {
		if document["kind"] != "Job" {
			continue
		}
		spec := document["spec"].(map[string]any)
		container := spec["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
		for _, word := range container["command"].([]any) {
			lines["job.yaml"] = append(lines["job.yaml"], word.(string))
		}
		environment := map[string]any{}
		for _, e := range container["env"].([]any) {
			entry := e.(map[string]any)
			environment[entry["name"].(string)] = entry["value"]
		}
		if environment["JOB_COMPLETIONS"] != "8" || spec["completions"] != 8 || spec["parallelism"] != 8 || spec["completionMode"] != "Indexed" {
			t.Errorf("job.yaml: %v tasks of %v at once, %v, told %v", spec["completions"], spec["parallelism"], spec["completionMode"], environment["JOB_COMPLETIONS"])
		}
		if !strings.HasPrefix(environment["MIXDOWN_RENDEZVOUS"].(string), "mixdown-replay-0.mixdown-replay:") {
			t.Errorf("job.yaml: tasks meet at %v", environment["MIXDOWN_RENDEZVOUS"])
		}
	}
	for _, document := range documents(t, read(t, "mpijob.yaml")) {
		replicas := document["spec"].(map[string]any)["mpiReplicaSpecs"].(map[string]any)
		container := replicas["Launcher"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
		line := strings.NewReplacer("'", "", "\"$(hostname -i)\"", "10.0.0.1").Replace(container["args"].([]any)[0].(string))
		lines["mpijob.yaml"] = strings.Fields(line)[1:] // without exec
	}
	if len(lines) != 4 {
		t.Fatalf("%d command lines, expected 4", len(lines))
	}
	for name, line := range lines {
		if !slices.Equal(line[:2], []string{"mixdown", "replay"}) {
			t.Errorf("%s runs %q", name, line)
			continue
		}
		var got *replay.Options
		streams := &cli.Streams{In: &bytes.Buffer{}, Out: io.Discard, Err: io.Discard}
		cmd := replay.NewCmd(streams, func(_ context.Context, o *replay.Options) error { got = o; return nil })
		cmd.SetArgs(line[2:])
		if err := cmd.Execute(); err != nil {
			t.Errorf("%s: %q: %v", name, line, err)
			continue
		}
		if got.Launch.Launch == "local" || len(got.Plans.Input.Args) != 1 {
			t.Errorf("%s: %q starts workers %s, of %q", name, line, got.Launch.Launch, got.Plans.Input.Args)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../examples/cluster", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func documents(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for in := yaml.NewDecoder(strings.NewReader(text)); ; {
		var document map[string]any
		err := in.Decode(&document)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, document)
	}
}
