package tune

import (
	"mixdown/replay/tune"
)

// output is what --format json prints; "mixdown help tuning" documents it.
type output struct {
	SchemaVersion int                 `json:"schema_version"`
	Measurements  int                 `json:"measurements"`
	Environments  []environmentOutput `json:"environments"`
	Comparisons   []comparisonOutput  `json:"comparisons"`
	Losses        []lossOutput        `json:"losses"`
	Contentions   []contentionOutput  `json:"contentions"`
}

type environmentOutput struct {
	Hash      string            `json:"hash"`
	Hardware  string            `json:"hardware"`
	Libraries map[string]string `json:"libraries"`
	Variables map[string]string `json:"variables"`
}

type questionOutput struct {
	Op      string `json:"op"`
	Class   string `json:"class"`
	Device  string `json:"device"`
	Ranks   int    `json:"ranks"`
	Nodes   *int   `json:"nodes"` // null when not known
	Streams int    `json:"streams"`
	InStep  bool   `json:"in_step"`
}

type comparisonOutput struct {
	questionOutput
	Places    []placeOutput        `json:"places"`
	Crossings []crossingOutput     `json:"crossings"`
	Fits      map[string]fitOutput `json:"fits"` // by contender
}

// fitOutput is a line alpha + beta x bytes.
type fitOutput struct {
	Alpha    float64 `json:"alpha_ns"`
	Beta     float64 `json:"beta_ns_per_byte"`
	Residual float64 `json:"residual"` // root of the mean square of relative errors
}

type placeOutput struct {
	Bytes  int64            `json:"bytes"`
	Times  map[string]int64 `json:"times_ns"` // by contender
	Winner string           `json:"winner"`
	Clear  bool             `json:"clear"`
	Gain   float64          `json:"gain"` // the next best's time over the winner's
}

type crossingOutput struct {
	Bytes  int64  `json:"bytes"`
	Below  string `json:"below"`
	Above  string `json:"above"`
	Lower  int64  `json:"lower_bytes"`
	Higher int64  `json:"higher_bytes"`
}

type lossOutput struct {
	Contender string         `json:"contender"`
	Mean      float64        `json:"mean_ratio"`
	Worst     float64        `json:"worst_ratio"`
	Where     questionOutput `json:"worst"`
	Bytes     int64          `json:"worst_bytes"`
	Places    int            `json:"places"`
	Of        int            `json:"places_of"`
}

func newOutput(t *tune.Table, list []tune.Comparison) output {
	out := output{
		SchemaVersion: tune.SchemaVersion, Measurements: len(t.Rows),
		Environments: []environmentOutput{}, Comparisons: []comparisonOutput{}, Losses: []lossOutput{},
		Contentions: []contentionOutput{},
	}
	for _, c := range t.Contentions {
		out.Contentions = append(out.Contentions, newContentionOutput(c))
	}
	for _, e := range t.Environments {
		x := environmentOutput{Hash: e.Hash, Hardware: e.Hardware, Libraries: map[string]string{}, Variables: map[string]string{}}
		for _, l := range e.Libraries {
			x.Libraries[l.Name] = l.Version
		}
		for name, value := range e.Variables {
			x.Variables[name] = value
		}
		out.Environments = append(out.Environments, x)
	}
	for _, c := range list {
		x := comparisonOutput{questionOutput: question(c.Question), Places: []placeOutput{}, Crossings: []crossingOutput{}, Fits: map[string]fitOutput{}}
		for who, f := range c.Fits {
			x.Fits[who.String()] = fitOutput{f.Alpha, f.Beta, f.Residual}
		}
		for _, p := range c.Places {
			place := placeOutput{Bytes: p.Bytes, Times: map[string]int64{}, Winner: p.Winner.String(), Clear: p.Clear, Gain: p.Gain}
			for who, ns := range p.Times {
				place.Times[who.String()] = ns
			}
			x.Places = append(x.Places, place)
		}
		for _, k := range c.Crossings {
			x.Crossings = append(x.Crossings, crossingOutput{k.Bytes, k.Below.String(), k.Above.String(), k.Lower, k.Higher})
		}
		out.Comparisons = append(out.Comparisons, x)
	}
	for _, l := range tune.Losses(list) {
		out.Losses = append(out.Losses, lossOutput{l.Contender.String(), l.Mean, l.Worst, question(l.Where), l.Bytes, l.Places, l.Of})
	}
	return out
}

func question(q tune.Question) questionOutput {
	x := questionOutput{Op: string(q.Op), Class: q.Class, Device: q.Device, Ranks: q.Ranks, Streams: q.Streams, InStep: q.InStep}
	if q.Nodes > 0 {
		x.Nodes = &q.Nodes
	}
	return x
}
