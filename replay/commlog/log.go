package commlog

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"mixdown/ingest/comm"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// ErrMismatch: times are not those of the plan.
var ErrMismatch = errors.New("times don't fit the plan")

// Log is the communication of one plan as its workers ran it.
type Log struct {
	plan  *planpb.Plan
	calls [][]call // by worker, in the order of the plan's programs
	least map[key]int64
}

// key is a collective on all its members.
type key struct {
	iteration, group int32
	seq              int64
}

// call is one communication of one rank.
type call struct {
	key
	collective    bool
	op            comm.Op
	backend       string
	in, out       int64 // bytes
	members       int
	durNS         int64
	task          int32
	name, groupIs string
}

// New is an empty log of a plan.
func New(p *planpb.Plan) *Log {
	return &Log{plan: p, calls: make([][]call, len(p.GetWorkload().GetPrograms())), least: map[key]int64{}}
}

// Add adds the sampled times of one iteration of a worker. Tasks that are no
// communication are passed over.
func (l *Log) Add(worker int, it *planpb.Iteration) error {
	if worker < 0 || worker >= len(l.calls) {
		return fmt.Errorf("%w: worker %d of %d", ErrMismatch, worker, len(l.calls))
	}
	w := l.plan.Workload
	tasks := w.Programs[worker].Tasks
	for _, t := range it.GetTasks() {
		if t.Task < 0 || int(t.Task) >= len(tasks) || t.EndNs < t.StartNs {
			return fmt.Errorf("%w: task %d of %d, from %d to %d ns", ErrMismatch, t.Task, len(tasks), t.StartNs, t.EndNs)
		}
		c := tasks[t.Task].GetCommunication()
		if c == nil {
			continue
		}
		if c.Group < 0 || int(c.Group) >= len(w.Groups) {
			return fmt.Errorf("%w: task %d is of group %d of %d", ErrMismatch, t.Task, c.Group, len(w.Groups))
		}
		l.add(worker, it.Iteration, t, c)
	}
	return nil
}

func (l *Log) add(worker int, iteration int32, t *planpb.TaskTime, c *planpb.Communication) {
	op, g := plan.Op(c), l.plan.Workload.Groups[c.Group]
	k := call{
		key: key{iteration, c.Group, c.Seq}, collective: !op.IsP2P(), op: op, backend: c.Backend,
		in: c.InCount * plan.DType(c).Size(), out: c.OutCount * plan.DType(c).Size(),
		members: len(g.Ranks), durNS: t.EndNs - t.StartNs, task: t.Task, name: names[op], groupIs: g.Name,
	}
	if k.name == "" {
		k.name = "unknown"
	}
	if !k.collective {
		k.in, k.out = moved(c)
	}
	l.calls[worker] = append(l.calls[worker], k)
	if least, ok := l.least[k.key]; k.collective && (!ok || k.durNS < least) {
		l.least[k.key] = k.durNS
	}
}

// moved is what a rank sends and receives in point-to-point communication, in
// bytes.
func moved(c *planpb.Communication) (in, out int64) {
	for _, t := range c.Transfers {
		if n := t.Count * plan.DType(c).Size(); t.Send {
			in += n
		} else {
			out += n
		}
	}
	return in, out
}

// AddRecords adds the iterations of one plan, by its number in the experiment,
// from the result file of a worker. A file that ends in the middle of a record is
// read up to there.
func (l *Log) AddRecords(worker int, number int32, r io.Reader) error {
	for rec, err := range plan.Records(r) {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read result of worker %d: %w", worker, err)
		}
		if it := rec.GetIteration(); it != nil && it.Plan == number {
			if err := l.Add(worker, it); err != nil {
				return err
			}
		}
	}
	return nil
}

// names are those of DeepSpeed's functions. The list forms of gathers and
// reduce-scatters have uneven parts.
var names = map[comm.Op]string{
	comm.AllReduce: "all_reduce", comm.Reduce: "reduce", comm.Broadcast: "broadcast",
	comm.AllGather: "all_gather_into_tensor", comm.AllGatherV: "all_gather",
	comm.ReduceScatter: "reduce_scatter_tensor", comm.ReduceScatterV: "reduce_scatter",
	comm.AllToAll: "all_to_all_single", comm.AllToAllV: "all_to_all_single",
	comm.Gather: "gather", comm.GatherV: "gather", comm.Scatter: "scatter", comm.ScatterV: "scatter",
	comm.Barrier: "barrier", comm.Send: "send", comm.Recv: "recv", comm.Batch: "batch_isend_irecv",
}

// size is the message size as the logger has it: of the tensor that is passed in.
func (c *call) size() int64 {
	switch c.op {
	case comm.AllGather, comm.AllGatherV, comm.Gather, comm.GatherV, comm.ReduceScatter, comm.ReduceScatterV, comm.AllToAll, comm.AllToAllV:
		return c.in
	case comm.Scatter, comm.ScatterV:
		return c.out
	case comm.Batch:
		return c.in + c.out
	}
	return max(c.in, c.out)
}

// gbps are throughput and bus bandwidth in Gbit/s, by the logger's formulas with
// the size of the group.
func (c *call) gbps() (tput, bus float64) {
	if c.durNS <= 0 || c.members <= 0 {
		return 0, 0
	}
	s, n := 8*float64(c.size())/float64(c.durNS), float64(c.members)
	switch c.op {
	case comm.AllReduce:
		return 2 * s, s * 2 * (n - 1) / n
	case comm.AllToAll, comm.AllToAllV:
		return s, s * (n - 1) / n
	case comm.AllGather, comm.AllGatherV:
		return s * n, s * (n - 1)
	case comm.ReduceScatter, comm.ReduceScatterV:
		// The logger multiplies the whole input by the ranks once more; it is whole already.
		return s, s * (n - 1) / n
	}
	return s, s
}

// row is the calls of one function with one size.
type row struct {
	name                  string
	size                  int64
	count                 int64
	totalNS               int64
	avgNS                 int64
	tput, bus             float64
	commNS, stragglerNS   int64
	avgComm, avgStraggler int64
}

// rows are the rows of a worker: functions in the order of their first call, with
// rising sizes.
func (l *Log) rows(worker int) []row {
	type place struct {
		name string
		size int64
	}
	calls := map[place][]call{}
	first := map[string]int{}
	var places []place
	for i, c := range l.calls[worker] {
		p := place{c.name, c.size()}
		if calls[p] == nil {
			places = append(places, p)
		}
		if _, ok := first[c.name]; !ok {
			first[c.name] = i
		}
		calls[p] = append(calls[p], c)
	}
	slices.SortFunc(places, func(a, b place) int {
		if d := first[a.name] - first[b.name]; d != 0 {
			return d
		}
		return int(min(max(a.size-b.size, -1), 1))
	})
	var list []row
	for _, p := range places {
		list = append(list, l.row(p.name, p.size, calls[p]))
	}
	return list
}

func (l *Log) row(name string, size int64, calls []call) row {
	r := row{name: name, size: size, count: int64(len(calls))}
	var own, least, more []int64
	var tput, bus []float64
	for _, c := range calls {
		n := c.durNS
		if c.collective {
			n = l.least[c.key]
		}
		own, least, more = append(own, c.durNS), append(least, n), append(more, c.durNS-n)
		a, b := c.gbps()
		tput, bus = append(tput, a), append(bus, b)
		r.totalNS, r.commNS, r.stragglerNS = r.totalNS+c.durNS, r.commNS+n, r.stragglerNS+c.durNS-n
	}
	r.avgNS, r.avgComm, r.avgStraggler = trimmedNS(own), trimmedNS(least), trimmedNS(more)
	r.tput, r.bus = trimmed(tput), trimmed(bus)
	return r
}

// trimmed is the mean without the highest and the lowest tenth, as
// deepspeed.utils.timer.trim_mean makes it. No list is empty.
func trimmed(list []float64) float64 {
	slices.Sort(list)
	k := int(math.RoundToEven(float64(len(list)) * 0.1))
	list = list[k : len(list)-k]
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	return sum / float64(len(list))
}

// trimmedNS is the same of times, to the nearest ns.
func trimmedNS(list []int64) int64 {
	floats := make([]float64, len(list))
	for i, v := range list {
		floats[i] = float64(v)
	}
	return int64(math.Round(trimmed(floats)))
}
