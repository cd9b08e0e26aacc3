package plan

import (
	"errors"

	"google.golang.org/protobuf/proto"

	"mixdown/replay/plan/planpb"
)

// ErrNothingToFuse: no two neighbouring operations can be made one.
var ErrNothingToFuse = errors.New("nothing to fuse")

// Fuse makes a workload in which neighbouring collectives of a group become one:
// both all_reduce, of the same type and reduction, each of at most so many bytes.
// They are fused where no member needs the result of the first before it issues
// the second; who waited for either waits for both. It returns how many
// operations were saved, counted once for all members.
//
// This is tensor fusion as MCR-DL and Horovod do it. Copying into one buffer and
// out again takes time that the workload does not have. What was fused has no
// Origin.
func Fuse(w *planpb.Workload, most int64) (*planpb.Workload, int) {
	f := &fusing{w: proto.CloneOf(w), most: most}
	f.index()
	saved := 0
	for g := range f.w.Groups {
		saved += f.group(int32(g))
	}
	f.drop()
	return f.w, saved
}

// place is where a member of a collective stands.
type place struct{ program, task int }

type fusing struct {
	w    *planpb.Workload
	most int64 // bytes of each of the two
	sum  int64 // bytes of both together, 0: any
	// members[group][seq] are the places of a collective.
	members map[int32]map[int64][]place
	gone    map[place]place // fused task -> the one it became a part of
	part    map[place]place // the other way
}

func (f *fusing) index() {
	f.members, f.gone, f.part = map[int32]map[int64][]place{}, map[place]place{}, map[place]place{}
	for r, program := range f.w.Programs {
		for i, t := range program.Tasks {
			c := t.GetCommunication()
			if c == nil || Op(c).IsP2P() {
				continue
			}
			if f.members[c.Group] == nil {
				f.members[c.Group] = map[int64][]place{}
			}
			f.members[c.Group][c.Seq] = append(f.members[c.Group][c.Seq], place{r, i})
		}
	}
}

// group fuses what it can of one group, from the first collective to the last.
func (f *fusing) group(g int32) int {
	saved := 0
	for seq := int64(0); ; seq++ {
		a, b := f.members[g][seq], f.members[g][seq+1]
		if b == nil {
			return saved
		}
		if len(a) != len(b) || !f.alike(a[0], b[0]) {
			continue
		}
		free := true
		for i := range a {
			free = free && a[i].program == b[i].program && !f.needs(b[i], a[i])
		}
		if !free {
			continue
		}
		for i := range a {
			into, from := f.communication(b[i]), f.communication(a[i])
			into.InCount += from.InCount
			into.OutCount += from.OutCount
			into.InBuffer, into.OutBuffer = 0, 0
			f.w.Programs[b[i].program].Tasks[b[i].task].Origin = nil // nothing in the trace is like it
			f.gone[a[i]], f.part[b[i]] = b[i], a[i]
		}
		saved++
	}
}

func (f *fusing) communication(p place) *planpb.Communication {
	return f.w.Programs[p.program].Tasks[p.task].GetCommunication()
}

// alike says whether two collectives can be one.
func (f *fusing) alike(a, b place) bool {
	x, y := f.communication(a), f.communication(b)
	return x.Op == planpb.Op_OP_ALL_REDUCE && y.Op == x.Op && x.Dtype == y.Dtype && x.ReduceOp == y.ReduceOp &&
		len(x.Parts) == 0 && len(y.Parts) == 0 && Bytes(x) <= f.most && Bytes(y) <= f.most &&
		(f.sum == 0 || Bytes(x)+Bytes(y) <= f.sum)
}

// needs says whether a task can only start once an earlier one of its program has
// ended, but for the order of the stream that both are on.
func (f *fusing) needs(later, earlier place) bool {
	program := f.w.Programs[later.program]
	same := program.Tasks[later.task].Stream == program.Tasks[earlier.task].Stream
	after := map[int32]bool{} // the earlier one, what became part of it, and tasks that wait for them
	first := earlier.task
	for at, ok := earlier, true; ok; at, ok = f.part[at] {
		after[int32(at.task)] = true
		first = min(first, at.task)
	}
	onStream := map[int32]bool{}
	if !same {
		onStream[program.Tasks[earlier.task].Stream] = true
	}
	for i := first + 1; i <= later.task; i++ {
		if after[int32(i)] {
			continue
		}
		t := program.Tasks[i]
		waits := onStream[t.Stream]
		for _, d := range t.Deps {
			waits = waits || after[d]
		}
		if !waits {
			continue
		}
		if i == later.task {
			return true
		}
		after[int32(i)] = true
		onStream[t.Stream] = true
	}
	return false
}

// drop takes the fused tasks out: who depended on one depends on what it became
// part of, and what that one waits for includes what the first did.
func (f *fusing) drop() {
	for r, program := range f.w.Programs {
		became := make([]int32, len(program.Tasks)) // task -> the one that does its work
		for i := len(program.Tasks) - 1; i >= 0; i-- {
			became[i] = int32(i)
			if into, ok := f.gone[place{r, i}]; ok {
				became[i] = became[into.task]
				into := program.Tasks[into.task]
				into.Deps = append(into.Deps, program.Tasks[i].Deps...)
			}
		}
		f.reorder(program, became)
	}
	renumber(f.w)
}

// reorder writes the tasks of a program again, each after what it depends on: what
// waits for a fused operation may have stood before it.
func (f *fusing) reorder(program *planpb.Program, became []int32) {
	old := program.Tasks
	number := make([]int32, len(old)) // old -> new id + 1, 0: not yet
	var tasks []*planpb.Task
	next := make([]int, len(program.Streams)) // by stream: position in its tasks
	byStream := make([][]int32, len(program.Streams))
	for i := range old {
		if became[i] == int32(i) {
			byStream[old[i].Stream] = append(byStream[old[i].Stream], int32(i))
		}
	}
	for again := true; again; {
		again = false
		for s := range byStream {
			for next[s] < len(byStream[s]) {
				t := old[byStream[s][next[s]]]
				ready := true
				for _, d := range t.Deps {
					ready = ready && number[became[d]] > 0
				}
				if !ready {
					break
				}
				deps := t.Deps
				t.Deps = nil
				seen := map[int32]bool{}
				for _, d := range deps {
					if n := number[became[d]] - 1; !seen[n] && tasks[n].Stream != t.Stream {
						seen[n] = true
						t.Deps = append(t.Deps, n)
					}
				}
				number[byStream[s][next[s]]] = int32(len(tasks)) + 1
				t.Id = int32(len(tasks))
				tasks = append(tasks, t)
				next[s]++
				again = true
			}
		}
	}
	program.Tasks = tasks
}
