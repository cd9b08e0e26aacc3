package kineto

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"mixdown/ingest/chrome"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/flightrecorder"
	"mixdown/ingest/perfetto"
	"mixdown/ingest/source"
	"mixdown/ingest/trace"
)

// format is what kind of file a trace is.
type format uint8

const (
	chromeJSON format = iota
	perfettoProto
	flightRecorderPickle
)

// sniffed is how many bytes decide about the format.
const sniffed = 64

// formatOf tells a file's format from its first bytes. JSON is text; a Perfetto
// trace begins with the tag of its first packet, which is a line feed in text,
// but is followed by bytes that are none; a pickle begins with its protocol.
func formatOf(head []byte) format {
	switch {
	case len(head) > 1 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5:
		return flightRecorderPickle
	case len(head) > 1 && head[0] == 0x0a && bytes.ContainsFunc(head, func(r rune) bool {
		return r < 0x20 && r != '\n' && r != '\r' && r != '\t'
	}):
		return perfettoProto
	}
	return chromeJSON
}

// readAny reads a file of any format that it knows. again opens the file anew.
func readAny(r io.Reader, name string, opts Options, progress func() float64, again func() (io.ReadCloser, error)) (*reading, error) {
	in := bufio.NewReaderSize(r, 1<<20)
	head, _ := in.Peek(sniffed)
	switch formatOf(head) {
	case perfettoProto:
		return readPerfetto(in, name)
	case flightRecorderPickle:
		return readDump(in, name, opts)
	}
	rd, err := readRank(in, name, opts.Limits, progress)
	if errors.Is(err, chrome.ErrNotTrace) {
		// A dump in JSON is known only by its keys.
		f, openErr := again()
		if openErr != nil {
			return nil, err
		}
		defer f.Close()
		dump, dumpErr := readDump(f, name, opts)
		if dumpErr != nil {
			return nil, err
		}
		return dump, nil
	}
	return rd, err
}

// readPerfetto reads the events of a Perfetto trace as if they were JSON.
func readPerfetto(r io.Reader, name string) (*reading, error) {
	rd := &reading{
		rank:        &trace.Rank{Source: name, Names: trace.NewStrings(), Rank: -1},
		threadNames: map[trace.ThreadID]string{},
		tables:      newTables(),
	}
	w := newWorker(rd.tables)
	w.epoch++
	p := &part{worker: w, epoch: w.epoch}
	reader := perfetto.NewReader(r, perfetto.Options{})
	for {
		ev, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		p.Event(ev)
	}
	rd.take(p, nil)
	for _, d := range reader.Diagnostics() {
		rd.diags.Add(diagnostic.Diagnostic{Code: d.Code, Rank: diagnostic.NoRank, Count: d.Count, Offset: d.Offset, Example: d.Example})
	}
	rd.rank.Truncated = reader.Truncated()
	rd.tables, rd.names, rd.threads = nil, nil, nil
	return rd, nil
}

// readDump reads a dump of the flight recorder. It has communication and nothing
// else; every operation gets an event, so that analyses find its time. Where the
// dump does not say when an operation ran, that event has no length, and the
// diagnostics say so.
func readDump(r io.Reader, name string, opts Options) (*reading, error) {
	dump, err := flightrecorder.Read(r, name, flightrecorder.Options{RanksFrom: opts.RanksFrom})
	if err != nil {
		return nil, err
	}
	rank, _, diags := dump.TraceRank() // what was not timed is among the diagnostics
	rd := &reading{rank: rank, dump: true}
	rd.diags.Merge(&diags)
	rank.Source = name
	if rank.Names == nil {
		rank.Names = trace.NewStrings()
	}
	if len(rank.Threads) == 0 {
		rank.Threads = []trace.Thread{{}}
	}
	rank.Read = int64(len(dump.Entries))
	for i := range rank.Operations {
		op := &rank.Operations[i]
		op.Thread = -1
		op.Event = rank.Events.Append(trace.Row{
			Name: rank.Names.Intern([]byte(op.Name)), Category: trace.CollectiveActivity, TS: op.Start, Dur: op.Dur(),
			Offset: op.Offset, Correlation: trace.NoID, Stream: trace.NoStream, Device: -1,
		})
		op.Events = []int{op.Event}
	}
	return rd, nil
}

// opener opens a file again for a second look at it.
func opener(file source.File) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return file.Open() }
}
