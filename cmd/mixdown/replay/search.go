package replay

import (
	"fmt"

	"github.com/spf13/cobra"

	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/planning"
	"mixdown/cmd/mixdown/searching"
	"mixdown/replay/sharding"
	"mixdown/replay/sim"
)

// defaultTop is how many results of a search in a file are measured.
const defaultTop = 3

// searchFlags are those that only a search takes notice of.
var searchFlags = []string{"activation-bytes", "data-parallel", "loops", "max-memory", "memory-limit", "optimizer", "params", "pipeline", "sends"}

// whichSearch decides whether the best of a search are measured, and of which: that in a
// file, or one of its own.
func (o *Options) whichSearch(cmd *cobra.Command) error {
	top := cmd.Flags().Changed("top")
	switch {
	case top && o.Top < 1:
		return fmt.Errorf("%w: --top %d: expected at least 1", cli.ErrUsage, o.Top)
	case !top:
		o.Top = defaultTop
	}
	o.Search = top && o.SearchResult == ""
	if o.Search {
		return o.Orders.Check()
	}
	for _, name := range searchFlags {
		if !cmd.Flags().Changed(name) {
			continue
		}
		if o.SearchResult != "" {
			return fmt.Errorf("%w: --%s is of a search, and --search-result names one that was made: leave one out", cli.ErrUsage, name)
		}
		return fmt.Errorf("%w: --%s is of a search: --top N makes one and measures the best N", cli.ErrUsage, name)
	}
	if share := "weight-share"; cmd.Flags().Changed(share) && len(o.Plans.Schedules) == 0 && o.SearchResult == "" {
		return fmt.Errorf("%w: --%s is of other orders: name one with --schedule, or let --top N search", cli.ErrUsage, share)
	}
	return o.Orders.Check()
}

// search finds the best orders as "mixdown simulate --search" does, also with every mix
// where a table says what it costs.
func (o *Options) search(p *planning.Plans, searched *int) ([]planning.Candidate, error) {
	pipe, m, err := o.Orders.Model(p.Job.Found, o.Plans.Step)
	if err != nil {
		return nil, err
	}
	space := searching.Space{
		Job: p.Job, Pipeline: pipe, Model: m, Plans: p,
		Shape: sim.Shape{WeightShare: o.Orders.WeightShare, EarlyReductions: o.Plans.EarlyReductions},
	}
	if p.Costs != nil {
		space.Mixes = len(o.Plans.Mixes)
	}
	if space.Holding, err = o.Orders.Holding(m, sharding.None, sharding.Options{WeightBuffers: 1, GradientBuffers: 1}); err != nil {
		return nil, err
	}
	found, err := o.Orders.Search(space)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: --top: no order fits this pipeline within the limits (--max-memory, --memory-limit, --loops)", cli.ErrUsage)
	}
	*searched = len(found)
	base, _, err := m.Baseline()
	if err != nil {
		return nil, err
	}
	var list []planning.Candidate
	for i := range found[:min(o.Top, len(found))] {
		f := &found[i]
		c, err := planning.NewCandidate(f.Name(), f.Schedule, f.Rules, float64(base.Run.Step)/float64(f.Run.Step))
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}
