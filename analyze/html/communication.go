package html

import (
	"cmp"
	"fmt"
	"slices"

	"mixdown/analyze/report"
)

// byExposed orders the communication table by what it costs the step.
func byExposed(rows []report.Communication) []report.Communication {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b report.Communication) int { return cmp.Compare(b.Exposed, a.Exposed) })
	return rows
}

// size writes bytes, "unknown size" when not known.
func size(n *int64) string {
	if n == nil {
		return "unknown size"
	}
	return report.Size(*n)
}

// commRow is a row of the communication table.
type commRow struct {
	Group, Op, Phase, In, Out, DType string
	Ranks, Count                     string
	Exposed, Total, Wait, Transfer   string
	BusBW                            string
	Estimated                        bool
	Split                            []segment // waiting and transfer
	Cost                             []segment // exposed and hidden
}

// commRows is the table by size, the most exposed first.
func commRows(a *report.Analysis) (rows []commRow, left int, estimated bool) {
	list := byExposed(a.Communication)
	var longest int64
	for _, c := range list {
		longest = max(longest, c.Total)
	}
	for _, c := range list {
		guess := c.Splits != nil && *c.Splits == report.SplitsEstimated
		estimated = estimated || guess
		if len(rows) == maxRows {
			left++
			continue
		}
		row := commRow{
			Group: report.Printable(c.Group), Op: report.Printable(string(c.Op)), In: unknown(c.InBytes, report.Size), Out: unknown(c.OutBytes, report.Size),
			Count: fmt.Sprint(c.Count), Exposed: report.Duration(c.Exposed), Total: report.Duration(c.Total), Estimated: guess,
			Wait: unknown(c.Wait, report.Duration), Transfer: unknown(c.Transfer, report.Duration), BusBW: "–",
			DType: "?", Ranks: "?",
		}
		if c.DType != nil {
			row.DType = report.Printable(*c.DType)
		}
		if c.Ranks != nil {
			row.Ranks = fmt.Sprint(*c.Ranks)
		}
		if c.BusBW != nil {
			row.BusBW = bandwidth(*c.BusBW)
		}
		row.Cost, row.Split = bars(c.Exposed, c.Total, longest, c.Wait, c.Transfer)
		rows = append(rows, row)
	}
	return rows, left, estimated
}

// phaseRows is the table by phase.
func phaseRows(list []PhaseRow) (rows []commRow, left int) {
	var longest int64
	for _, r := range list {
		longest = max(longest, r.Total)
	}
	for _, r := range list {
		if len(rows) == maxRows {
			left++
			continue
		}
		row := commRow{
			Group: report.Printable(r.Group), Op: report.Printable(r.Op), Phase: r.Phase, Count: fmt.Sprint(r.Count),
			Exposed: report.Duration(r.Exposed), Total: report.Duration(r.Total), Wait: unknown(r.Wait, report.Duration), Transfer: unknown(r.Transfer, report.Duration),
		}
		if row.Phase == "" {
			row.Phase = "?"
		}
		row.Phase = report.Printable(row.Phase)
		row.Cost, row.Split = bars(r.Exposed, r.Total, longest, r.Wait, r.Transfer)
		rows = append(rows, row)
	}
	return rows, left
}

// bars are what communication costs, against the longest row, and how it divides
// into waiting and transfer, against itself.
func bars(exposed, total, longest int64, wait, transfer *int64) (cost, split []segment) {
	c := bar{whole: longest}
	c.add("exposed", "exposed", exposed)
	c.add("hidden", "hidden by computation", total-exposed)
	if wait != nil && transfer != nil && *wait+*transfer > 0 {
		s := bar{whole: *wait + *transfer}
		s.add("wait", "waiting", *wait)
		s.add("transfer", "transfer", *transfer)
		split = s.list
	}
	return c.list, split
}

// unknown writes a number that may not be known.
func unknown(n *int64, write func(int64) string) string {
	if n == nil {
		return "?"
	}
	return write(*n)
}

// bandwidth writes GB/s with no more digits than a reader compares.
func bandwidth(gbps float64) string {
	if gbps > 0 && gbps < 0.001 {
		return "<0.001"
	}
	return fmt.Sprintf("%.3g", gbps)
}
