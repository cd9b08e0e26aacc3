package synthetic

import (
	"slices"
	"strconv"
	"strings"

	"mixdown/ingest/comm"
)

// The threads and streams of a rank as its file shows them. A scope's
// communication has its own stream, and on the host two worker threads for each
// group of the rank.
const (
	programThread = 1000
	engineThread  = 1200
	secondThread  = 1500
	workerThread  = 2000
	computeStream = 7
	copyStream    = 8
	commStream    = 20
	syncThread    = 3000
)

// hostCallNs is how long a c10d call takes the program of a run without device,
// and wakeNs how long after the end of communication it goes on.
const (
	hostCallNs = 50_000
	wakeNs     = 20_000
)

// head describes the rank's job at the top of its file.
func (s *run) head(r *rank) {
	backend, threads := "nccl", []string(nil)
	var mine []string
	for _, g := range s.groups {
		position := len(mine)
		for _, n := range g.ranks {
			if n != r.number {
				continue
			}
			mine = append(mine, `{"pg_name": "`+g.name+`", "pg_desc": "`+g.description+`", "pg_size": `+itoa(len(g.ranks))+`, "ranks": `+intList(g.ranks, len(g.ranks))+`}`)
			threads = append(threads, "thread "+itoa(workerThread+2*position)+" (pt_gloo_runloop)", "thread "+itoa(workerThread+2*position+1)+" (pt_gloo_runloop)")
		}
	}
	if s.Host {
		backend = "gloo"
	}
	info := `"backend": "` + backend + `", "rank": ` + itoa(r.number) + `, "world_size": ` + itoa(s.Ranks)
	if s.Host || s.Generation != NoCommArgs {
		info += `, "pg_count": ` + itoa(len(mine)) + `, "pg_config": [` + strings.Join(mine, ", ") + `]`
	}
	r.out.head(info)
	r.out.threadName(programThread, "python")
	if s.Engine {
		r.out.threadName(engineThread, "pt_autograd_0")
	}
	if s.Beside != nil {
		r.out.threadName(secondThread, "python")
	}
	if s.Host {
		for i, name := range threads {
			r.out.threadName(workerThread+i, name)
		}
	}
}

// kernel runs ns of computation.
func (s *run) kernel(r *rank, operator string, ns int64) {
	if s.Host {
		r.out.span("cpu_op", operator, r.thread, r.program, r.program+ns, "")
		r.program += ns + s.LaunchNs
		return
	}
	r.ids++
	correlation := `"correlation": ` + itoa64(r.ids)
	launch := r.program + s.LaunchNs/3
	r.out.span("cpu_op", operator, r.thread, r.program, r.program+s.LaunchNs, `"External id": `+itoa64(r.ids))
	r.out.span("cuda_runtime", "cudaLaunchKernel", r.thread, launch, launch+s.LaunchNs/3, correlation)
	start := max(launch+kernelLatency, r.compute)
	r.compute = s.contended(r, start, ns)
	if s.Contention > 0 {
		correlation += `, "grid": [` + itoa(grids[operator]) + `, 4, 1], "block": [128, 1, 1]`
	}
	r.out.onStream("ampere_sgemm_128x64_tn", r.onto, start, r.compute, correlation)
	r.program += s.LaunchNs
}

// grids are how many columns of blocks the kernels of operators have, which do
// different work.
var grids = map[string]int{"aten::mm": 64, "aten::cumsum": 1}

// contended is when a kernel ends that starts at a moment and takes ns alone: while
// communication runs on the device it gets on more slowly.
func (s *run) contended(r *rank, start, ns int64) int64 {
	left, at := float64(ns), start
	for left > 0 {
		beside, next := false, int64(1)<<62
		for _, iv := range r.talk {
			switch {
			case iv.start <= at && at < iv.end:
				beside = true
				next = min(next, iv.end)
			case iv.start > at:
				next = min(next, iv.start)
			}
		}
		pace := 1.0
		if beside {
			pace = 1 / s.Contention
		}
		if done := float64(next-at) * pace; left > done {
			left -= done
			at = next
			continue
		}
		at += int64(left/pace + 0.5)
		left = 0
	}
	r.talk = slices.DeleteFunc(r.talk, func(iv interval) bool { return iv.end <= at })
	return at
}

// issue lets the program call a communication and returns when the rank arrives.
func (s *run) issue(p *part) int64 {
	r := p.r
	if s.Host {
		r.ids += 2
		p.id = r.ids
		r.out.span("cpu_op", "c10d::"+spellings[p.op].operator, r.thread, r.program, r.program+hostCallNs, s.operatorArgs(p))
		called := r.program
		r.program += hostCallNs
		if p.peer >= 0 { // the annotation of a send or recv starts within the call
			return called + hostCallNs/4
		}
		return max(called+hostCallNs/2, r.stream[p.c.Scope])
	}
	r.ids++
	p.id = r.ids
	third := s.LaunchNs / 3
	title := "nccl:" + spellings[p.op].title
	if p.op == comm.Send {
		title += " " + itoa(r.number) + "->" + itoa(p.peer)
	} else if p.op == comm.Recv {
		title += " " + itoa(r.number) + "<-" + itoa(p.peer)
	}
	start, end := r.program, r.program+s.LaunchNs
	s.waitForEvent(r, commStream+int(p.c.Scope), r.onto)
	if s.Generation == NoCommArgs {
		in, _ := p.c.sizes(p.op, len(p.group.ranks))
		r.out.span("user_annotation", title, r.thread, start, end, `"Input Dims": [[`+itoa64(in)+`]], "Input type": ["float"]`)
	} else {
		r.out.span("cpu_op", "record_param_comms", r.thread, start, end, `"Record function id": `+itoa64(p.id)+`, `+s.commArgs(p))
		r.out.span("user_annotation", title, r.thread, start+third/2, end-third/2, "")
	}
	r.out.span("cuda_runtime", "cudaLaunchKernelExC", r.thread, start+third, end-third, `"correlation": `+itoa64(p.id))
	r.program = end
	return max(start+third+kernelLatency, r.compute, r.stream[p.c.Scope])
}

// finish ends a rank's part.
func (s *run) finish(p *part, arrival, end int64, dropped bool) {
	r := p.r
	r.stream[p.c.Scope] = end
	if s.Contention > 1 && !s.Host {
		r.talk = append(r.talk, interval{arrival, end})
	}
	if s.Host {
		s.finishOnHost(p, arrival, end, dropped)
		return
	}
	if !dropped {
		args := `"correlation": ` + itoa64(p.id)
		name := spellings[p.op].kernel
		if s.Generation == NoCommArgs {
			name = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)" // one name for all, as then
		} else {
			args += ", " + s.commArgs(p)
		}
		r.out.onStream(name, commStream+int(p.c.Scope), arrival, end, args)
	}
	if p.c.Async {
		r.pending = max(r.pending, end)
	} else {
		r.compute = max(r.compute, end)
		s.waitForEvent(r, r.onto, commStream+int(p.c.Scope))
	}
}

// waitForEvent writes that a stream waits for what another one has been given. The
// calls take no time.
func (s *run) waitForEvent(r *rank, stream, on int) {
	if !s.Events {
		return
	}
	r.ids += 2
	record, wait := itoa64(r.ids-1), itoa64(r.ids)
	r.out.span("cuda_runtime", "cudaEventRecord", r.thread, r.program, r.program, `"correlation": `+record)
	r.out.span("cuda_runtime", "cudaStreamWaitEvent", r.thread, r.program, r.program, `"correlation": `+wait)
	r.out.span("cuda_sync", "Stream Wait Event", syncThread, r.program, r.program, `"cuda_sync_kind": "Stream Wait Event", "stream": `+itoa(stream)+
		`, "correlation": `+wait+`, "wait_on_stream": `+itoa(on)+`, "wait_on_cuda_event_record_corr_id": `+record)
}

func (s *run) finishOnHost(p *part, arrival, end int64, dropped bool) {
	r := p.r
	thread := r.thread
	if p.peer < 0 {
		thread = workerThread
		for _, g := range s.groups { // two for each group of the rank before this one
			if g.name == p.group.name {
				break
			}
			for _, n := range g.ranks {
				if n == r.number {
					thread += 2
				}
			}
		}
	}
	if !dropped {
		in, out := p.c.sizes(p.op, len(p.group.ranks))
		args := `"Record function id": ` + itoa64(p.id+1) + `, "Input Dims": [[` + itoa64(max(in, out)) + `]], "Input type": ["float"]`
		if p.op == comm.AllGather || p.op == comm.ReduceScatter || p.op == comm.AllToAll {
			args = `"Record function id": ` + itoa64(p.id+1) + `, "Input Dims": [[` + itoa64(in) + `]], "Input type": ["float"]`
		}
		r.out.span("user_annotation", "gloo:"+spellings[p.op].title, thread, arrival, end, args)
	}
	if p.c.Async {
		r.pending = max(r.pending, end)
	} else {
		r.program = max(r.program, end+wakeNs)
	}
}

// synchronize makes the program wait for everything it has started.
func (s *run) synchronize(r *rank) {
	if s.Host {
		r.program = max(r.program, r.pending) + wakeNs
		return
	}
	r.compute = max(r.compute, r.pending)
	if s.Beside != nil { // the whole device has more to do than the program's
		s.blocked(r)
		return
	}
	called := r.program
	r.program = max(r.program, r.compute) + s.LaunchNs
	r.out.span("cuda_runtime", "cudaDeviceSynchronize", r.thread, called, r.program, "")
}

// maxRanks is how many members PyTorch writes before it cuts the list; the last
// one follows.
const maxRanks = 30

// commArgs are the arguments that say what a communication is.
func (s *run) commArgs(p *part) string {
	in, out := p.c.sizes(p.op, len(p.group.ranks))
	args := `"Collective name": "` + spellings[p.op].param + `", "dtype": "Float", "In msg nelems": ` + itoa64(in) + `, "Out msg nelems": ` + itoa64(out) +
		`, "Group size": ` + itoa(len(p.group.ranks)) + `, "In split size": "[]", "Out split size": "[]", "Process Group Name": "` + p.group.name +
		`", "Process Group Description": "` + p.group.description + `", "Process Group Ranks": "` + intList(p.group.ranks, maxRanks) + `"`
	switch p.op {
	case comm.Send:
		args += `, "Src Rank": ` + itoa(p.r.number) + `, "Dst Rank": ` + itoa(p.peer)
	case comm.Recv:
		args += `, "Src Rank": ` + itoa(p.peer) + `, "Dst Rank": ` + itoa(p.r.number)
	case comm.Broadcast:
		args += `, "Rank": 0`
	}
	if s.Generation == CommSeq {
		args += `, "Seq": ` + itoa64(p.seq)
	}
	return args
}

// operatorArgs are those of a c10d operator recorded with its tensors.
func (s *run) operatorArgs(p *part) string {
	in, out := p.c.sizes(p.op, len(p.group.ranks))
	args := `"Record function id": ` + itoa64(p.id)
	switch p.op {
	case comm.AllGather, comm.ReduceScatter, comm.AllToAll:
		return args + `, "Concrete Inputs": ["", "", "", "[]", "[]"], "Input Dims": [[` + itoa64(out) + `], [` + itoa64(in) + `], [], [], []], "Input type": ["float", "float", "", "ScalarList", "ScalarList"]`
	case comm.Send, comm.Recv:
		return args + `, "Concrete Inputs": ["", "", "` + itoa(p.peer) + `", "0"], "Input Dims": [[[` + itoa64(max(in, out)) + `]], [], [], []], "Input type": ["TensorList", "", "Scalar", "Scalar"]`
	}
	return args + `, "Concrete Inputs": ["", "", "0"], "Input Dims": [[[` + itoa64(in) + `]], [], []], "Input type": ["TensorList", "", "Scalar"]`
}

func itoa(n int) string     { return strconv.Itoa(n) }
func itoa64(n int64) string { return strconv.FormatInt(n, 10) }
