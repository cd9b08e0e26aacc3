package html

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mixdown/analyze/report"
)

// Limits of the tables: beyond them a page says how much it leaves out.
const (
	maxRanks = 64
	maxRows  = report.DefaultRows
)

// segment is a part of a bar, in per cent of the longest bar.
type segment struct {
	Kind string
	X, W string
	Tip  string
}

// bar lays segments side by side.
type bar struct {
	whole int64
	at    int64
	list  []segment
}

func (b *bar) add(kind, what string, ns int64) {
	if ns <= 0 || b.whole <= 0 {
		return
	}
	b.list = append(b.list, segment{
		Kind: kind, X: of(b.at, b.whole), W: of(ns, b.whole),
		Tip: what + " " + report.Duration(ns),
	})
	b.at += ns
}

// of is part of whole in per cent, for coordinates.
func of(part, whole int64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.2f", 100*float64(part)/float64(whole)), ".00")
}

// rankRow is a rank's time with its bar.
type rankRow struct {
	Rank                                               int
	Bar                                                []segment
	Span, Compute, Exposed, Hidden, Memory, Idle, Part string
	CPU                                                bool
	Truncated                                          bool
}

// ranksView is the table of ranks.
type ranksView struct {
	Rows    []rankRow
	Left    int
	CPUOnly bool
	// Min, Median and Max of the exposed share, when there are too many rows.
	Spread string
}

// rankRows shows, where there are too many, those with the most exposed
// communication.
func rankRows(a *report.Analysis) ranksView {
	v := ranksView{}
	list := slices.Clone(a.Ranks)
	var longest int64
	for _, r := range list {
		longest = max(longest, r.Time.Span)
		v.CPUOnly = v.CPUOnly || r.Device == "cpu"
	}
	if len(list) > maxRanks {
		slices.SortStableFunc(list, func(x, y report.Rank) int { return cmp.Compare(y.Time.Exposed, x.Time.Exposed) })
		middle := list[len(list)/2].Time
		v.Spread = fmt.Sprintf("Exposed communication: most %s (rank %d), median %s, least %s (rank %d).",
			report.Duration(list[0].Time.Exposed), list[0].Rank, report.Duration(middle.Exposed), report.Duration(list[len(list)-1].Time.Exposed), list[len(list)-1].Rank)
		v.Left = len(list) - maxRanks
		list = list[:maxRanks]
		slices.SortFunc(list, func(x, y report.Rank) int { return cmp.Compare(x.Rank, y.Rank) })
	}
	for _, r := range list {
		t := r.Time
		b := bar{whole: longest}
		b.add("compute", "computation", t.Compute-t.Hidden)
		b.add("hidden", "computation with communication behind it", t.Hidden)
		b.add("exposed", "exposed communication", t.Exposed)
		b.add("memory", "copies", t.Span-t.Idle-t.Compute-t.Exposed)
		b.add("launch", "idle: launched late", t.IdleLaunch)
		b.add("sync", "idle: the host waited", t.IdleSync)
		b.add("idle", "idle", t.Idle-t.IdleLaunch-t.IdleSync)
		v.Rows = append(v.Rows, rankRow{
			Rank: r.Rank, Bar: b.list, Span: report.Duration(t.Span), Compute: report.Duration(t.Compute), Exposed: report.Duration(t.Exposed),
			Hidden: report.Duration(t.Hidden), Memory: report.Duration(t.Memory), Idle: report.Duration(t.Idle), Part: percent(t.Exposed, t.Span), Truncated: r.Truncated,
		})
	}
	return v
}

// lateRow is a rank that others waited for.
type lateRow struct {
	Rank                      int
	Own, Waits                []segment
	Caused, Inherited, Waited string
	Count                     int
}

// lateRows are the ranks that caused or suffered waiting.
func lateRows(a *report.Analysis) (rows []lateRow, left int) {
	var longest int64
	for _, r := range a.Stragglers.Ranks {
		longest = max(longest, r.Caused, r.Waited)
	}
	for _, r := range a.Stragglers.Ranks {
		if r.Caused == 0 && r.Waited == 0 {
			continue
		}
		if len(rows) == 16 {
			left++
			continue
		}
		own, waited := bar{whole: longest}, bar{whole: longest}
		own.add("caused", "others waited for its own lateness", r.Caused-r.Inherited)
		own.add("inherited", "others waited, but it had waited itself", r.Inherited)
		waited.add("wait", "it waited", r.Waited)
		rows = append(rows, lateRow{
			Rank: r.Rank, Own: own.list, Waits: waited.list, Caused: report.Duration(r.Caused), Inherited: report.Duration(r.Inherited), Waited: report.Duration(r.Waited), Count: r.Count,
		})
	}
	return rows, left
}

// kindRow is a part of the critical path.
type kindRow struct {
	Name, Time, Part string
	Bar              []segment
}

// pathRows are the parts of the critical path, the longest first.
func pathRows(c *report.CriticalPath) []kindRow {
	names := map[string]string{"communication-wait": "waiting", "communication-transfer": "transfer"}
	kinds := map[string]string{"communication-wait": "wait", "communication-transfer": "transfer"}
	var rows []kindRow
	for _, k := range c.ByKind {
		if k.NS == 0 {
			continue
		}
		name, kind := string(k.Kind), string(k.Kind)
		if n, ok := names[name]; ok {
			name, kind = n, kinds[kind]
		}
		b := bar{whole: c.StepNS}
		b.add(kind, name, k.NS)
		rows = append(rows, kindRow{Name: name, Time: report.Duration(k.NS), Part: percent(k.NS, c.StepNS), Bar: b.list})
	}
	return rows
}
