package plan

import (
	"google.golang.org/protobuf/proto"

	"mixdown/replay/plan/planpb"
)

// maxParts bounds into how many parts one operation is cut.
const maxParts = 1 << partBits

// Bucket makes a workload whose all_reduces are of about so many bytes, as if
// gradients had been gathered in buckets of that size: neighbours are fused as Fuse
// does it while their sum is no larger, and what is larger is cut into even parts.
// The parts start one after the other while the span before the operation runs,
// which is taken to make the gradient evenly. What is new has no Origin. It returns how many operations were
// fused away and how many were cut, counted once for all members.
func Bucket(w *planpb.Workload, size int64) (bucketed *planpb.Workload, fused, cut int) {
	f := &fusing{w: proto.CloneOf(w), most: size, sum: size}
	f.index()
	for g := range f.w.Groups {
		fused += f.group(int32(g))
	}
	f.drop()
	f.index()
	parts := map[*planpb.Communication]int64{}
	for g := range f.members {
		for _, members := range f.members[g] {
			first := f.communication(members[0])
			if first.Op != planpb.Op_OP_ALL_REDUCE || len(first.Parts) > 0 || Bytes(first) <= size {
				continue
			}
			n := (Bytes(first) + size - 1) / size
			if n > maxParts || n > first.InCount {
				continue
			}
			cut++
			for _, m := range members {
				parts[f.communication(m)] = n
			}
		}
	}
	for _, program := range f.w.Programs {
		cutProgram(program, parts)
	}
	renumber(f.w)
	return f.w, fused, cut
}

// cutProgram writes a program with its operations cut into parts.
func cutProgram(program *planpb.Program, parts map[*planpb.Communication]int64) {
	// maker is the span that makes what an operation reduces, by the span's id.
	maker := map[int32]int64{}
	madeBy := map[int32]int32{} // operation -> span
	for _, t := range program.Tasks {
		if c := t.GetCommunication(); c != nil {
			c.Seq <<= partBits
			n := parts[c]
			for i := len(t.Deps) - 1; i >= 0 && n > 0; i-- {
				d := t.Deps[i]
				if program.Tasks[d].GetSpan() != nil && maker[d] == 0 {
					maker[d], madeBy[t.Id] = n, d
					break
				}
			}
		}
	}
	last := make([]int32, len(program.Tasks))  // old -> the new task that ends it
	first := make([]int32, len(program.Tasks)) // the new task that begins it
	var tasks []*planpb.Task
	add := func(t *planpb.Task) {
		t.Id = int32(len(tasks))
		tasks = append(tasks, t)
	}
	for old, t := range program.Tasks {
		deps := make([]int32, len(t.Deps))
		for i, d := range t.Deps {
			deps[i] = last[d]
		}
		first[old] = int32(len(tasks))
		switch n := max(maker[int32(old)], parts[t.GetCommunication()]); {
		case n == 0:
			t.Deps = deps
			add(t)
		case t.GetSpan() != nil:
			whole := t.GetSpan().DurationNs
			for i := range n {
				p := proto.CloneOf(t)
				p.Deps = nil
				if i == 0 {
					p.Deps = deps
				}
				Resize(p.GetSpan(), part(whole, int(i), int(n)))
				add(p)
			}
		default:
			c := t.GetCommunication()
			for i := range n {
				p := proto.CloneOf(t)
				p.Deps, p.Origin = deps, nil
				if span, ok := madeBy[int32(old)]; ok {
					p.Deps = nil
					for k, d := range t.Deps {
						if d == span {
							p.Deps = append(p.Deps, first[span]+int32(i))
						} else {
							p.Deps = append(p.Deps, deps[k])
						}
					}
				}
				pc := p.GetCommunication()
				pc.Seq, pc.InBuffer, pc.OutBuffer = c.Seq+i, 0, 0
				pc.InCount, pc.OutCount = part(c.InCount, int(i), int(n)), part(c.OutCount, int(i), int(n))
				add(p)
			}
		}
		last[old] = int32(len(tasks)) - 1
	}
	for _, e := range program.Communicators {
		if int(e.Before) < len(first) {
			e.Before = first[e.Before]
		} else {
			e.Before = int32(len(tasks))
		}
	}
	program.Tasks = tasks
}
