package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"mixdown/analyze/gate"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/input"
	"mixdown/ingest/remote"
)

// record is how the JSON of this program begins; traces begin otherwise.
var record = regexp.MustCompile(`^\s*\{\s*"schema_version"\s*:`)

// loadRecord reads a run, whatever it is written as. The second result is what
// --strict refuses.
func loadRecord(ctx context.Context, streams *cli.Streams, in input.Options, args []string) (r *gate.Record, refused, err error) {
	if len(args) == 1 {
		if r, err := openRecord(args[0]); r != nil || err != nil {
			return r, nil, err
		}
	}
	in.Args = args
	job, err := in.Load(ctx, streams)
	if err != nil {
		return nil, nil, err // names the file or folder
	}
	gpu, versions := gate.Machine(job.Run)
	refused = in.Refuse(&job.Run.Diagnostics, &job.Match.Diagnostics, &job.Clocks.Diagnostics)
	return gate.Measure(gate.Input{
		Source: source(args), Run: job.Run, Match: job.Match, Clocks: job.Clocks, GPU: gpu, Versions: versions,
	}), refused, nil
}

// source is what a run is called.
func source(args []string) string {
	if len(args) == 1 {
		return remote.Redact(args[0])
	}
	return fmt.Sprintf("%s and %d more", remote.Redact(args[0]), len(args)-1)
}

// openRecord reads a file of this program's JSON; it returns nothing when the name
// is of something else.
func openRecord(name string) (*gate.Record, error) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil // the reader of traces says what is wrong
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open record: %w", err)
	}
	defer f.Close()
	head := make([]byte, 256)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if !record.Match(head[:n]) {
		return nil, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return gate.ReadRecord(f, name)
}
