package whatif

import "fmt"

var repartition = Kind{
	Name: "repartition", Example: "repartition",
	Summary: "stages are cut between layers so that the longest one is as short as can be",
	Formula: "the contiguous partition of the layers with the least longest stage, by dynamic programming over their mean forward and backward",
	Source:  "BaPipe (arXiv 2012.12544)",
	Cost:    "memory: weights and activations move with the layers; the fullest rank may hold more", NotModeled: "messages of another size at the new cuts; a layer is not cut within",
	Order: true, once: true,
	parse: func(string) (change, error) { return balance{}, nil },
}

type balance struct{}

func (balance) order(o *Order) error {
	if !o.Model.LayersKnown() {
		return fmt.Errorf("%w: the trace shows no layers within stages, so nothing to cut between (record modules: with_modules=True, or annotate layers)", ErrNotApplicable)
	}
	times := make([]float64, o.Model.Layers())
	for layer := range times {
		times[layer] = o.Model.LayerTime(layer)
	}
	stages := o.Order.Stages()
	if stages > len(times) {
		return fmt.Errorf("%w: %d stages of %d layers", ErrNotApplicable, stages, len(times))
	}
	cut, longest := Balance(times, stages)
	o.Shape.Cut = cut
	o.layers = func(stage int) int64 {
		end := len(times)
		if stage+1 < len(cut) {
			end = cut[stage+1]
		}
		return int64(end - cut[stage])
	}
	var sizes []int64
	for s := range stages {
		sizes = append(sizes, o.layers(s))
	}
	o.note("layers per stage %v; the longest stage takes %.2f ms of a micro-batch, forward and backward", sizes, longest/1e6)
	return nil
}

// Balance cuts layers into so many stages of at least one layer, each a run of
// layers, so that the longest stage takes as little as can be. It returns the first
// layer of each stage, and what the longest takes. There are at least as many layers
// as stages.
func Balance(times []float64, stages int) (cut []int, longest float64) {
	n := len(times)
	sum := make([]float64, n+1)
	for i, t := range times {
		sum[i+1] = sum[i] + t
	}
	// best[s][i]: the first i layers in s+1 stages; at[s][i]: where the last begins.
	best, at := make([][]float64, stages), make([][]int, stages)
	for s := range stages {
		best[s], at[s] = make([]float64, n+1), make([]int, n+1)
		for i := s + 1; i <= n; i++ {
			if s == 0 {
				best[s][i] = sum[i]
				continue
			}
			best[s][i] = -1
			for j := s; j < i; j++ {
				if most := max(best[s-1][j], sum[i]-sum[j]); best[s][i] < 0 || most < best[s][i] {
					best[s][i], at[s][i] = most, j
				}
			}
		}
	}
	cut = make([]int, stages)
	for s, end := stages-1, n; s >= 0; s-- {
		cut[s] = at[s][end]
		end = cut[s]
	}
	return cut, best[stages-1][n]
}
