package pipeline

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mixdown/ingest/kineto/kinetotest"
)

// deviceRun is a pipeline on made-up GPUs: hosts that launch far ahead, and
// devices that wait inside the kernels of receives. All times are in us.
type deviceRun struct {
	order      []string // by place, as PyTorch writes it
	stagePlace []int
	replicas   int
	labels     bool
	reductions bool // an all_reduce of each stage after its last backward
	quiet      bool // the reductions have no label
	fused      bool // a send and the receive after it are one kernel

	ranks    []*deviceRank // by place, then replica
	sent     map[string]int64
	received map[string]int64
	ends     map[string]int64 // of transfers
}

type deviceRank struct {
	number, place, replica int
	actions                []string
	next                   int
	host                   int64 // of the program
	free                   int64 // of the compute stream
	receiving              int64 // when the stream of receives is free
	correlation            int
	events                 []string
	tasks                  []Task // ns
	sends                  []pendingSend
}

const (
	launchTime   = 20 // of an action, on the host
	transferTime = 7
)

// generate runs the pipeline and writes its traces to a folder.
func (d *deviceRun) generate(t *testing.T) string {
	t.Helper()
	d.sent, d.received, d.ends = map[string]int64{}, map[string]int64{}, map[string]int64{}
	for place, order := range d.order {
		for replica := range d.replicas {
			r := &deviceRank{number: place*d.replicas + replica, place: place, replica: replica, host: 1000 + int64(10*place), actions: d.withMessages(place, order)}
			d.ranks = append(d.ranks, r)
		}
	}
	for left := true; left; {
		left = false
		moved := false
		for _, r := range d.ranks {
			for r.next < len(r.actions) && d.run(r, r.actions[r.next]) {
				r.next++
				moved = true
			}
			left = left || r.next < len(r.actions)
		}
		if left && !moved {
			t.Fatal("the order blocks")
		}
	}
	dir := t.TempDir()
	for _, r := range d.ranks {
		d.sends(r)
		end := max(r.host, r.free) + 100
		r.add("user_annotation", "ProfilerStep#4", r.number+100, 1, 900, end, "")
		var groups []string
		for _, g := range d.groups(r) {
			groups = append(groups, fmt.Sprintf(`{"pg_name":%q,"pg_desc":%q,"pg_size":%d,"ranks":%s}`, g.name, g.name, len(g.ranks), list(g.ranks)))
		}
		text := fmt.Sprintf(`{"schemaVersion":1,"distributedInfo":{"backend":"nccl","rank":%d,"world_size":%d,"pg_config":[%s]},"traceEvents":[%s]}`,
			r.number, len(d.ranks), strings.Join(groups, ","), strings.Join(r.events, ",\n"))
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("rank%d.json", r.number)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

type deviceGroup struct {
	name  string
	ranks []int
}

// groups are those of a rank: its pipeline's and its replicas'.
func (d *deviceRun) groups(r *deviceRank) [2]deviceGroup {
	g := [2]deviceGroup{{name: fmt.Sprintf("pp%d", r.replica)}, {name: fmt.Sprintf("dp%d", r.place)}}
	for place := range d.order {
		g[0].ranks = append(g[0].ranks, place*d.replicas+r.replica)
	}
	for replica := range d.replicas {
		g[1].ranks = append(g[1].ranks, r.place*d.replicas+replica)
	}
	return g
}

func list(ranks []int) string { return strings.ReplaceAll(fmt.Sprint(ranks), " ", ",") }

// withMessages adds to an order what is sent, received and reduced.
func (d *deviceRun) withMessages(place int, order string) []string {
	var actions []string
	last := map[int]int{}
	tasks := strings.Fields(order)
	for i, text := range tasks {
		for _, a := range parse(text) {
			if a.phase != Forward {
				last[a.stage] = i
			}
		}
	}
	remote := func(stage int) bool {
		return stage >= 0 && stage < len(d.stagePlace) && d.stagePlace[stage] != place
	}
	for i, text := range tasks {
		for _, a := range parse(text) {
			if a.phase == Forward && remote(a.stage-1) {
				actions = append(actions, fmt.Sprintf("%dRECV_F%d", a.stage, a.microbatch))
			}
			if (a.phase == Backward || a.phase == InputGradient) && remote(a.stage+1) {
				actions = append(actions, fmt.Sprintf("%dRECV_B%d", a.stage, a.microbatch))
			}
		}
		actions = append(actions, text)
		for _, a := range parse(text) {
			if a.phase == Forward && remote(a.stage+1) {
				actions = append(actions, fmt.Sprintf("%dSEND_F%d", a.stage, a.microbatch))
			}
			if (a.phase == Backward || a.phase == InputGradient) && remote(a.stage-1) {
				actions = append(actions, fmt.Sprintf("%dSEND_B%d", a.stage, a.microbatch))
			}
			if d.reductions && a.phase != Forward && last[a.stage] == i {
				actions = append(actions, fmt.Sprintf("%dREDUCE_GRAD", a.stage))
			}
		}
	}
	for i := 0; d.fused && i+1 < len(actions); i++ {
		if strings.Contains(actions[i], "SEND") && strings.Contains(actions[i+1], "RECV") {
			actions[i] += " " + actions[i+1]
			actions = append(actions[:i+1], actions[i+2:]...)
		}
	}
	return actions
}

// fuse runs a send and a receive as batch_isend_irecv does: two calls, one kernel.
func (d *deviceRun) fuse(r *deviceRank, send, recv string) bool {
	out, in := parse(send)[0], parse(recv)[0]
	start := max(r.host+10, r.free, r.receiving)
	sent := fmt.Sprintf("%d %d %d %s", r.replica, out.stage, out.microbatch, out.phase)
	d.sent[sent] = start
	from := d.source(in)
	key := fmt.Sprintf("%d %d %d %s", r.replica, from, in.microbatch, in.phase)
	other, ok := d.sent[key]
	if !ok {
		return false
	}
	end := max(start, other) + transferTime
	d.received[fmt.Sprintf("%d %s", r.replica, recv)], d.ends[key] = end, end
	r.receiving = end
	peer := d.stagePlace[from]*d.replicas + r.replica
	r.correlation++
	g := d.groups(r)[0]
	for n, args := range []string{fmt.Sprintf(`"Collective name":"send","Src Rank":%d,"Dst Rank":%d`, r.number, peer), fmt.Sprintf(`"Collective name":"recv","Src Rank":%d,"Dst Rank":%d`, peer, r.number)} {
		r.add("cpu_op", "record_param_comms", r.number+100, 1, r.host+int64(3*n), r.host+int64(3*n)+2,
			fmt.Sprintf(`%s,"dtype":"Float","In msg nelems":256,"Out msg nelems":256,"Group size":%d,"Process Group Name":%q,"Process Group Ranks":"%s"`, args, len(g.ranks), g.name, list(g.ranks)))
	}
	r.add("cuda_runtime", "cudaLaunchKernelExC", r.number+100, 1, r.host+8, r.host+9, fmt.Sprintf(`"correlation":%d`, r.correlation))
	r.add("kernel", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 0, 21, start, end, fmt.Sprintf(`"correlation":%d,"stream":21,"device":0`, r.correlation))
	r.host += launchTime
	return true
}

// source is the stage that makes what is received.
func (d *deviceRun) source(a action) int {
	if a.phase == Backward {
		return a.stage + 1
	}
	return a.stage - 1
}

func parse(text string) []action {
	actions, _ := readActions(text)
	return actions
}

// run runs an action; false: what it waits for has not been sent yet.
func (d *deviceRun) run(r *deviceRank, text string) bool {
	if both := strings.Fields(text); len(both) == 2 {
		return d.fuse(r, both[0], both[1])
	}
	a := parse(text)
	k := fmt.Sprintf("%d %s", r.replica, text)
	switch a[0].kind {
	case receiving:
		from := d.source(a[0])
		key := fmt.Sprintf("%d %d %d %s", r.replica, from, a[0].microbatch, a[0].phase)
		sent, ok := d.sent[key]
		if !ok {
			return false
		}
		start := max(r.host+5, r.receiving)
		end := max(start, sent) + transferTime
		d.received[k], d.ends[key] = end, end
		r.receiving = end
		r.communicate("recv", start, end, 21, d.stagePlace[from]*d.replicas+r.replica, d.groups(r)[0])
	case sending:
		key := fmt.Sprintf("%d %d %d %s", r.replica, a[0].stage, a[0].microbatch, a[0].phase)
		d.sent[key] = max(r.host+5, r.free)
		to := a[0].stage + 1
		if a[0].phase == Backward {
			to = a[0].stage - 1
		}
		r.pending(key, d.stagePlace[to]*d.replicas+r.replica, d.groups(r)[0])
	case gradients:
		r.communicate("allreduce", max(r.host+5, r.free), max(r.host+5, r.free)+30, 23, -1, d.groups(r)[1])
	case computing:
		at := r.host + 1
		for _, one := range a {
			d.compute(r, one, at)
			at += 8
		}
	}
	if d.labels && !(d.quiet && a[0].kind == gradients) {
		r.add("user_annotation", "PP:"+text, r.number+100, 1, r.host, r.host+launchTime-1, "")
	}
	r.host += launchTime
	return true
}

// compute launches two kernels from the program, or autograd's thread.
func (d *deviceRun) compute(r *deviceRank, a action, at int64) {
	input := int64(0)
	direction, dur := "F", int64(60)
	if a.phase != Forward {
		direction, dur = "B", 100
	}
	if a.phase != WeightGradient {
		input = d.received[fmt.Sprintf("%d %dRECV_%s%d", r.replica, a.stage, direction, a.microbatch)]
	}
	start := max(at+3, r.free, input)
	thread, name := 1, "aten::linear"
	if a.phase != Forward {
		thread, name = 2, "autograd::engine::evaluate_function: MmBackward0"
	}
	r.add("cpu_op", name, r.number+100, thread, at, at+7, "")
	for n, s := range []int64{start, start + dur/2 + 2} {
		r.correlation++
		r.add("cuda_runtime", "cudaLaunchKernel", r.number+100, thread, at+int64(2*n)+1, at+int64(2*n)+2, fmt.Sprintf(`"correlation":%d`, r.correlation))
		r.add("kernel", "gemm", 0, 7, s, s+dur/2-2, fmt.Sprintf(`"correlation":%d,"stream":7,"device":0`, r.correlation))
	}
	r.free = start + dur
	r.tasks = append(r.tasks, Task{Phase: a.phase, Stage: a.stage, Microbatch: a.microbatch, Start: start * 1000, End: r.free * 1000, Arrived: input * 1000})
}

type pendingSend struct {
	key  string
	peer int
	host int64
	free int64
	g    deviceGroup
	corr int
}

// pending notes a send, whose end is known when it was received.
func (r *deviceRank) pending(key string, peer int, g deviceGroup) {
	r.correlation++
	r.sends = append(r.sends, pendingSend{key, peer, r.host, r.free, g, r.correlation})
}

func (d *deviceRun) sends(r *deviceRank) {
	for _, p := range r.sends {
		r.emit("send", p.host, max(p.host+5, p.free), d.ends[p.key], 22, p.peer, p.g, p.corr)
	}
}

func (r *deviceRank) communicate(name string, start, end int64, stream, peer int, g deviceGroup) {
	r.correlation++
	r.emit(name, r.host, start, end, stream, peer, g, r.correlation)
}

func (r *deviceRank) emit(name string, host, start, end int64, stream, peer int, g deviceGroup, correlation int) {
	args := fmt.Sprintf(`"Collective name":%q,"dtype":"Float","In msg nelems":256,"Out msg nelems":256,"Group size":%d,"Process Group Name":%q,"Process Group Ranks":"%s"`,
		name, len(g.ranks), g.name, list(g.ranks))
	kernel := "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
	switch name {
	case "send":
		args += fmt.Sprintf(`,"Src Rank":%d,"Dst Rank":%d`, r.number, peer)
	case "recv":
		args += fmt.Sprintf(`,"Src Rank":%d,"Dst Rank":%d`, peer, r.number)
	default:
		kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
	}
	r.add("cpu_op", "record_param_comms", r.number+100, 1, host+1, host+9, args)
	r.add("cuda_runtime", "cudaLaunchKernelExC", r.number+100, 1, host+3, host+4, fmt.Sprintf(`"correlation":%d`, correlation))
	r.add("kernel", kernel, 0, stream, start, end, fmt.Sprintf(`"correlation":%d,"stream":%d,"device":0`, correlation, stream))
}

func (r *deviceRank) add(category, name string, pid, tid int, start, end int64, args string) {
	r.events = append(r.events, fmt.Sprintf(`{"ph":"X","cat":%q,"name":%q,"pid":%d,"tid":%d,"ts":%d,"dur":%d,"args":{%s}}`, category, name, pid, tid, start, end-start, args))
}

const (
	chainFirst  = "0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3"
	chainSecond = "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"
)

// TestDevice: on devices the times of tasks are those of their kernels, to the ns.
func TestDevice(t *testing.T) {
	for name, d := range map[string]*deviceRun{
		"1F1B":                       {order: []string{chainFirst, chainSecond}, stagePlace: []int{0, 1}, replicas: 1, labels: true},
		"1F1B without labels":        {order: []string{chainFirst, chainSecond}, stagePlace: []int{0, 1}, replicas: 1},
		"1F1B with grouped messages": {order: []string{chainFirst, chainSecond}, stagePlace: []int{0, 1}, replicas: 1, fused: true},
		"four stages": {order: []string{"0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3", "1F0 1F1 1F2 1B0 1F3 1B1 1B2 1B3", "2F0 2F1 2B0 2F2 2B1 2F3 2B2 2B3", "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3"},
			stagePlace: []int{0, 1, 2, 3}, replicas: 1},
		"depth-first without labels": {order: []string{
			"0F0 0F1 0F2 3F0 3F1 3F2 3B0 3B1 3B2 0B0 0B1 0B2",
			"1F0 1F1 1F2 4F0 4F1 4F2 4B0 4B1 4B2 1B0 1B1 1B2",
			"2F0 2F1 2F2 5F0 5B0 5F1 5B1 5F2 5B2 2B0 2B1 2B2"}, stagePlace: []int{0, 1, 2, 0, 1, 2}, replicas: 1},
		"breadth-first, replicas": {order: []string{"0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1", "1F0 1F1 3F0 3F1 3B0 3B1 1B0 1B1"}, stagePlace: []int{0, 1, 0, 1},
			replicas: 2, labels: true, reductions: true},
		"reductions without labels": {order: []string{"0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1", "1F0 1F1 3F0 3F1 3B0 3B1 1B0 1B1"}, stagePlace: []int{0, 1, 0, 1},
			replicas: 2, labels: true, reductions: true, quiet: true},
		"zero bubble in a V": {order: []string{"0F0 0F1 3F0 3I0 3W0 3F1 3I1 0I0 0W0 3W1 0I1 0W1", "1F0 2F0 1F1 2F1 2I0 2W0 1I0 1W0 2I1 1I1 1W1 2W1"}, stagePlace: []int{0, 1, 1, 0},
			replicas: 1, labels: true},
		"overlapped pairs": {order: []string{"0F0 0F1 3F0 3B0 (0F2;0B0)OVERLAP_F_B 3F1 3B1 3F2 0B1 3B2 0B2", "1F0 2F0 1F1 (2F1;2B0)OVERLAP_F_B 1B0 1F2 2F2 2B1 1B1 2B2 1B2"}, stagePlace: []int{0, 1, 1, 0},
			replicas: 1, labels: true},
	} {
		t.Run(name, func(t *testing.T) { d.check(t) })
	}
}

// TestDeviceUnclear: without labels nothing tells whether a breadth-first pipeline
// takes micro-batches back in their order or the opposite one, nor of which one a
// weight gradient is.
func TestDeviceUnclear(t *testing.T) {
	for name, d := range map[string]*deviceRun{
		"breadth-first": {order: []string{
			"0F0 0F1 0F2 3F0 3F1 3F2 3B0 3B1 3B2 0B0 0B1 0B2",
			"1F0 1F1 1F2 4F0 4F1 4F2 4B0 4B1 4B2 1B0 1B1 1B2",
			"2F0 2F1 2F2 5F0 5F1 5F2 5B0 5B1 5B2 2B0 2B1 2B2"}, stagePlace: []int{0, 1, 2, 0, 1, 2}, replicas: 1},
		"zero bubble": {order: []string{"0F0 0F1 0I0 0W0 0I1 0W1", "1F0 1I0 1F1 1I1 1W0 1W1"}, stagePlace: []int{0, 1}, replicas: 1},
	} {
		t.Run(name, func(t *testing.T) {
			res := find(t, kinetotest.Load(t, d.generate(t)))
			if len(res.Pipelines) > 0 || !slices.Equal(codes(res), []string{CodeUnclear}) {
				t.Errorf("%d pipelines, diagnostics %v", len(res.Pipelines), res.Diagnostics.List())
			}
		})
	}
}

func (d *deviceRun) check(t *testing.T) {
	res := find(t, kinetotest.Load(t, d.generate(t)))
	if len(res.Pipelines) != d.replicas || len(res.Diagnostics.List()) > 0 {
		t.Fatalf("%d pipelines, diagnostics %v", len(res.Pipelines), res.Diagnostics.List())
	}
	for replica, p := range res.Pipelines {
		s := &p.Steps[0]
		if !s.Complete || len(p.Steps) != 1 || s.Name != "ProfilerStep#4" {
			t.Errorf("complete %v, %d steps, %q", s.Complete, len(p.Steps), s.Name)
		}
		for place, number := range p.Ranks {
			r := d.ranks[number]
			if r.place != place || r.replica != replica {
				t.Fatalf("rank %d at place %d of pipeline %d", number, place, replica)
			}
			if got, want := text(s.Tasks[place]), text(r.tasks); got != want {
				t.Errorf("place %d:\n got %s\nwant %s", place, got, want)
				continue
			}
			for i, task := range s.Tasks[place] {
				want := r.tasks[i]
				if want.Remote = want.Arrived > 0; !want.Remote {
					want.Arrived = Unknown
				}
				if task != want {
					t.Errorf("place %d: %s is %+v, want %+v", place, &task, task, want)
				}
			}
		}
		for _, tr := range s.Transfers {
			if !tr.Timed || tr.Done-tr.Posted != transferTime*1000 || tr.Bytes != 1024 {
				t.Errorf("%+v: %d ns", tr, tr.Done-tr.Posted)
			}
		}
		if d.reductions {
			var stages []int
			for _, r := range s.Reductions {
				if !r.DataParallel || r.Bytes != 1024 {
					t.Errorf("%+v", r)
				}
				stages = append(stages, r.Stage)
			}
			if got := fmt.Sprint(stages); got != "[2 0 3 1]" {
				t.Errorf("reductions of the stages %s", got)
			}
		}
	}
}
