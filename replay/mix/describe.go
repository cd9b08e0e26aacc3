package mix

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"mixdown/replay/plan"
)

// finding is a finding about some tasks.
func (m *model) finding(tasks []int32, message, advice string) Finding {
	f := Finding{Message: message, Advice: advice}
	for _, n := range tasks {
		o := m.operation(n)
		if !slices.ContainsFunc(f.Operations, func(have Operation) bool { return have.Rank == o.Rank && have.Task == o.Task }) {
			f.Operations = append(f.Operations, o)
		}
		f.Ranks = append(f.Ranks, o.Rank)
		if o.Group != "" {
			f.Groups = append(f.Groups, o.Group)
		}
	}
	slices.Sort(f.Ranks)
	f.Ranks = slices.Compact(f.Ranks)
	slices.Sort(f.Groups)
	f.Groups = slices.Compact(f.Groups)
	return f
}

// operation describes a communication; of another task only where it is.
func (m *model) operation(n int32) Operation {
	t, rank := m.task(n)
	o := Operation{Rank: rank, Task: t.Id}
	if from := t.Origin; from != nil {
		ts, dur, offset := from.Ts, from.Dur, from.Ts-m.origin
		o.TraceNs, o.DurNs, o.offset = &ts, &dur, &offset
	}
	c := t.GetCommunication()
	if c == nil {
		o.Op = "wait"
		if t.GetSpan() != nil {
			o.Op = "span"
		}
		return o
	}
	o.Op, o.Group, o.Backend, o.of = string(opName(c)), m.groupLabel(c.Group), c.Backend, m.groupName(c.Group)
	o.Bytes = plan.Bytes(c)
	if !plan.Op(c).IsP2P() {
		seq := c.Seq
		o.Seq = &seq
		return o
	}
	var to, from []int32
	var bytes int64
	for _, tr := range c.Transfers {
		bytes += tr.Count * plan.DType(c).Size()
		if tr.Send {
			to = append(to, tr.Peer)
		} else {
			from = append(from, tr.Peer)
		}
	}
	o.Bytes = max(o.Bytes, bytes)
	var peers []string
	if len(to) > 0 {
		peers = append(peers, "to "+ranksText(to))
	}
	if len(from) > 0 {
		peers = append(peers, "from "+ranksText(from))
	}
	o.Peers = strings.Join(peers, ", ")
	return o
}

// String names the operation as people look for it in a trace.
func (o Operation) String() string {
	if o.of == "" {
		return o.short()
	}
	text := fmt.Sprintf("%s on %s (task %d", o.short(), orNone(o.Backend), o.Task)
	if o.offset != nil {
		text += fmt.Sprintf(", at %.3f ms", float64(*o.offset)/1e6)
	}
	return text + ")"
}

// short names the operation in a sentence.
func (o Operation) short() string {
	var b strings.Builder
	b.WriteString(o.Op)
	if o.Seq != nil {
		fmt.Fprintf(&b, " %d", *o.Seq)
	}
	if o.Peers != "" {
		b.WriteString(" " + o.Peers)
	}
	if o.of != "" {
		fmt.Fprintf(&b, " of group %s", o.of)
	}
	return b.String()
}

// String says the step in words.
func (s Step) String() string {
	return fmt.Sprintf("rank %d starts %s only after %s: %s", s.Rank, s.Then, s.First, s.Why)
}

// ranksText lists ranks, runs shortened: "rank 3", "ranks 0-3, 7".
func ranksText(ranks []int32) string {
	list := slices.Clone(ranks)
	slices.Sort(list)
	list = slices.Compact(list)
	if len(list) == 1 {
		return fmt.Sprintf("rank %d", list[0])
	}
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && int64(list[j+1]) == int64(list[j])+1 {
			j++
		}
		switch {
		case j == i:
			parts = append(parts, fmt.Sprint(list[i]))
		case j == i+1:
			parts = append(parts, fmt.Sprint(list[i]), fmt.Sprint(list[j]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", list[i], list[j]))
		}
		i = j + 1
	}
	if len(parts) > maxRanksShown {
		parts = append(parts[:maxRanksShown], "...")
	}
	return "ranks " + strings.Join(parts, ", ")
}

// maxRanksShown bounds the entries of a list of ranks in a message.
const maxRanksShown = 12

// bytesText is a size for people.
func bytesText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, u := float64(n), 0
	for v >= 1024 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	if v == math.Trunc(v) {
		return fmt.Sprintf("%.0f %s", v, units[u])
	}
	return fmt.Sprintf("%.1f %s", v, units[u])
}
