package measure

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/replay/mix"
)

// ErrGrid: a range to measure could not be read.
var ErrGrid = errors.New("invalid range to measure")

// ErrNothing: nothing was measured.
var ErrNothing = errors.New("nothing was measured")

// Grid is all combinations of its lists.
type Grid struct {
	Ops     []comm.Op
	DTypes  []comm.DType
	Sizes   []int64
	Ranks   []int
	Streams []int
}

// Points lists the points, each once.
func (g Grid) Points() []Point {
	var list []Point
	for _, op := range g.Ops {
		for _, dtype := range g.DTypes {
			for _, ranks := range g.Ranks {
				for _, streams := range g.Streams {
					for _, bytes := range g.Sizes {
						if p, ok := (Point{op, dtype, bytes, ranks, streams}).Normal(); ok {
							list = append(list, p)
						}
					}
				}
			}
		}
	}
	slices.SortFunc(list, comparePoints)
	return slices.Compact(list)
}

// defaultStep is the factor between sizes of a range: coarse, refined later.
const defaultStep = 8

// ParseSizes reads "8:64MiB", "8:64MiB:4" (each size 4 times the one before; 8
// times without) or "1KiB,64KiB,1MiB". The end of a range is measured too.
func ParseSizes(text string) ([]int64, error) {
	var sizes []int64
	for part := range strings.SplitSeq(text, ",") {
		fields := strings.Split(strings.TrimSpace(part), ":")
		if len(fields) > 3 {
			return nil, fmt.Errorf("%w: sizes %q: expected FROM:TO:FACTOR, for example 8:64MiB:4", ErrGrid, part)
		}
		from, err := mix.ParseSize(fields[0])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrGrid, err)
		}
		sizes = append(sizes, from)
		if len(fields) == 1 {
			continue
		}
		to, err := mix.ParseSize(fields[1])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrGrid, err)
		}
		step := int64(defaultStep)
		if len(fields) == 3 {
			if step, err = strconv.ParseInt(fields[2], 10, 64); err != nil || step < 2 {
				return nil, fmt.Errorf("%w: sizes %q: the factor is a whole number of at least 2", ErrGrid, part)
			}
		}
		if from < 1 || to < from {
			return nil, fmt.Errorf("%w: sizes %q: a range is from at least 1 byte up", ErrGrid, part)
		}
		for s := from; s <= to/step; {
			s *= step
			sizes = append(sizes, s)
		}
		sizes = append(sizes, to)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes), nil
}

// ParseOps reads a list of operations.
func ParseOps(text string) ([]comm.Op, error) {
	var ops []comm.Op
	for name := range strings.SplitSeq(text, ",") {
		op := comm.Op(strings.TrimSpace(name))
		if !slices.Contains(Ops(), op) {
			return nil, fmt.Errorf("%w: operation %q: known are %v", ErrGrid, name, Ops())
		}
		ops = append(ops, op)
	}
	return ops, nil
}

// ParseDTypes reads a list of element types.
func ParseDTypes(text string) ([]comm.DType, error) {
	var list []comm.DType
	for name := range strings.SplitSeq(text, ",") {
		d, ok := comm.ParseDType(name)
		if !ok {
			return nil, fmt.Errorf("%w: element type %q: for example float32 or bfloat16", ErrGrid, name)
		}
		list = append(list, d)
	}
	return list, nil
}

// ParseInts reads a list of numbers of at least least.
func ParseInts(text string, least int) ([]int, error) {
	var list []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < least || n > maxRanks {
			return nil, fmt.Errorf("%w: %q: expected whole numbers from %d to %d", ErrGrid, part, least, maxRanks)
		}
		list = append(list, n)
	}
	return list, nil
}

// maxRanks bounds the workers of one machine.
const maxRanks = 1024
