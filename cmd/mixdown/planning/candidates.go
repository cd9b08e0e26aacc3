package planning

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"mixdown/cmd/mixdown/cli"
	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/schedule"
)

// Candidate is a schedule with a mix, as "mixdown simulate --search" predicted it.
type Candidate struct {
	Name      string
	Schedule  string
	Mix       string // rules, or mix.Traced
	Predicted float64

	spec schedule.Spec
	mix  mix.Mix
}

// maxSearch bounds a search's result, in bytes: it is read whole.
const maxSearch = 256 << 20

// NewCandidate is a result of a search, for a plan.
func NewCandidate(name, order, rules string, predicted float64) (Candidate, error) {
	c := Candidate{Name: name, Schedule: order, Mix: rules, Predicted: predicted, mix: mix.Mix{Text: mix.Traced}}
	var err error
	if c.spec, err = schedule.Parse(order); err == nil && rules != "" && rules != mix.Traced {
		c.mix, err = mix.Parse(rules)
	}
	return c, err
}

// ReadCandidates reads the first `top` results of a search that a replay can run,
// and says in words why others before the last of them were left out.
func ReadCandidates(name string, top int) (list []Candidate, left []string, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: --search-result: %w", cli.ErrUsage, err)
	}
	if info.Size() > maxSearch {
		return nil, nil, fmt.Errorf("%w: --search-result %s: %d bytes are too many for a search's result", cli.ErrUsage, name, info.Size())
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, nil, fmt.Errorf("--search-result: %w", err)
	}
	var result struct {
		Searched int `json:"searched"`
		Variants []struct {
			Name      string            `json:"name"`
			Schedule  string            `json:"schedule"`
			Mix       string            `json:"mix"`
			Predicted float64           `json:"predicted_speedup"`
			Pareto    *bool             `json:"pareto"`
			Sharding  json.RawMessage   `json:"sharding"`
			WhatIfs   []json.RawMessage `json:"what_ifs"`
		} `json:"variants"`
	}
	if err := json.Unmarshal(data, &result); err != nil {
		return nil, nil, fmt.Errorf("%w: --search-result %s is not what mixdown simulate --search --format json writes: %w", cli.ErrUsage, name, err)
	}
	for _, v := range result.Variants {
		if len(list) == top {
			break
		}
		if v.Pareto == nil {
			continue // not of the search
		}
		c, err := NewCandidate(v.Name, v.Schedule, v.Mix, v.Predicted)
		if err != nil {
			return nil, nil, fmt.Errorf("--search-result %s: %w", name, err)
		}
		switch {
		case c.spec.Microbatches != 0:
			left = append(left, v.Name+": a replay has the traced micro-batches")
		case len(v.Sharding) > 0 && string(v.Sharding) != "null":
			left = append(left, v.Name+": a replay shards as the trace did")
		default:
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil, nil, fmt.Errorf("%w: --search-result %s has no order that a replay can run (%d results)", cli.ErrUsage, name, len(result.Variants))
	}
	return list, left, nil
}

// checkCandidates refuses backends that can't run, before anything is read.
func (o *Options) checkCandidates(canRun func(string) error) error {
	for _, c := range o.Candidates {
		for _, name := range c.mix.Backends() {
			if err := canRun(name); err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
		}
	}
	return nil
}

// addCandidates adds a variant for each result of a search.
func (o *Options) addCandidates(ctx context.Context, p *Plans, streams *cli.Streams) error {
	if len(o.Candidates) == 0 && o.Search == nil {
		return nil
	}
	pipelines, err := o.pipelines(ctx, p, streams)
	if err != nil {
		return err
	}
	candidates := o.Candidates
	if o.Search != nil {
		if candidates, err = o.Search(p); err != nil {
			return err
		}
	}
	for _, c := range candidates {
		if v := p.planned(c); v != nil {
			if _, has := p.Predicted[v.Name]; !has {
				p.Predicted[v.Name] = c.Predicted
			}
			continue
		}
		workload := p.Workload
		if !c.spec.IsTraced() {
			w, _, held, diags, err := o.reorder(p, pipelines, c.spec)
			if diags != nil {
				p.Diagnostics.Merge(diags)
			}
			if err != nil {
				return fmt.Errorf("%s, of the search: %w", c.Name, err)
			}
			workload, p.Memory[c.Name] = w, held
		}
		v, err := mix.Decide(workload, c.mix, c.Name, p.Stand)
		if err != nil {
			return fmt.Errorf("%s, of the search: %w", c.Name, err)
		}
		v.Schedule = c.Schedule
		if c.mix.IsTraced() {
			v.Mix = "*=" + p.Stand
		}
		p.Variants = append(p.Variants, v)
		p.Predicted[c.Name] = c.Predicted
	}
	return nil
}

// planned is the variant that does the same as a candidate in the traced order, nil
// without one: a mix that was asked for too.
func (p *Plans) planned(c Candidate) *planpb.Plan {
	if !c.spec.IsTraced() {
		return nil
	}
	for _, v := range p.Variants {
		if v.Schedule == schedule.Traced && v.Mix == c.Mix && !p.Fused[v.Name] && len(mix.Codecs(v)) == 0 {
			return v
		}
	}
	return nil
}
