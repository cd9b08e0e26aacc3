package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"mixdown/ingest/chrome"
	"mixdown/ingest/dataset"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/kineto"
	"mixdown/ingest/share"
	"mixdown/ingest/source"
	"mixdown/ingest/trace"
)

// job reads the files of a run into a dataset.
type job struct {
	opts    *Options
	at      dataset.Place
	how     kineto.Options
	all     []traceFile // of all tasks
	sources []traceFile // of this one
	part    share.Share
	writer  *dataset.Writer
	waiting dataset.Waiting // what the dataset needs to be complete

	unchanged []bool         // by source: the dataset has it as it is
	joined    bool           // and that of all files, with the execution traces
	diags     diagnostic.Set // that concern no rank
	ranks     []int          // of a task, when it is finished

	mu     sync.Mutex
	owners map[int]string // rank -> source
}

// outcome is what became of a file that was read.
type outcome struct {
	fault *diagnostic.Diagnostic // why it gave no rank
	err   error                  // the same as an error
	fatal error                  // the dataset cannot be written, or not like this
}

// plan decides which files must be read.
func (j *job) plan(joined *join) error {
	j.unchanged = make([]bool, len(j.sources))
	j.owners = map[int]string{}
	bySource, others := map[string]int{}, map[string]bool{}
	for _, s := range j.all {
		others[filepath.Clean(s.Name)] = true
	}
	for i, s := range j.sources {
		bySource[filepath.Clean(s.Name)] = i
		delete(others, filepath.Clean(s.Name))
	}
	entries := j.writer.Entries()
	for _, e := range entries {
		if others[filepath.Clean(e.From.Source)] {
			j.owners[e.Rank] = e.From.Source
			continue
		}
		if _, ok := bySource[filepath.Clean(e.From.Source)]; !ok {
			return fmt.Errorf("%w: %s has rank %d from %s, which is not in the input: name all traces of the run, another folder, or --force to start again",
				dataset.ErrForeign, j.opts.Dir, e.Rank, e.From.Source)
		}
	}
	same := func(e dataset.Entry, executionTraces string) bool {
		from := j.sources[bySource[filepath.Clean(e.From.Source)]].from
		from.Source, from.Tool, from.ExecutionTraces = e.From.Source, toolName, executionTraces
		return from.Known() && from == e.From
	}
	want := ""
	if earlier, finished := j.writer.Earlier(); joined != nil && finished && len(entries) == len(j.sources) &&
		!slices.ContainsFunc(entries, func(e dataset.Entry) bool { return !same(e, joined.fingerprint) }) {
		want, j.joined = joined.fingerprint, true
		for _, d := range earlier {
			j.diags.Add(d)
		}
	}
	for _, e := range entries {
		if others[filepath.Clean(e.From.Source)] {
			continue // another task sees to it
		}
		if same(e, want) {
			j.unchanged[bySource[filepath.Clean(e.From.Source)]] = true
			j.owners[e.Rank] = e.From.Source
			continue
		}
		// It may turn out to be another rank this time.
		if err := j.writer.Remove(e.Rank); err != nil {
			return err
		}
	}
	return nil
}

// run reads the files that must be read, several at a time.
func (j *job) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	jobs := j.opts.Jobs
	if jobs == 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	outcomes := make([]outcome, len(j.sources))
	progress := j.opts.Streams.NewProgress("ingesting")
	defer progress.Done()
	var next, done atomic.Int64
	var wg sync.WaitGroup
	for range min(jobs, len(j.sources)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(j.sources) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if !j.unchanged[i] {
					outcomes[i] = j.ingest(ctx, j.sources[i])
				}
				if outcomes[i].fatal != nil {
					stop(outcomes[i].fatal)
					return
				}
				progress.Set(int(done.Add(1)), len(j.sources), j.sources[i].Name)
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return j.conclude(outcomes)
}

// conclude counts what was left out; a run of no rank is an error.
func (j *job) conclude(outcomes []outcome) error {
	var first error
	for _, o := range outcomes {
		if o.fault != nil {
			j.diags.Add(*o.fault)
		}
		// That a rank is not known tells more than that another file is none.
		if first == nil || errors.Is(o.err, kineto.ErrNoRank) && !errors.Is(first, kineto.ErrNoRank) {
			first = cmp.Or(o.err, first)
		}
	}
	if len(j.writer.Entries()) == 0 && j.part.Alone() {
		return cmp.Or(first, source.ErrNoTraces)
	}
	return nil
}

// finish says that all was read: of a task, that its share was.
func (j *job) finish() (err error) {
	if j.part.Alone() {
		return j.writer.Finish(j.diags.List())
	}
	own := map[string]bool{}
	for _, s := range j.sources {
		own[s.Name] = true
	}
	for _, e := range j.writer.Entries() {
		if own[e.From.Source] {
			j.ranks = append(j.ranks, e.Rank)
		}
	}
	j.waiting, err = j.writer.FinishTask(j.ranks, j.diags.List())
	return err
}

// ingest reads one file and writes it as a rank.
func (j *job) ingest(ctx context.Context, s traceFile) outcome {
	run, err := kineto.Load(ctx, []source.File{s.File}, j.how)
	switch {
	case ctx.Err() != nil:
		return outcome{fatal: ctx.Err()}
	case err != nil:
		return outcome{fault: unreadable(err), err: err}
	case run.Ranks[0].RankFrom == assumed && len(j.all) > 1:
		return unknownRank(run.Ranks[0])
	}
	rank := run.Ranks[0]
	if err := j.claim(rank); err != nil {
		return outcome{fatal: err}
	}
	_, err = j.writer.Write(rank, run.Diagnostics.List(), s.from)
	return outcome{fatal: err}
}

// claim notes which file a rank is from; no other may be of the same rank.
func (j *job) claim(r *trace.Rank) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	have, ok := j.owners[r.Rank]
	if !ok {
		j.owners[r.Rank] = r.Source
		return nil
	}
	// In the order of names: which one was read first is chance.
	both := []string{have, r.Source}
	slices.Sort(both)
	return fmt.Errorf("%w: rank %d is claimed by %s and by %s: keep one of them, or name ranks with --ranks-from",
		kineto.ErrDuplicateRank, r.Rank, both[0], both[1])
}

// assumed is how package kineto says that it took the only file for rank 0.
const assumed = "assumed"

// unreadable and unknownRank are what package kineto says of a file of several.
func unreadable(err error) *diagnostic.Diagnostic {
	code := "unreadable-file"
	if errors.Is(err, chrome.ErrNotTrace) || errors.Is(err, chrome.ErrExecutionTrace) {
		code = "not-a-trace"
	}
	return &diagnostic.Diagnostic{Code: code, Rank: diagnostic.NoRank, Offset: diagnostic.NoOffset, Example: err.Error()}
}

func unknownRank(r *trace.Rank) outcome {
	return outcome{
		fault: &diagnostic.Diagnostic{Code: "rank-unknown", Rank: diagnostic.NoRank, Offset: diagnostic.NoOffset,
			Example: fmt.Sprintf("neither %s nor its name says which rank it is; it is left out (use --ranks-from REGEX)", r.Source)},
		err: fmt.Errorf("%w: no file says which rank it is, in distributedInfo or in its name: use --ranks-from REGEX", kineto.ErrNoRank),
	}
}
