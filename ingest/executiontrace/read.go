package executiontrace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"mixdown/ingest/diagnostic"
	"mixdown/ingest/source"
)

// Read reads the communication of the execution trace in r, decompressed; its
// name tells the rank. Damage is counted in the trace's diagnostics. An error
// means that r holds no execution trace or could not be read.
func Read(r io.Reader, name string) (*Trace, error) {
	t, err := read(r, name, defaultLimits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

func read(r io.Reader, name string, limit limits) (*Trace, error) {
	t := &Trace{Source: name, Rank: diagnostic.NoRank}
	if n, ok := source.RankFromExecutionTraceName(name); ok {
		t.Rank = n
	}
	s := newScanner(r, limit, t.Rank, &t.Diagnostics)
	if err := s.header(); err != nil {
		return nil, err
	}
	t.Schema = clip(s.schema)
	var records []record
	var groups groupTable
	splits := 0
	for {
		node, at := s.next()
		if node == nil {
			break
		}
		rec, whole := readNode(node, at)
		if !whole {
			s.lose(at, "it has no id or no name")
			continue
		}
		t.Nodes++
		switch {
		case rec == nil:
			continue
		case rec.kind == groupRecord:
			groups.describe(rec.description)
			continue
		}
		splits += rec.kept()
		if len(records) >= limit.records || splits > limit.splits {
			t.Diagnostics.Addf("execution-trace-limit", t.Rank, at,
				"more communication than is read of one file: what follows %d nodes of it is left out", len(records))
			break
		}
		records = append(records, *rec)
	}
	t.Lost = s.lost
	switch err := s.failed(); {
	case err != nil && (t.Nodes == 0 || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		return nil, err
	case err != nil && !s.closed:
		t.Diagnostics.Addf("execution-trace-truncated", t.Rank, s.offset(), "%v; %d nodes before that are used", err, t.Nodes)
	case s.truncated():
		t.Diagnostics.Addf("execution-trace-truncated", t.Rank, s.offset(),
			"the file ends before its nodes do: %d of them are used", t.Nodes)
	}
	t.Calls = assemble(records, &groups, t.Rank, &t.Diagnostics)
	t.Groups = groups.groups
	return t, nil
}

// kept is how many entries the lists of a record have.
func (rec *record) kept() int {
	n := len(rec.in.parts) + len(rec.out.parts)
	for _, s := range rec.splits {
		n += len(s.in) + len(s.out)
	}
	return n
}

// Load reads the execution traces among files, one for each rank. Files that
// are none, and those whose rank is unknown, are left out with a diagnostic as
// long as one remains. Two execution traces of one rank are an error.
//
// What is wrong inside of a trace is in the trace's own diagnostics and in the
// returned ones.
func Load(ctx context.Context, files []source.File) (map[int]*Trace, diagnostic.Set, error) {
	traces := make([]*Trace, len(files))
	failures := make([]error, len(files))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(files)) {
		wg.Go(func() {
			for i := range next {
				traces[i], failures[i] = readFile(ctx, files[i])
			}
		})
	}
	for i := range files {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, diagnostic.Set{}, err
	}
	return collect(traces, failures)
}

func readFile(ctx context.Context, file source.File) (*Trace, error) {
	f, err := file.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(&cancelable{ctx, f}, file.Name)
}

// cancelable ends a stream when its context does.
type cancelable struct {
	ctx context.Context
	r   io.Reader
}

func (c *cancelable) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}

// collect decides what a failure of one file means for all.
func collect(traces []*Trace, failures []error) (map[int]*Trace, diagnostic.Set, error) {
	var diags diagnostic.Set
	byRank := map[int]*Trace{}
	var first error
	read := 0
	for i, t := range traces {
		if err := failures[i]; err != nil {
			if first == nil {
				first = err
			}
			code := "unreadable-file"
			if errors.Is(err, ErrNotExecutionTrace) {
				code = "not-an-execution-trace" // other JSON lies beside them
			}
			diags.Addf(code, diagnostic.NoRank, diagnostic.NoOffset, "%v", err)
			continue
		}
		read++
		if t.Rank < 0 && len(traces) == 1 {
			t.Rank = 0
			diags.Addf("rank-assumed", 0, diagnostic.NoOffset,
				"the name %s does not say which rank it is; the only execution trace is taken as rank 0", t.Source)
		}
		if t.Rank < 0 {
			diags.Addf("rank-unknown", diagnostic.NoRank, diagnostic.NoOffset,
				"the name %s does not say which rank it is; the execution trace is left out", t.Source)
			continue
		}
		if have := byRank[t.Rank]; have != nil {
			return nil, diags, fmt.Errorf("%w: rank %d is claimed by %s and by %s: keep one of them",
				ErrDuplicateRank, t.Rank, have.Source, t.Source)
		}
		byRank[t.Rank] = t
		for _, d := range t.Diagnostics.List() {
			d.Rank = t.Rank
			diags.Add(d)
		}
	}
	switch {
	case len(byRank) > 0:
		return byRank, diags, nil
	case read > 0:
		return nil, diags, fmt.Errorf("%w: no name of a file says it, as rank3.json or et_3.json do", ErrNoRank)
	case first != nil:
		return nil, diags, first
	}
	return nil, diags, source.ErrNoTraces
}
