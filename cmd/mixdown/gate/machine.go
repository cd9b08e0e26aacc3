package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/input"
)

// machine is what the head of a trace says of the machine it ran on.
type machine struct {
	gpu      string // "" when not said
	versions map[string]string
}

// headBytes is how much of a trace is looked at: Kineto writes these values before
// the events (libkineto/src/output_json.cpp).
const headBytes = 64 << 10

var (
	deviceName = regexp.MustCompile(`"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"totalGlobalMem"`)
	version    = regexp.MustCompile(`"(cuda_runtime|cuda_driver|hip_runtime|hip_driver|nccl|cupti)_version"\s*:\s*("(?:[^"\\]|\\.)*"|[0-9]+)`)
)

// machineOf looks into the first trace of the input. A dataset says nothing.
func machineOf(ctx context.Context, in *input.Options, streams *cli.Streams) (machine, error) {
	if dir, err := in.Dataset(ctx); dir != "" || err != nil {
		return machine{}, err
	}
	for _, arg := range in.Args {
		if arg == "-" {
			return machine{}, nil // can't be read twice
		}
	}
	files, _, err := in.Traces(ctx, streams)
	if err != nil || len(files) == 0 {
		return machine{}, err
	}
	r, err := files[0].Open()
	if err != nil {
		return machine{}, fmt.Errorf("open %s: %w", files[0].Name, err)
	}
	defer r.Close()
	head := make([]byte, headBytes)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return machine{}, nil // damaged further on: the reader has said so
	}
	return parseMachine(head[:n]), nil
}

// parseMachine finds the values in the head of a trace.
func parseMachine(head []byte) machine {
	m := machine{versions: map[string]string{}}
	var names []string
	for _, found := range deviceName.FindAllSubmatch(head, -1) {
		var name string
		if json.Unmarshal(found[1], &name) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	m.gpu = strings.Join(slices.Compact(names), ", ")
	for _, found := range version.FindAllSubmatch(head, -1) {
		value := strings.Trim(string(found[2]), `"`)
		m.versions[strings.ReplaceAll(string(found[1]), "_", " ")] = value
	}
	return m
}
