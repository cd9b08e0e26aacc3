package report

import (
	"fmt"
	"strconv"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/analyze/straggler"
	"mixdown/ingest/comm"
)

// Clocks says how far times of different ranks can be compared; see package align.
type Clocks struct {
	Applied    bool   `json:"applied"` // clocks were moved
	Comparable bool   `json:"comparable"`
	Reason     string `json:"reason"`
	// Spread is how far apart the ends of matched collectives lie as traced, ns,
	// and Remaining after the correction; null when there were none to compare.
	Spread    *int64      `json:"spread_ns"`
	Remaining *int64      `json:"remaining_ns"`
	Ranks     []RankClock `json:"ranks"`
}

// RankClock is the correction of one rank's clock and what remains of it.
type RankClock struct {
	Rank     int     `json:"rank"`
	Offset   int64   `json:"offset_ns"`
	DriftPPM float64 `json:"drift_ppm"`
	Residual int64   `json:"residual_ns"`
	Matches  int     `json:"matches"`
}

func describeClocks(r *align.Result) Clocks {
	c := Clocks{Applied: r.Applied, Comparable: r.Connected, Reason: r.Reason, Ranks: []RankClock{}}
	if r.Compared > 0 {
		c.Spread, c.Remaining = &r.Spread, &r.Remaining
	}
	for _, k := range r.Clocks {
		c.Ranks = append(c.Ranks, RankClock{Rank: k.Rank, Offset: k.Offset, DriftPPM: k.DriftPPM(), Residual: k.Residual, Matches: k.Matches})
	}
	return c
}

// Stragglers are the ranks that others waited for; see package straggler.
type Stragglers struct {
	Wait       int64       `json:"wait_ns"`       // of all members of all collectives that could be judged
	Attributed int64       `json:"attributed_ns"` // of it, to a rank that came last alone
	Judged     int         `json:"collectives_judged"`
	Tied       int         `json:"collectives_tied"` // the last two came together
	Ranks      []LateRank  `json:"ranks"`            // the most caused first
	Worst      []LateMatch `json:"worst"`            // the single collectives with the most caused
}

// LateRank adds up what one rank made others wait.
type LateRank struct {
	Rank      int   `json:"rank"`
	Caused    int64 `json:"caused_ns"`
	Inherited int64 `json:"inherited_ns"` // of it, lost in waiting for another rank before
	Count     int   `json:"collectives"`
	Waited    int64 `json:"waited_ns"` // what it waited itself
}

// LateMatch is one collective that waited for one rank.
type LateMatch struct {
	Rank    int     `json:"rank"`
	Step    string  `json:"step"`
	Group   string  `json:"group"`
	Op      comm.Op `json:"op"`
	Seq     int     `json:"seq"`
	By      int64   `json:"by_ns"` // after the second-last
	Waiting int     `json:"waiting"`
	Caused  int64   `json:"caused_ns"`
}

// shownLate is how many single collectives a report lists.
const shownLate = 10

func describeStragglers(r *straggler.Report, m *collective.Matching) Stragglers {
	s := Stragglers{Wait: r.Wait, Attributed: r.Attributed, Judged: r.Judged, Tied: r.Tied, Ranks: []LateRank{}, Worst: []LateMatch{}}
	for _, t := range r.Ranks {
		s.Ranks = append(s.Ranks, LateRank{Rank: t.Rank, Caused: t.Caused, Inherited: t.Inherited, Count: t.Count, Waited: t.Waited})
	}
	for _, l := range r.Late[:min(shownLate, len(r.Late))] {
		s.Worst = append(s.Worst, LateMatch{
			Rank: l.Rank, Step: l.Step, Group: m.Groups[l.Group].Label(), Op: l.Op, Seq: l.Seq, By: l.By, Waiting: l.Waiting, Caused: l.Caused,
		})
	}
	return s
}

// shownStragglers is how many ranks the text names.
const shownStragglers = 5

func (a *Analysis) writeStragglers(p *Page) {
	if len(a.Ranks) < 2 {
		return
	}
	c := a.Clocks
	clocks := "Clocks: " + Printable(c.Reason)
	if c.Remaining != nil {
		clocks += fmt.Sprintf(" (ends of collectives lie %s apart", Duration(*c.Spread))
		if c.Applied {
			clocks += fmt.Sprintf(", %s after the correction", Duration(*c.Remaining))
		}
		clocks += ")"
	}
	p.Headingf("%s", clocks)
	if a.Stragglers.Attributed == 0 {
		return
	}
	p.Headingf("Stragglers: of %s that ranks waited in %d collectives, %s was for one rank alone",
		Duration(a.Stragglers.Wait), a.Stragglers.Judged, Duration(a.Stragglers.Attributed))
	g := NewGrid(Column{Head: "rank"}, Column{Head: "others waited for it"}, Column{Head: "of that inherited"}, Column{Head: "in collectives"}, Column{Head: "it waited"})
	for i, r := range a.Stragglers.Ranks {
		if i == shownStragglers || r.Caused == 0 {
			break
		}
		g.Row(strconv.Itoa(r.Rank), Duration(r.Caused), Duration(r.Inherited), strconv.Itoa(r.Count), Duration(r.Waited))
	}
	p.Grid(g)
}
