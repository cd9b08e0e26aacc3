package export

import (
	"cmp"
	"slices"

	"mixdown/analyze/pipeline"
)

// taskRow is one task of a pipeline.
type taskRow struct {
	pipeline, rank int
	step           string
	chunk          int
	*pipeline.Task
}

// taskRows lists the tasks of all pipelines.
func (e *exporter) taskRows() []taskRow {
	rows := []taskRow{}
	for i, p := range e.Pipelines {
		for s := range p.Steps {
			step := &p.Steps[s]
			for place, tasks := range step.Tasks {
				held := []int{}
				for stage, at := range p.StagePlace {
					if at == place {
						held = append(held, stage)
					}
				}
				for n := range tasks {
					rows = append(rows, taskRow{i, p.Ranks[place], step.Name, slices.Index(held, tasks[n].Stage), &tasks[n]})
				}
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b taskRow) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.rank, b.rank)) })
	return rows
}

// tasksLayout: the tasks of the pipelines of the run.
func tasksLayout() layout[taskRow] {
	type r = taskRow
	return layout[r]{
		name: "pipeline_tasks", sorted: []string{"ts", "rank"}, about: "passes of micro-batches through the stages of the run's pipelines; empty where it has none",
		columns: []column[r]{
			whole("pipeline", "", "which copy of the model, from 0", func(x *r) int64 { return int64(x.pipeline) }),
			whole("rank", "", "global rank", func(x *r) int64 { return int64(x.rank) }),
			word("step", "training step", func(x *r) string { return x.step }),
			whole("stage", "", "in the order micro-batches pass them, from 0", func(x *r) int64 { return int64(x.Stage) }),
			maybe("chunk", "", "which of the rank's stages, from 0", func(x *r) (int64, bool) { return int64(x.chunk), x.chunk >= 0 }),
			whole("microbatch", "", "", func(x *r) int64 { return int64(x.Microbatch) }),
			word("task", "forward, backward, input gradient or weight gradient", func(x *r) string { return x.Phase.String() }),
			word("action", "as PyTorch writes it", func(x *r) string { return x.String() }),
			whole("ts", "ns", "start of the work", func(x *r) int64 { return x.Start }),
			whole("dur", "ns", "length of the work; waiting is no part of it", func(x *r) int64 { return x.Dur() }),
			maybe("arrived_ns", "ns", "when what it needs of another rank was there; null where it needs nothing or nothing tells", func(x *r) (int64, bool) { return x.Arrived, x.Arrived != pipeline.Unknown }),
		},
	}
}
