package input

import (
	"context"

	"mixdown/analyze/pipeline"
	"mixdown/analyze/report"
	"mixdown/cmd/mixdown/cli"
	"mixdown/ingest/chrome"
	"mixdown/ingest/megatron"
	"mixdown/replay/schedule"
	"mixdown/replay/sim"
)

// Pipelines finds the pipelines of a job that was loaded. A single file without
// communication may be the merged trace of a Megatron tracer, which holds all
// ranks of a pipeline; it is read again as that.
func (o *Options) Pipelines(ctx context.Context, job *Job, streams *cli.Streams) (*pipeline.Result, error) {
	if job.Found == nil {
		var err error
		if job.Found, err = o.findPipelines(ctx, job, streams); err != nil {
			return nil, err
		}
	}
	return job.Found, nil
}

func (o *Options) findPipelines(ctx context.Context, job *Job, streams *cli.Streams) (*pipeline.Result, error) {
	if run := job.Run; len(run.Ranks) == 1 && len(run.Ranks[0].Operations) == 0 {
		if found := o.megatron(ctx, streams); found != nil {
			return found, nil
		}
	}
	return pipeline.Find(job.Run, job.Match, pipeline.Options{Clocks: job.Clocks})
}

// megatron reads the input as a merged trace, nil when it is none: whatever it is
// instead was read already.
func (o *Options) megatron(ctx context.Context, streams *cli.Streams) *pipeline.Result {
	files, _, err := o.Traces(ctx, streams)
	if err != nil || len(files) != 1 || files[0].Name == "-" {
		return nil // a dataset, or what can't be read twice
	}
	r, err := files[0].Open()
	if err != nil {
		return nil
	}
	defer r.Close()
	limits := chrome.Options{MaxDepth: o.MaxDepth, MaxEvents: o.MaxEvents, MaxEventBytes: o.MaxEventBytes}
	read, err := megatron.Read(r, files[0].Name, megatron.Options{Limits: limits})
	if err != nil {
		return nil
	}
	return pipeline.FromMegatron(read)
}

// NameSchedule says what the order of a step is called.
func NameSchedule(s *pipeline.Step) report.ScheduleName {
	r := schedule.Recognise(sim.Order(s))
	return report.ScheduleName{Spec: r.Schedule(), Text: r.String(), Exact: r.Exact}
}

// Model makes the model of one of the pipelines of a job, counted from 0. Step is
