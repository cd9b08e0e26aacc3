package simulate

import (
	"bytes"
	"context"
	"fmt"

	"mixdown/analyze/export"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/input"
	"mixdown/cmd/mixdown/page"
	"mixdown/cmd/mixdown/planning"
)

// checkPage refuses a page that can't be written, before anything is read.
func (o *Options) checkPage() error {
	if o.HTML == "" {
		return nil
	}
	if err := export.CheckFile(o.HTML); err != nil {
		return fmt.Errorf("%w: --html %s: %w", cli.ErrUsage, o.HTML, err)
	}
	return nil
}

// page writes the result for people, beside the analysis of the traces. Plans is nil
// where none were made.
func (o *Options) page(ctx context.Context, job *input.Job, plans *planning.Plans, r *Result) error {
	if o.HTML == "" {
		return nil
	}
	in := &o.Plans.Input
	sums, err := in.Checksums(ctx, job.Run)
	if err != nil {
		return err
	}
	out := page.Result{Verb: "simulate", Value: r, Job: job, Checksums: sums}
	if plans != nil {
		out.Table, out.TableFile = plans.Table, o.Plans.Table
	}
	if r.base != nil {
		var svg bytes.Buffer
		if err := r.figure().SVG(&svg); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
		out.Picture = svg.Bytes()
	}
	if err := page.WriteResult(o.HTML, out, page.Process(in.Args)); err != nil {
		return fmt.Errorf("--html %s: %w", o.HTML, err)
	}
	return nil
}
