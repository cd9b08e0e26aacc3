package diff

import (
	"fmt"
	"strings"

	"mixdown/ingest/comm"
)

// notes says what can't be compared and what to keep in mind.
func (d *Diff) notes(a, b *Summary, renamed []string) {
	add := func(code, format string, args ...any) {
		d.Notes = append(d.Notes, Note{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	d.rankNotes(a, b, add)
	d.stepNotes(a, b, add)
	d.keyNotes(a, b, renamed, add)
	if a.Device != b.Device {
		add("device-differs", "before ran on %s, after on %s: times of the two are not alike", a.Device, b.Device)
	}
	if a.Backend != b.Backend {
		add("backend-differs", "backend %s before, %s after", orNone(a.Backend), orNone(b.Backend))
	}
	eachOf(a, b, func(name string, s *Summary) {
		if !s.ClocksComparable && s.Operations > 0 {
			add("clocks-not-comparable", "%s: the clocks of its ranks can't be compared: wait and transfer are not known", name)
		}
	})
	d.waitNote(add)
	d.blockingNote(a, b, add)
}

// waitNote counts what has no wait though the clocks would allow it.
func (d *Diff) waitNote(add addNote) {
	for _, side := range []struct {
		name  string
		side  *Side
		of    func(*Operation) *int64
		ranks func(*Operation) int
	}{
		{"before", &d.Before, func(o *Operation) *int64 { return o.Wait.Before }, func(o *Operation) int { return o.RanksBefore }},
		{"after", &d.After, func(o *Operation) *int64 { return o.Wait.After }, func(o *Operation) int { return o.RanksAfter }},
	} {
		unknown, all := 0, 0
		for i := range d.Operations {
			if o := &d.Operations[i]; side.ranks(o) > 0 {
				all++
				if side.of(o) == nil {
					unknown++
				}
			}
		}
		if unknown > 0 && side.side.ClocksComparable {
			add("wait-unknown", "%s: wait and transfer of %d of %d kinds of operations are not known: not matched on all ranks, or point-to-point on the host", side.name, unknown, all)
		}
	}
}

type addNote func(code, format string, args ...any)

func eachOf(a, b *Summary, do func(name string, s *Summary)) {
	do("before", a)
	do("after", b)
}

func (d *Diff) rankNotes(a, b *Summary, add addNote) {
	if a.WorldSize != b.WorldSize {
		add("world-size-differs", "%d ranks before, %d after: changes are of means over the ranks that took part; sums are not comparable", a.WorldSize, b.WorldSize)
		d.shapeNote(add)
		for i := range d.Operations {
			switch d.Operations[i].Op {
			case comm.AllGather, comm.ReduceScatter, comm.AllGatherV, comm.ReduceScatterV:
				add("size-grows-with-group", "the larger side of all_gather and reduce_scatter grows with the group: the same operation may be in another size class")
				return
			}
		}
	} else if a.StepRanks != b.StepRanks {
		add("ranks-read-differ", "steps of %d ranks before, %d after: changes are of means over the ranks that took part; sums are not comparable", a.StepRanks, b.StepRanks)
	}
	eachOf(a, b, func(name string, s *Summary) {
		if n := len(s.RanksMissing); n > 0 {
			add("ranks-missing", "%s: %d of %d ranks are missing", name, n, s.WorldSize)
		}
	})
}

// shapeNote says that groups without a name are other groups in another world.
func (d *Diff) shapeNote(add addNote) {
	for i := range d.Operations {
		if g := d.Operations[i].Group; g != nil && (strings.HasPrefix(*g, shapeGroups) || strings.HasPrefix(*g, shapeRanks)) {
			add("groups-by-members", "some groups are known by their members only (%s): in another world size the same group has others, and its operations appear and vanish", *g)
			return
		}
	}
}

func (d *Diff) stepNotes(a, b *Summary, add addNote) {
	switch {
	case a.Steps > 0 != (b.Steps > 0):
		add("steps-unknown", "only one run's steps are known: the other's numbers are of its whole trace, and no change is given")
	case a.Steps == 0:
		add("steps-unknown", "no steps in either run: numbers are of the whole traces, which may hold different amounts of work")
	case a.Steps < MinSteps || b.Steps < MinSteps:
		add("not-enough-steps", "%s before, %d after: not enough steps for a test (%d each), so no p-values", counting(a.Steps, "step"), b.Steps, MinSteps)
	}
	eachOf(a, b, func(name string, s *Summary) {
		if s.partial > 0 {
			add("steps-incomplete", "%s: %d steps are not on all ranks; the samples are steps of %d", name, s.partial, s.StepRanks)
		}
		if s.Outside > 0 {
			add("outside-steps", "%s: %d operations were issued outside the steps compared and are left out", name, s.Outside)
		}
	})
	if a.inferred != b.inferred && a.Steps > 0 && b.Steps > 0 {
		add("steps-inferred", "the steps of one run are not marked in its traces but taken from its communication: they need not begin in the same place")
	}
}

func (d *Diff) keyNotes(a, b *Summary, renamed []string, add addNote) {
	if a.Operations > 0 && b.Operations > 0 {
		for _, k := range []struct {
			name string
			a, b bool
		}{{"groups", a.knows.group, b.knows.group}, {"sizes", a.knows.size, b.knows.size}, {"phases", a.knows.phase, b.knows.phase}} {
			if k.a != k.b {
				add("key-unknown", "%s are known of one run only: compared without them", k.name)
			}
		}
	}
	if len(renamed) > 0 {
		add("groups-matched", "groups named differently, with the same members (before = after): %s", strings.Join(renamed, ", "))
	}
}

// blockingNote warns when one side only shows a logger that makes communication
// blocking (DeepSpeed#4738): its overlap is gone, which no change of the job did.
func (d *Diff) blockingNote(a, b *Summary, add addNote) {
	eachOf(a, b, func(name string, s *Summary) {
		other := a
		if s == a {
			other = b
		}
		switch {
		case s.commsLogs && !other.commsLogs:
			add("comms-logger", "%s: a communications logger ran there and not in the other: it waits for every operation, which takes overlap away", name)
		case s.Blocking != nil && other.Blocking != nil && *s.Blocking >= blockingFrom && *other.Blocking <= blockingTo:
			add("blocking-sync", "%s: the program waits for the device right after %.0f %% of its communication (%.0f %% in the other), as with DeepSpeed's comms logger on: overlap is not comparable",
				name, 100**s.Blocking, 100**other.Blocking)
		}
	})
}

func orNone(s string) string {
	if s == "" {
		return "not known"
	}
	return s
}
