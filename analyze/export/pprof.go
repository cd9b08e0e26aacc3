package export

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/google/pprof/profile"

	"mixdown/analyze/overlap"
	"mixdown/analyze/report"
)

// The values of a sample, in this order.
const (
	valueExposed = iota // ns without computation
	valueTotal          // ns that the operations ran, waiting included
	valueWait           // ns until the last member arrived, where known
	valueBytes          // the larger of contributed and received
	valueCount          // operations
	valuesPerSample
)

// WritePprof writes what communication cost as a pprof profile: gzipped
// profile.proto, see github.com/google/pprof/proto/profile.proto.
//
// The stack of a sample is, from the root, phase, module or annotation, process
// group, operation, size class. A profile has no null: where wait or size is not
// known, the sample counts 0 and has the label wait=unknown or the frame
// "size unknown", and the profile's comments say how many operations it concerns.
func WritePprof(ctx context.Context, w io.Writer, in *Input) error {
	x := newExporter(in)
	b := &profileBuilder{
		samples: map[sampleKey]*profile.Sample{}, locations: map[string]*profile.Location{},
		profile: &profile.Profile{
			SampleType: []*profile.ValueType{
				valueExposed: {Type: "exposed", Unit: "nanoseconds"},
				valueTotal:   {Type: "total", Unit: "nanoseconds"},
				valueWait:    {Type: "wait", Unit: "nanoseconds"},
				valueBytes:   {Type: "bytes", Unit: "bytes"},
				valueCount:   {Type: "count", Unit: "count"},
			},
			DefaultSampleType: "exposed",
			// Without a mapping that says it has functions, pprof looks for a binary.
			Mapping: []*profile.Mapping{{ID: 1, File: "mixdown", HasFunctions: true}},
		},
	}
	var first, last int64
	seen := false
	for r := range in.Run.Ranks {
		if err := ctx.Err(); err != nil {
			return err
		}
		activity := overlap.Measure(in.Run.Ranks[r])
		if activity.End > activity.Start {
			if !seen {
				first, last, seen = activity.Start, activity.End, true
			}
			first, last = min(first, activity.Start), max(last, activity.End)
		}
		for _, o := range x.operations(r, activity) {
			b.add(in.Run.Ranks[r].Rank, &o)
		}
	}
	p := b.finish()
	p.DurationNanos = last - first
	if err := p.CheckValid(); err != nil {
		return fmt.Errorf("pprof: %w", err)
	}
	if err := p.Write(w); err != nil {
		return fmt.Errorf("pprof: %w", err)
	}
	return nil
}

// sampleKey is what the operations of one sample have in common.
type sampleKey struct {
	frames       [5]string // from the root
	rank         int
	group, dtype string
	timed        bool
}

type profileBuilder struct {
	profile        *profile.Profile
	samples        map[sampleKey]*profile.Sample
	keys           []sampleKey
	locations      map[string]*profile.Location
	untimed, unsiz int64 // operations
}

func (b *profileBuilder) add(rank int, o *operation) {
	k := sampleKey{rank: rank, group: o.label, timed: o.timed}
	k.frames = [5]string{"phase unknown", "no module", "group " + o.label, string(o.kind), "size unknown"}
	if p := o.phase.String(); p != "" {
		k.frames[0] = p
	}
	if o.Module != "" {
		k.frames[1] = o.Module
	} else if o.annotation != "" {
		k.frames[1] = o.annotation
	}
	if o.SizeKnown {
		k.dtype = string(o.DType)
	}
	size := int64(0)
	if o.sized() {
		size = max(o.InBytes(), o.OutBytes())
		k.frames[4] = sizeClass(size)
	} else {
		b.unsiz++
	}
	if !o.timed {
		b.untimed++
	}
	s := b.samples[k]
	if s == nil {
		s = &profile.Sample{Value: make([]int64, valuesPerSample), Label: map[string][]string{"rank": {strconv.Itoa(rank)}, "group": {printable(o.label)}}}
		if k.dtype != "" {
			s.Label["dtype"] = []string{printable(k.dtype)}
		}
		if !o.timed {
			s.Label["wait"] = []string{"unknown"}
		}
		b.samples[k] = s
		b.keys = append(b.keys, k)
	}
	s.Value[valueExposed] += o.exposed
	s.Value[valueTotal] += o.busy
	s.Value[valueWait] += o.wait
	s.Value[valueBytes] += size
	s.Value[valueCount]++
}

// finish puts the samples into the profile, in an order that does not depend on
// how the run was read.
func (b *profileBuilder) finish() *profile.Profile {
	slices.SortStableFunc(b.keys, func(p, q sampleKey) int {
		return cmp.Or(cmp.Compare(p.rank, q.rank), slices.Compare(p.frames[:], q.frames[:]), cmp.Compare(p.dtype, q.dtype))
	})
	for _, k := range b.keys {
		s := b.samples[k]
		for _, name := range slices.Backward(k.frames[:]) { // a sample has its leaf first
			s.Location = append(s.Location, b.location(name))
		}
		b.profile.Sample = append(b.profile.Sample, s)
	}
	for _, c := range []struct {
		n    int64
		what string
	}{{b.untimed, "wait"}, {b.unsiz, "size"}} {
		if c.n > 0 {
			b.profile.Comments = append(b.profile.Comments, fmt.Sprintf("the %s of %d operations is not known and counts as 0", c.what, c.n))
		}
	}
	return b.profile
}

func (b *profileBuilder) location(name string) *profile.Location {
	if l := b.locations[name]; l != nil {
		return l
	}
	f := &profile.Function{ID: uint64(len(b.profile.Function) + 1), Name: printable(name), SystemName: printable(name)}
	l := &profile.Location{ID: f.ID, Mapping: b.profile.Mapping[0], Line: []profile.Line{{Function: f}}}
	b.profile.Function = append(b.profile.Function, f)
	b.profile.Location = append(b.profile.Location, l)
	b.locations[name] = l
	return l
}

// printable is a name as terminals may show it.
func printable(s string) string { return report.Printable(s) }
