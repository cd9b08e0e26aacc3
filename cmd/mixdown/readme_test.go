package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/root"
)

// example is a command of README.md and the output that it shows.
type example struct {
	args []string
	want string
}

// examples reads the console blocks.
func examples(t *testing.T) []example {
	t.Helper()
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var list []example
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllSubmatch(data, -1) {
		command, output, _ := strings.Cut(string(block[1]), "\n")
		words := regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(strings.TrimPrefix(command, "$ "), -1)
		var args []string
		for _, w := range words[1:] {
			args = append(args, w[1]+w[2])
		}
		list = append(list, example{args, output})
	}
	if len(list) < 3 {
		t.Fatalf("%d examples in README.md", len(list))
	}
	return list
}

// TestReadme runs the commands of README.md. Output that does not depend on the
// machine must be there word for word, measured figures in their places.
func TestReadme(t *testing.T) {
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	list := examples(t)
	t.Chdir(repository)
	if os.Getenv("MIXDOWN_WORKER") == "" {
		t.Setenv("MIXDOWN_WORKER", filepath.Join(repository, "bin", "mixdown-worker"))
	}
	for _, e := range list {
		t.Run(e.args[0], func(t *testing.T) {
			var out, messages bytes.Buffer
			streams := &cli.Streams{In: strings.NewReader(""), Out: &out, Err: &messages, Quiet: true}
			if code := root.Execute(context.Background(), streams, e.args); code != cli.Done {
				t.Fatalf("mixdown %s: exit code %d\n%s", strings.Join(e.args, " "), code, messages.Bytes())
			}
			measured := e.args[0] == "replay"
			got, want := shape(out.String(), measured), shape(e.want, measured)
			for i, line := range want {
				if i >= len(got) || got[i] != line {
					t.Fatalf("line %d of README.md's example is not what mixdown %s prints:\nREADME: %s\nnow:    %s", i+1, e.args[0], line, at(got, i))
				}
			}
		})
	}
}

// shape is the output as lines, runs of blanks as one; measured figures, pictures of
// them and versions as #.
func shape(text string, measured bool) []string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(line), " ")
		if measured {
			if name, _, ok := strings.Cut(line, ": "); ok && (name == "gloo" || name == "openmpi") {
				line = name + ": #"
			}
			line = regexp.MustCompile(` *[│─●].*`).ReplaceAllString(line, " #")
			line = regexp.MustCompile(`[0-9.]+ (ms|us|s)\b`).ReplaceAllString(line, "# time")
			line = regexp.MustCompile(`[0-9]+\.[0-9]+`).ReplaceAllString(line, "#")
		}
		lines = append(lines, line)
	}
	return lines
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}
