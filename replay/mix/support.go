package mix

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mixdown/replay/plan/planpb"
)

// checkSupport: the backends can do what they are to do (E5), and the process
// can hold them all.
func (m *model) checkSupport(found *collector) {
	m.checkFamilies(found)
	type kind struct {
		comm     int32
		op       planpb.Op
		dtype    planpb.DType
		reduceOp planpb.ReduceOp
		codec    string
	}
	known := map[kind]string{}
	for p, program := range m.w.Programs {
		for i, t := range program.Tasks {
			n := m.base[p] + int32(i)
			comm := m.commOf[n]
			if comm < 0 {
				continue
			}
			c := t.GetCommunication()
			if c.Backend == "" {
				found.add("E5", "none", func() Finding {
					return m.finding([]int32{n}, fmt.Sprintf("no backend is chosen for %s on rank %d", opName(c), program.Rank),
						"make the plan with \"mixdown plan\": it chooses one for every operation")
				})
				continue
			}
			k := kind{comm, c.Op, c.Dtype, c.ReduceOp, CodecName(c.Compression)}
			why, ok := known[k]
			if !ok {
				why = m.cap(comm).refuses(c)
				known[k] = why
			}
			if why == "" && m.cap(comm).MaxCount > 0 {
				if n := largestCount(c); n > m.cap(comm).MaxCount {
					why = fmt.Sprintf("%d elements in one operation, at most %d", n, m.cap(comm).MaxCount)
				}
			}
			if why != "" {
				found.add("E5", fmt.Sprintf("cannot/%d/%s", m.comms[comm].backend, why[:min(12, len(why))]), func() Finding {
					return m.finding([]int32{n}, fmt.Sprintf("%s can't run %s of group %s on rank %d: %s", c.Backend, opName(c), m.groupName(c.Group), program.Rank, why),
						fmt.Sprintf("put a rule for it before the others in the mix, for example %s=gloo", opName(c)))
				})
			}
		}
	}
}

// checkFamilies: a process can hold one library of a family.
func (m *model) checkFamilies(found *collector) {
	first := map[string]string{}
	for i := range m.backends {
		b := &m.backends[i]
		if b.cap.Family == "" {
			continue
		}
		have, ok := first[b.cap.Family]
		if !ok {
			first[b.cap.Family] = b.name
			continue
		}
		found.add("E5", "family/"+b.cap.Family, func() Finding {
			return Finding{
				Message: fmt.Sprintf("%s and %s can't be mixed: a process can load one %s library only", have, b.name, strings.ToUpper(b.cap.Family)),
				Advice:  "make two plans of it, one with each",
			}
		})
	}
}

// refuses says why the backend can't do an operation, "" when it can.
func (c *Capability) refuses(op *planpb.Communication) string {
	name, dtype := string(opName(op)), dtypeName(op)
	switch {
	case len(c.Ops) > 0 && !slices.Contains(c.Ops, name):
		return "it does not have this operation"
	case name == "barrier":
		return ""
	case op.Compression != nil && c.StreamOrdered:
		return "its buffers are in device memory, and codecs compress in the host's"
	case op.Compression != nil && CodecName(op.Compression) == "":
		return "its compression is of no known codec"
	case op.Compression != nil && notCompressed(op, op.Compression) != "":
		return notCompressed(op, op.Compression)
	case dtype == "":
		return "the element type is not known"
	case len(c.DTypes) > 0 && !slices.Contains(c.DTypes, dtype):
		return "it has no " + dtype
	case reduces(op.Op) && len(c.ReduceOps) > 0 && !slices.Contains(c.ReduceOps, reduceOpName(op)):
		return "it has no reduction " + reduceOpName(op)
	case reduces(op.Op) && op.ReduceOp == planpb.ReduceOp_REDUCE_OP_AVG && slices.Contains(c.NoAverage, dtype):
		return "it can't average " + dtype
	}
	return ""
}

// largestCount is the most elements that one count or displacement of an
// operation is. What each member contributes or receives counts as a whole where
// parts are uneven: their displacements go that far.
func largestCount(c *planpb.Communication) int64 {
	switch c.Op {
	case planpb.Op_OP_ALL_TO_ALLV, planpb.Op_OP_ALL_GATHERV, planpb.Op_OP_REDUCE_SCATTERV, planpb.Op_OP_GATHERV, planpb.Op_OP_SCATTERV, planpb.Op_OP_ALL_REDUCE:
		return max(c.InCount, c.OutCount)
	}
	var largest int64
	for _, t := range c.Transfers {
		largest = max(largest, t.Count)
	}
	switch {
	case len(c.Transfers) > 0:
		return largest
	case c.InCount == 0 || c.OutCount == 0:
		return max(c.InCount, c.OutCount)
	}
	return min(c.InCount, c.OutCount) // of the parts; an all_to_all's are smaller still
}

// gaps lists what the plan does not say, so that it can't be checked.
func (m *model) gaps() []Gap {
	list := []Gap{{Code: "W4", Why: "the plan does not list what of the trace was left out of it: \"mixdown plan\" says so when it makes one"}}
	all, unnamed := m.unnamedBuffers()
	switch {
	case all > 0 && unnamed == all:
		list = append(list, Gap{Code: "E6", Why: "the plan has no buffers: whether one is used again too early can't be seen"})
	case unnamed > 0:
		list = append(list, Gap{Code: "E6", Why: fmt.Sprintf("%s of %d without buffers, and all computation: whether one is used again too early there can't be seen", countOf(int(unnamed), "communication"), all)})
	case all > 0:
		list = append(list, Gap{Code: "E6", Why: "the plan does not say what memory computation uses: whether it does too early can't be seen"})
	}
	for _, program := range m.w.Programs {
		if all > unnamed && tooLarge(program) {
			list = append(list, Gap{Code: "E6", Why: fmt.Sprintf("rank %d has too many tasks and streams to look for buffers that are used again too early", program.Rank)})
			break
		}
	}
	if ranks := m.unknownLives(); len(ranks) > 0 {
		list = append(list, Gap{Code: "E7", Why: m.notSaidBy(ranks, "when communicators are made and destroyed") + "; the worker does both in one order on all ranks"})
	}
	if ranks := m.unknownSettings(); len(ranks) > 0 {
		list = append(list, Gap{Code: "E9", Why: m.notSaidBy(ranks, "which tuning files and environment they have") + ": see to it that they are the same on all ranks"})
	}
	var unknown []string
	measured := false
	for i := range m.backends {
		if !m.backends[i].known && m.backends[i].name != "" {
			unknown = append(unknown, m.backends[i].name)
		}
		measured = measured || len(m.backends[i].cap.Measured) > 0
	}
	if len(unknown) > 0 {
		list = append(list, Gap{Code: "E5", Why: fmt.Sprintf("nothing is known of %s: taken to do everything in host memory (--capabilities)", strings.Join(unknown, ", ")), Open: true})
	}
	if !measured {
		list = append(list, Gap{Code: "W5", Why: "the plan does not say which measurements its choices rest on"})
	}
	slices.SortStableFunc(list, func(a, b Gap) int { return cmp.Compare(a.Code, b.Code) })
	return list
}

// notSaidBy words what the plan does not say of some or all ranks.
func (m *model) notSaidBy(ranks []int32, what string) string {
	if len(ranks) == len(m.w.Programs) {
		return "the plan does not say " + what
	}
	return fmt.Sprintf("the plan does not say of %s: %s", ranksText(ranks), what)
}
