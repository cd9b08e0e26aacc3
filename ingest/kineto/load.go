package kineto

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"mixdown/ingest/chrome"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/source"
	"mixdown/ingest/trace"
)

var (
	// ErrDuplicateRank: two files claim to be the same rank.
	ErrDuplicateRank = errors.New("two files claim the same rank")
	// ErrNoRank: no file says which rank it is.
	ErrNoRank = errors.New("rank unknown")
)

// Options of reading a run. The zero value is ready.
type Options struct {
	// RanksFrom, when set, takes the rank from the file name: its group named
	// "rank", else its first group.
	RanksFrom *regexp.Regexp
	// Fix is what to do with device events that start before their launch; ""
	// reports them and changes nothing.
	Fix Fix
	// Limits of one file.
	Limits chrome.Options
	// Parallel is how many files are read at once; 0 means one for each CPU.
	Parallel int
	// Progress, when set, is called after each file, from several goroutines.
	Progress func(file string)
}

// Load reads the files of a run, one for each rank. Files that are no traces
// or whose rank is unknown are left out with a diagnostic as long as one rank
// remains; two files of one rank are an error.
func Load(ctx context.Context, files []source.File, opts Options) (*trace.Run, error) {
	readings := make([]*reading, len(files))
	failures := make([]error, len(files))
	parallel := opts.Parallel
	if parallel <= 0 {
		parallel = runtime.GOMAXPROCS(0)
	}
	next := make(chan int)
	var wg sync.WaitGroup
	var left atomic.Int64 // files not read to their end
	left.Store(int64(len(files)))
	for range min(parallel, len(files)) {
		wg.Go(func() {
			for i := range next {
				opts := opts
				if opts.Limits.Workers == 0 {
					opts.Limits.Workers = workersFor(int(left.Load()))
				}
				readings[i], failures[i] = readFile(files[i], opts)
				left.Add(-1)
				if opts.Progress != nil {
					opts.Progress(files[i].Name)
				}
			}
		})
	}
	var canceled error
	for i := range files {
		select {
		case next <- i:
		case <-ctx.Done():
			canceled = ctx.Err()
		}
		if canceled != nil {
			break
		}
	}
	close(next)
	wg.Wait()
	if canceled != nil {
		return nil, canceled
	}
	return assemble(readings, failures)
}

// workersFor is how many parts of a file to read at once when so many files are
// left: files keep the CPUs busy as long as there are enough of them, and need
// no one to put parts in order.
func workersFor(files int) int {
	cpus := runtime.GOMAXPROCS(0)
	return min((cpus+files-1)/max(files, 1), maxWorkers)
}

// maxWorkers is how many can be busy with one file: no more than one goroutine
// can decompress for.
const maxWorkers = 8

func readFile(file source.File, opts Options) (*reading, error) {
	f, err := file.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var progress func() float64
	if s, ok := f.(interface{ Stored() int64 }); ok && file.Size > 0 {
		progress = func() float64 { return float64(s.Stored()) / float64(file.Size) }
	}
	name := file.Name
	rd, err := readAny(f, name, opts, progress, opener(file))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	switch {
	case opts.RanksFrom != nil:
		if n, ok := source.RankFromRegexp(opts.RanksFrom, name); ok {
			rd.rank.Rank, rd.rank.RankFrom = n, "--ranks-from"
		}
	case rd.rank.Rank < 0:
		if n, _, ok := source.RankFromName(name); ok {
			rd.rank.Rank, rd.rank.RankFrom = n, "file name"
		}
	}
	rd.fix = opts.Fix
	if !rd.dump {
		rd.finish()
	}
	return rd, nil
}

// assemble makes a run of what was read and decides what a failure of one file
// means for the whole.
func assemble(readings []*reading, failures []error) (*trace.Run, error) {
	run := &trace.Run{}
	var first error
	read := 0
	for i, rd := range readings {
		if err := failures[i]; err != nil {
			if first == nil {
				first = err
			}
			code := "unreadable-file"
			if errors.Is(err, chrome.ErrNotTrace) || errors.Is(err, chrome.ErrExecutionTrace) {
				code = "not-a-trace" // other JSON lies in folders of traces
			}
			run.Diagnostics.Addf(code, diagnostic.NoRank, diagnostic.NoOffset, "%v", err)
			continue
		}
		read++
		if rd.rank.Rank < 0 {
			if len(readings) == 1 {
				rd.rank.Rank, rd.rank.RankFrom = 0, "assumed"
				run.Diagnostics.Addf("rank-assumed", 0, diagnostic.NoOffset,
					"neither %s nor its name says which rank it is; the only file is taken as rank 0", rd.rank.Source)
			} else {
				run.Diagnostics.Addf("rank-unknown", diagnostic.NoRank, diagnostic.NoOffset,
					"neither %s nor its name says which rank it is; it is left out (use --ranks-from REGEX)", rd.rank.Source)
				continue
			}
		}
		if have := run.ByRank(rd.rank.Rank); have != nil {
			return nil, fmt.Errorf("%w: rank %d is claimed by %s and by %s: keep one of them, or name ranks with --ranks-from",
				ErrDuplicateRank, rd.rank.Rank, have.Source, rd.rank.Source)
		}
		for _, d := range rd.diags.List() {
			d.Rank = rd.rank.Rank
			run.Diagnostics.Add(d)
		}
		if rd.rank.Truncated {
			run.Diagnostics.Addf("truncated-rank", rd.rank.Rank, diagnostic.NoOffset,
				"%s ends early: %d events before the cut are used", rd.rank.Source, rd.rank.Read)
		}
		at, _ := slices.BinarySearchFunc(run.Ranks, rd.rank.Rank, func(r *trace.Rank, n int) int { return r.Rank - n })
		run.Ranks = slices.Insert(run.Ranks, at, rd.rank)
	}
	switch {
	case len(run.Ranks) > 0:
		return run, nil
	case read > 0:
		return nil, fmt.Errorf("%w: no file says which rank it is, in distributedInfo or in its name: use --ranks-from REGEX", ErrNoRank)
	case first != nil:
		return nil, first
	}
	return nil, source.ErrNoTraces
}
