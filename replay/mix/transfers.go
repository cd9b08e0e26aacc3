package mix

import (
	"cmp"
	"fmt"
	"slices"
)

// pair is a transfer with both its ends.
type pair struct{ send, recv transferEnd }

// pairTransfers finds the two ends of every transfer and compares them (E2); it
// returns those that have both.
func (m *model) pairTransfers(found *collector) []pair {
	ends := m.transfers
	slices.SortFunc(ends, func(a, b transferEnd) int {
		sendFirst := 0
		if a.send != b.send {
			sendFirst = 1
			if a.send {
				sendFirst = -1
			}
		}
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to),
			cmp.Compare(a.match, b.match), sendFirst, cmp.Compare(a.task, b.task))
	})
	var pairs []pair
	for i := 0; i < len(ends); {
		j := i + 1
		for j < len(ends) && ends[j].sameTransfer(&ends[i]) {
			j++
		}
		if j-i == 2 && ends[i].send && !ends[i+1].send {
			p := pair{ends[i], ends[i+1]}
			m.comparePair(found, p)
			pairs = append(pairs, p)
		} else {
			m.unpaired(found, ends[i:j])
		}
		i = j
	}
	m.checkUntagged(found, pairs)
	return pairs
}

func (e *transferEnd) sameTransfer(o *transferEnd) bool {
	return e.group == o.group && e.from == o.from && e.to == o.to && e.match == o.match
}

// unpaired reports a transfer that has not one send and one receive.
func (m *model) unpaired(found *collector, ends []transferEnd) {
	e := ends[0]
	kind, message := "twice", fmt.Sprintf("transfer %d from rank %d to rank %d in group %s is there %d times on one side",
		e.match, e.from, e.to, m.groupName(e.group), len(ends)-1)
	if len(ends) == 1 {
		kind, message = "sent", fmt.Sprintf("rank %d sends to rank %d what that one never receives", e.from, e.to)
		if !e.send {
			kind, message = "received", fmt.Sprintf("rank %d receives from rank %d what that one never sends", e.to, e.from)
		}
	}
	found.add("E2", kind, func() Finding {
		return m.finding([]int32{e.task}, message+": it waits for ever",
			"leave the operation out on both ranks, or add its other side")
	})
}

// comparePair compares the ends of a transfer.
func (m *model) comparePair(found *collector, p pair) {
	s, r := m.communication(p.send.task), m.communication(p.recv.task)
	between := fmt.Sprintf("from rank %d to rank %d in group %s", p.send.from, p.send.to, m.groupName(p.send.group))
	tasks := []int32{p.send.task, p.recv.task}
	if s.Backend != r.Backend {
		found.add("E5", "ends", func() Finding {
			return m.finding(tasks, fmt.Sprintf("a transfer %s is sent on %s and received on %s: it never arrives", between, orNone(s.Backend), orNone(r.Backend)),
				"let the rules of a mix that name send, recv or batch name the same backend for all three")
		})
	}
	if CodecName(s.Compression) != CodecName(r.Compression) {
		found.add("E2", "compression", func() Finding {
			return m.finding(tasks, fmt.Sprintf("a transfer %s is sent with compression %s and received with %s", between, orPlain(s.Compression), orPlain(r.Compression)),
				"compress both sides alike; \"mixdown plan --compress\" does")
		})
	}
	if s.Dtype != r.Dtype || p.send.count != p.recv.count {
		found.add("E2", "size", func() Finding {
			return m.finding(tasks, fmt.Sprintf("a transfer %s is %d elements of %s where it is sent and %d of %s where it is received",
				between, p.send.count, s.Dtype, p.recv.count, r.Dtype), "the trace was matched wrongly, or one side is damaged")
		})
	}
}

// checkUntagged: where a library pairs messages of two ranks by their order,
// sends and receives must be in the same order. The calls of one batch count in
// the order in which they are listed.
func (m *model) checkUntagged(found *collector, pairs []pair) {
	for _, p := range pairs {
		comm := m.commOf[p.send.task]
		if p.send.order == p.recv.order || !m.cap(comm).Untagged {
			continue
		}
		found.add("E2", fmt.Sprintf("order/%d", p.send.group), func() Finding {
			return m.finding([]int32{p.send.task, p.recv.task},
				fmt.Sprintf("what rank %d sends to rank %d as number %d is received as number %d, and %s has no tags to tell them apart",
					p.send.from, p.send.to, p.send.order, p.recv.order, m.backendName(comm)),
				"issue sends and receives between two ranks in the same order on both")
		})
	}
}
