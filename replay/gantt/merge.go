package gantt

import "math"

// MaxBars is how many bars an SVG shows one by one; of more, neighbours too
// narrow to be seen are drawn as one.
const MaxBars = 20000

// MaxRows is how many rows of a chart an SVG shows, the first and the last ones.
const MaxRows = 256

// drawn is a bar as it is drawn: one, or several that stand for one.
type drawn struct {
	Bar
	count int
	busy  [phases]float64 // time that the bars in it take
}

// all is the time that the bars in it take together.
func (d drawn) all() float64 {
	sum := 0.0
	for _, t := range d.busy {
		sum += t
	}
	return sum
}

// shown are the rows of a chart that are drawn.
func shown(rows int) []int {
	var list []int
	for r := range rows {
		if rows <= MaxRows || r < MaxRows/2 || r >= rows-MaxRows/2 {
			list = append(list, r)
		}
	}
	return list
}

// merge draws neighbours of a row as one where they are narrower than a slot of
// the time axis: its bars of one lane whose middles are in the same slot.
func merge(row []Bar, slot float64) []drawn {
	var list []drawn
	open := [Lower + 1]int{-1, -1, -1} // by lane: the one that bars are added to
	for _, b := range row {
		d := drawn{Bar: b, count: 1}
		d.busy[b.Phase] = b.End - b.Start
		if slot <= 0 || b.End-b.Start >= slot {
			list = append(list, d)
			continue
		}
		at := open[b.Lane]
		place := func(b Bar) float64 { return math.Floor((b.Start + b.End) / 2 / slot) }
		if at < 0 || place(list[at].Bar) != place(b) {
			open[b.Lane] = len(list)
			list = append(list, d)
			continue
		}
		m := &list[at]
		m.End = max(m.End, b.End)
		m.count++
		m.busy[b.Phase] += b.End - b.Start
		if m.Chunk != b.Chunk {
			m.Chunk = Unknown
		}
	}
	return list
}

// slot is the width in time below which bars are drawn with their neighbours, 0
// if there is room for all.
func (f Figure) slot() float64 {
	bars, rows := 0, 0
	for _, c := range f.Charts {
		list := shown(len(c.Rows))
		rows += len(list)
		in := make([]bool, len(c.Rows))
		for _, r := range list {
			in[r] = true
		}
		for _, b := range c.Bars {
			if in[b.Row] {
				bars++
			}
		}
	}
	if bars <= MaxBars {
		return 0
	}
	// Half for what is merged, mostly of two phases, half for what is too wide
	// to be.
	slots := max(16, MaxBars/4/max(1, rows))
	return f.end() / float64(slots)
}
