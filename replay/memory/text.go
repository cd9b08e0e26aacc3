package memory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mixdown/replay/schedule"
)

// Line is what ranks hold in one line, with how much more or less than before
// where before is given: "rank 0: 12 chunks held (+50 %), 3.1 GiB activations;
// rank 1: ...". Neighbouring ranks that hold the same are named together.
func Line(ranks, before []Rank) string {
	var parts []string
	for i := 0; i < len(ranks); {
		words := ranks[i].words(at(before, i))
		last := i
		for last+1 < len(ranks) && ranks[last+1].words(at(before, last+1)) == words {
			last++
		}
		name := fmt.Sprintf("rank %d", ranks[i].Rank)
		if last > i {
			name = fmt.Sprintf("ranks %d-%d", ranks[i].Rank, ranks[last].Rank)
		}
		parts = append(parts, name+": "+words)
		i = last + 1
	}
	return strings.Join(parts, "; ")
}

func at(ranks []Rank, i int) *Rank {
	if i < len(ranks) {
		return &ranks[i]
	}
	return nil
}

// words is what a rank holds.
func (r Rank) words(before *Rank) string {
	text := fmt.Sprintf("%d chunks held", r.Chunks)
	if r.Chunks == 1 {
		text = "1 chunk held"
	}
	if before != nil && before.Chunks > 0 && before.Chunks != r.Chunks {
		text += fmt.Sprintf(" (%+.0f %%)", 100*float64(r.Chunks-before.Chunks)/float64(before.Chunks))
	}
	for _, part := range []struct {
		name  string
		bytes *int64
	}{{"activations", r.Activations}, {"weights", r.Weights}, {"gradients", r.Gradients}, {"optimizer", r.Optimizer}, {"buffers", r.Buffers}} {
		if part.bytes != nil && *part.bytes > 0 {
			text += ", " + Bytes(*part.bytes) + " " + part.name
		}
	}
	if r.Total != nil {
		text += ", " + Bytes(*r.Total) + " in all"
	}
	return text
}

// Bytes is a number of bytes for people, in units of 1024.
func Bytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	size, unit := float64(n), 0
	for size >= 1023.95 && unit < len(units)-1 {
		size /= 1024
		unit++
	}
	digits := 1
	if unit == 0 || size >= 99.95 {
		digits = 0
	}
	return strconv.FormatFloat(size, 'f', digits, 64) + " " + units[unit]
}

// Outcome is what a schedule costs.
type Outcome struct {
	Time   schedule.Rational // of a step, in any unit, the same for both of a comparison
	Stages int               // that the model is cut into
	Ranks  []Rank
}

// Compare says in one line what after wins and loses against before, for the
// same model and micro-batches: "1.18x faster, 2.0x activation memory (8 -> 16
// chunks on rank 0)". The memory is that of the rank that holds most. Where
// bytes aren't known, chunks are counted, each as large a part of the model as
// the number of stages makes it.
func Compare(before, after Outcome) string {
	parts := []string{speed(before.Time, after.Time)}
	if len(before.Ranks) > 0 && len(after.Ranks) > 0 {
		parts = append(parts, activations(before, after))
		if b, a := largest(before.Ranks), largest(after.Ranks); b != nil && a != nil {
			parts = append(parts, fmt.Sprintf("%s -> %s in all", Bytes(*b), Bytes(*a)))
		}
	}
	return strings.Join(parts, ", ")
}

func speed(before, after schedule.Rational) string {
	switch {
	case before.Sign() <= 0 || after.Sign() <= 0:
		return "speed not known"
	case before.Equal(after):
		return "as fast"
	case after.Cmp(before) < 0:
		return before.Quo(after).Decimal(2) + "x faster"
	}
	return after.Quo(before).Decimal(2) + "x slower"
}

// most is the rank that holds most activations, the first of several, and how
// much: bytes, or chunks in parts of the model.
func (o Outcome) most(inBytes bool) (Rank, schedule.Rational) {
	var best Rank
	var held schedule.Rational
	for i, r := range o.Ranks {
		share := schedule.Ratio(int64(r.Chunks), int64(max(1, o.Stages)))
		if inBytes {
			share = schedule.Int(*r.Activations)
		}
		if i == 0 || share.Cmp(held) > 0 {
			best, held = r, share
		}
	}
	return best, held
}

func activations(before, after Outcome) string {
	unknown := func(r Rank) bool { return r.Activations == nil }
	inBytes := !slices.ContainsFunc(before.Ranks, unknown) && !slices.ContainsFunc(after.Ranks, unknown)
	was, from := before.most(inBytes)
	is, to := after.most(inBytes)
	text := "activation memory not known"
	if from.Sign() > 0 {
		ratio := to.Quo(from)
		text = ratio.Decimal(1) + "x activation memory"
		switch {
		case ratio.Equal(schedule.Int(1)):
			text = "same activation memory"
		case ratio.Cmp(schedule.Int(1)) < 0 || text == "1.0x activation memory":
			text = ratio.Decimal(2) + "x activation memory"
		}
	}
	size := ""
	if before.Stages != after.Stages && after.Stages > 0 {
		size = fmt.Sprintf(", each %s as large,", schedule.Ratio(int64(before.Stages), int64(after.Stages)))
	}
	return fmt.Sprintf("%s (%d -> %d chunks%s on rank %d)", text, was.Chunks, is.Chunks, size, is.Rank)
}

// largest is the most that any rank holds in all, nil unless all are known.
func largest(ranks []Rank) *int64 {
	var best *int64
	for _, r := range ranks {
		if r.Total == nil {
			return nil
		}
		if best == nil || *r.Total > *best {
			best = r.Total
		}
	}
	return best
}
