package kineto

import (
	"cmp"
	"slices"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// hostPrefixes are the backends whose annotations last as long as the
// communication ran. Those of the others (nccl:, hccl:, xccl:) last as long as
// it took to enqueue it.
var hostPrefixes = []string{"gloo:", "mpi:"}

func onHost(rec *record) bool {
	return rec.kind == titleRecord && slices.ContainsFunc(hostPrefixes, func(p string) bool { return strings.HasPrefix(rec.name, p) })
}

// finish finds the communication of a rank once its whole file is read.
func (rd *reading) finish() {
	rank := rd.rank
	rank.CPUOnly = !slices.ContainsFunc(rank.Events.Category, trace.Category.OnDevice)
	fix := rd.fix
	if fix == "" {
		fix = FixNone
	}
	checkCausality(rd, fix)
	// What marks phases depends on nothing that is found below.
	phases := make(chan *innermost, 1)
	go func() { phases <- phaseMarkers(rank) }()
	n := newNest(rank, rd.records)
	host := hostComm{rd: rd, nest: n}
	issuers := host.find()
	calls := slices.DeleteFunc(n.calls(), func(c call) bool {
		return c.title >= 0 && onHost(&n.records[c.title]) || c.c10d >= 0 && issuers[c.c10d]
	})
	device := deviceComm{rd: rd, nest: n, calls: calls}
	device.find()
	slices.SortStableFunc(rank.Operations, func(a, b comm.Operation) int { return cmp.Compare(a.Issued, b.Issued) })
	slices.SortFunc(rank.Waits, func(a, b trace.Wait) int { return cmp.Compare(a.TS, b.TS) })
	slices.SortFunc(rank.Steps, func(a, b trace.Step) int { return cmp.Compare(a.Start, b.Start) })
	rd.number()
	findCycles(rank)
	setPhases(rank, <-phases, rd.launches)
	setModules(rank)
	rd.records = nil
}
