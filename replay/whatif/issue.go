package whatif

import (
	"cmp"
	"container/heap"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// byIssue lists the tasks of a program in the order in which its hosts
// issued them, and numbers them so: in a workload they stand by when they began, and
// of two that were queued the one that was issued later may have begun first. A
// collective of a host begins after the span that the host went on with. What
// the host did not launch goes with the task before it on its stream.
func byIssue(p *planpb.Program) {
	onHost := func(i int32) bool { return plan.IsHost(p.Streams[p.Tasks[i].Stream].Name) }
	n := len(p.Tasks)
	q := &issueQueue{issued: make([]int32, n)} // by task: the host task that ended with its launch
	last := map[int32]int32{}                  // by stream
	waits, after := make([]int32, n), make([][]int32, n)
	for i, t := range p.Tasks {
		q.issued[i] = -1
		if onHost(int32(i)) {
			q.issued[i] = int32(i)
		}
		if before, ok := last[t.Stream]; ok {
			q.issued[i] = max(q.issued[i], q.issued[before])
			after[before] = append(after[before], int32(i))
			waits[i]++
		}
		last[t.Stream] = int32(i)
		for _, d := range t.Deps {
			if onHost(d) {
				q.issued[i] = max(q.issued[i], d)
			}
			after[d] = append(after[d], int32(i))
			waits[i]++
		}
	}
	for i := range n {
		if waits[i] == 0 {
			heap.Push(q, int32(i))
		}
	}
	number := make([]int32, n)
	tasks := make([]*planpb.Task, 0, n)
	for q.Len() > 0 {
		i := heap.Pop(q).(int32)
		number[i] = int32(len(tasks))
		tasks = append(tasks, p.Tasks[i])
		for _, next := range after[i] {
			if waits[next]--; waits[next] == 0 {
				heap.Push(q, next)
			}
		}
	}
	if len(tasks) < n {
		return // they wait for each other: playing them says so
	}
	for i, t := range tasks {
		t.Id = int32(i)
		for k, d := range t.Deps {
			t.Deps[k] = number[d]
		}
	}
	for _, e := range p.Communicators {
		if int(e.Before) < n {
			e.Before = number[e.Before]
		}
	}
	p.Tasks = tasks
}

// issueQueue is tasks that can be listed, the one that was issued first on top.
type issueQueue struct {
	issued []int32
	ready  []int32
}

func (q *issueQueue) Len() int { return len(q.ready) }
func (q *issueQueue) Less(i, j int) bool {
	a, b := q.ready[i], q.ready[j]
	return cmp.Or(cmp.Compare(q.issued[a], q.issued[b]), cmp.Compare(a, b)) < 0
}
func (q *issueQueue) Swap(i, j int) { q.ready[i], q.ready[j] = q.ready[j], q.ready[i] }
func (q *issueQueue) Push(x any)    { q.ready = append(q.ready, x.(int32)) }
func (q *issueQueue) Pop() any {
	n := len(q.ready) - 1
	x := q.ready[n]
	q.ready = q.ready[:n]
	return x
}
