package ingest

import (
	"context"
	"crypto/sha256"
	"fmt"

	"mixdown/cmd/mixdown/input"
	"mixdown/ingest/dataset"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/source"
	"mixdown/ingest/trace"
)

// join adds execution traces to a dataset. What they say of groups holds for
// all ranks or for none, so that it follows when all ranks are there: the
// communication of all ranks is read, joined, and written back rank by rank.
type join struct {
	files       []source.File
	fingerprint string
}

func newJoin(ctx context.Context, in *input.Options) (*join, error) {
	files, err := in.FindExecutionTraces(ctx)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	for _, f := range files {
		fmt.Fprintf(sum, "%q %d %d\n", f.Name, f.Size, f.Modified)
	}
	return &join{files, fmt.Sprintf("%s (%d files, %.8x)", in.ExecutionTraces, len(files), sum.Sum(nil))}, nil
}

// apply joins the execution traces to the ranks, which were read without.
func (x *join) apply(ctx context.Context, j *job) error {
	d, err := dataset.Open(j.at)
	if err != nil {
		return err
	}
	run := &trace.Run{}
	for _, e := range d.Entries() {
		r, _, err := d.Communication(e.Rank)
		if err != nil {
			return err
		}
		run.Ranks = append(run.Ranks, r)
	}
	if err := input.JoinExecutionTraces(ctx, run, x.files); err != nil {
		return err
	}
	faults := map[int][]diagnostic.Diagnostic{}
	for _, f := range run.Diagnostics.List() {
		if run.ByRank(f.Rank) == nil {
			j.diags.Add(f)
			continue
		}
		faults[f.Rank] = append(faults[f.Rank], f)
	}
	progress := j.opts.Streams.NewProgress("joining")
	defer progress.Done()
	for i, e := range d.Entries() {
		if err := ctx.Err(); err != nil {
			return err
		}
		progress.Set(i, len(run.Ranks), e.From.Source)
		whole, diags, err := d.Rank(e.Rank)
		if err != nil {
			return err
		}
		whole.Operations, whole.Groups = run.Ranks[i].Operations, run.Ranks[i].Groups
		from := e.From
		from.ExecutionTraces = x.fingerprint
		if _, err := j.writer.Write(whole, append(diags, faults[e.Rank]...), from); err != nil {
			return err
		}
	}
	return nil
}
