// The worker on a GPU: an emulated one, or with MIXDOWN_GPU=cuda or hip the machine's.
package native_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mixdown/replay/plan/planpb"
)

// platform is a kind of GPU with its library.
type platform struct {
	kind, library string
	device        planpb.Device
}

var (
	onCUDA    = platform{"cuda", "nccl", planpb.Device_DEVICE_CUDA}
	onHIP     = platform{"hip", "rccl", planpb.Device_DEVICE_HIP}
	platforms = []platform{onCUDA, onHIP}
)

// realKind is the kind of the machine's GPU, "" for the emulated one.
func realKind() string { return os.Getenv("MIXDOWN_GPU") }

// gpu is the environment that workers find a GPU in; it skips the test when there
// is none. The emulated one is the stand-in of testing/.
func gpu(t *testing.T, p platform, more ...string) []string {
	t.Helper()
	need(t, filepath.Dir(worker(t)), p.library)
	if kind := realKind(); kind == p.kind {
		return more
	} else if kind != "" {
		t.Skipf("this is about a GPU of %s", kind)
	}
	folder := filepath.Join(filepath.Dir(worker(t)), "testing", "emulated")
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("no emulated GPU: %v", err)
	}
	path := folder
	if before := os.Getenv("LD_LIBRARY_PATH"); before != "" {
		path += ":" + before
	}
	return append([]string{"LD_LIBRARY_PATH=" + path, "MIXDOWN_FAKE_GPU=" + t.TempDir()}, more...)
}

// onGPU makes an experiment of workloads for a GPU.
func onGPU(p platform, workloads ...*planpb.Workload) *planpb.Experiment {
	e := experiment(workloads...)
	e.Settings.Device = p.device
	return e
}

// ncclCan says whether NCCL, and RCCL, reduces so.
func ncclCan(x call) bool {
	if !reducing(x.op) {
		return true
	}
	if x.dtype == planpb.DType_DTYPE_INT16 || x.dtype == planpb.DType_DTYPE_UINT16 {
		return false
	}
	return x.red != planpb.ReduceOp_REDUCE_OP_BAND && x.red != planpb.ReduceOp_REDUCE_OP_BOR && x.red != planpb.ReduceOp_REDUCE_OP_BXOR
}

func TestDeviceMatrix(t *testing.T) {
	for _, p := range platforms {
		for _, size := range []int{1, 2, 4} {
			t.Run(fmt.Sprint(p.library, "/", size), func(t *testing.T) {
				env := gpu(t, p)
				w, n := matrixOf(size, p.library, ncclCan)
				e := onGPU(p, w)
				e.Settings.Iterations, e.Settings.Warmup = 1, 0
				all := start(t, e, launch{env: env}).done(t, e)
				h := all[0][0].GetHeader()
				if h.Device != p.kind || h.DeviceName == "" || h.DeviceAddress == "" || !h.Emulated && realKind() == "" {
					t.Errorf("header says device %q, %q at %q, emulated %v", h.Device, h.DeviceName, h.DeviceAddress, h.Emulated)
				}
				t.Logf("%d operations on %s", n, h.DeviceName)
			})
		}
	}
}

// stagedCase is a library for host memory beside a GPU.
type stagedCase struct {
	platform
	backend string
}

func (x stagedCase) String() string { return x.backend + map[string]string{"hip": "_on_hip"}[x.kind] }

// staged are all of them on CUDA, and one on HIP: what differs is below them.
func staged() []stagedCase {
	list := []stagedCase{{onHIP, "gloo"}}
	for _, backend := range backends {
		list = append(list, stagedCase{onCUDA, backend})
	}
	return list
}

// Libraries for host memory, through pinned memory.
func TestStagedMatrix(t *testing.T) {
	for _, x := range staged() {
		t.Run(x.String(), func(t *testing.T) {
			need(t, filepath.Dir(worker(t)), x.backend)
			backend, env := x.backend, gpu(t, x.platform)
			w, n := matrix(2, backend)
			e := onGPU(x.platform, w)
			e.Settings.Iterations, e.Settings.Warmup = 1, 0
			start(t, e, launch{backend: backend, env: env}).done(t, e)
			t.Logf("%d operations", n)
		})
	}
}

// deviceSpan adds a span of the device.
func (b *builder) deviceSpan(rank, stream int, ns int64, deps ...int32) int32 {
	span := &planpb.Span{Kind: planpb.Span_DEVICE, DurationNs: ns}
	return b.add(rank, stream, &planpb.Task{Kind: &planpb.Task_Span{Span: span}}, deps...)
}

func (b *builder) wait(rank, stream int, deps ...int32) int32 {
	return b.add(rank, stream, &planpb.Task{Kind: &planpb.Task_Wait{Wait: &planpb.Wait{}}}, deps...)
}

// mixed is a step as jobs have it: the host launches and waits, a device stream
// computes, NCCL and a library for host memory communicate on streams of theirs.
func mixed(size int, library, other string) *planpb.Workload {
	b := newBuilder(size, 4, library)
	half := b.group(0, size-1)
	second := 3
	if other == library {
		second = 2 // its operations must be in one order
	}
	for k := range 6 {
		before := make([]int32, size)
		for r := range size {
			launched := b.span(r, 0, 50_000)
			before[r] = b.deviceSpan(r, 1, int64(100_000*(1+r%2)), launched)
			b.wait(r, 2, before[r])
			b.wait(r, 3, before[r])
		}
		b.backend = library
		b.collective(opAR, f32, plus, 0, 0, int64(1000*(k+1)), 2)
		b.collective(planpb.Op_OP_ALL_TO_ALLV, f16, plus, 0, 0, 100, 2)
		b.ring(0, f32, 500, 2)
		b.backend = other
		b.collective(planpb.Op_OP_ALL_GATHER, f32, plus, half, 0, 333, second)
		b.ring(0, i8, 777, second)
		for r := range size {
			// The device waits for both, then the host for the device.
			tasks := b.w.Programs[r].Tasks
			var last []int32
			for _, stream := range []int32{2, 3} {
				for _, task := range slices.Backward(tasks) {
					if task.Stream == stream {
						last = append(last, task.Id)
						break
					}
				}
			}
			after := b.deviceSpan(r, 1, 80_000, last...)
			if k%2 == 1 {
				b.wait(r, 0, after)
			}
		}
	}
	return b.w
}

func TestMixedOnDevice(t *testing.T) {
	for _, x := range staged() {
		t.Run(x.String(), func(t *testing.T) {
			other := x.backend
			need(t, filepath.Dir(worker(t)), other)
			env := gpu(t, x.platform)
			e := onGPU(x.platform, mixed(4, x.library, x.library), mixed(4, x.library, other))
			e.Settings.Iterations, e.Settings.Samples = 3, 3
			e.Settings.SmShare = 0.5
			all := start(t, e, launch{backend: other, env: env}).done(t, e)
			for r, records := range all {
				for _, record := range records {
					if it := record.GetIteration(); it != nil {
						inOrder(t, e.Plans[it.Plan].Workload.Programs[r], it)
					}
				}
			}
		})
	}
}

// clockError is by how much, in ns, times of the device and of the host may
// contradict each other.
const clockError = 500_000

// inOrder checks that tasks begin when what they wait for has ended, and that
// spans last as long as they should.
func inOrder(t *testing.T, p *planpb.Program, it *planpb.Iteration) {
	t.Helper()
	last := map[int32]*planpb.Task{}
	for _, task := range p.Tasks {
		at := it.Tasks[task.Id]
		deps := slices.Clone(task.Deps)
		if before := last[task.Stream]; before != nil {
			deps = append(deps, before.Id)
		}
		last[task.Stream] = task
		for _, d := range deps {
			if end := it.Tasks[d].EndNs; at.EndNs < end-clockError || task.GetWait() == nil && at.StartNs < end-clockError {
				t.Errorf("rank %d: task %d is from %d to %d, but waits for task %d, which ends at %d", p.Rank, task.Id,
					at.StartNs-it.StartNs, at.EndNs-it.StartNs, d, end-it.StartNs)
			}
		}
		if s := task.GetSpan(); s != nil && at.EndNs-at.StartNs < s.DurationNs*9/10-10_000 {
			t.Errorf("rank %d: task %d lasts %d ns, should last %d", p.Rank, task.Id, at.EndNs-at.StartNs, s.DurationNs)
		}
		if at.EndNs > it.EndNs+clockError {
			t.Errorf("rank %d: task %d ends after the iteration", p.Rank, task.Id)
		}
	}
}

// Settings make communicators of their own.
func TestSettings(t *testing.T) {
	for _, p := range platforms {
		t.Run(p.library, func(t *testing.T) { settings(t, p) })
	}
}

func settings(t *testing.T, p platform) {
	env := gpu(t, p)
	b := newBuilder(2, 1, p.library+":ring/ll128/ch=4")
	b.collective(opAR, f32, plus, 0, 0, 100, 0)
	b.backend = p.library + ":tree"
	b.collective(opAR, f32, plus, 0, 0, 100, 0)
	b.backend = p.library
	b.collective(opAR, f32, plus, 0, 0, 100, 0)
	e := onGPU(p, b.w)
	all := start(t, e, launch{env: env}).done(t, e)
	var names []string
	for _, x := range all[0][0].GetHeader().Backends {
		names = append(names, x.Name)
	}
	if want := []string{p.library, p.library + ":ring/ll128/ch=4", p.library + ":tree"}; !slices.Equal(names, want) {
		t.Errorf("backends %q, want %q", names, want)
	}
	if realKind() != "" {
		return
	}
	var folder string
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, "MIXDOWN_FAKE_GPU="); ok {
			folder = value
		}
	}
	files, err := filepath.Glob(filepath.Join(folder, "settings.*.0"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSpace(string(data)))
	}
	slices.Sort(got)
	if want := []string{"algo= proto=", "algo=Ring proto=LL128 ctas=4-4", "algo=Tree proto="}; !slices.Equal(got, want) {
		t.Errorf("communicators were made with %q, want %q", got, want)
	}
}

func TestRefusedOnDevice(t *testing.T) {
	for _, x := range []struct {
		name, backend, want string
		host                bool
	}{
		{"host memory", "nccl", "needs a GPU", true},
		{"unknown setting", "nccl:fast", "neither an algorithm", false},
		{"no settings", "gloo:ring", "has no settings", false},
		{"bad name", "nccl:../x", "may only have", false},
		{"another's GPU", "rccl", "backend rccl needs the device hip, and this experiment runs on cuda", false},
	} {
		t.Run(x.name, func(t *testing.T) {
			env := gpu(t, onCUDA)
			if x.backend == "rccl" && realKind() != "" {
				t.Skip("needs both kinds of GPU")
			}
			b := newBuilder(1, 1, x.backend)
			b.collective(opAR, f32, plus, 0, 0, 1, 0)
			e := onGPU(onCUDA, b.w)
			if x.host {
				e.Settings.Device = planpb.Device_DEVICE_HOST
			}
			if x.name == "bad name" {
				b.w.Programs[0].Tasks[0].GetCommunication().Backend = "nccl:..\\x"
			}
			j := start(t, e, launch{env: env})
			j.wait()
			if text := j.messages(t); !strings.Contains(text, x.want) {
				t.Errorf("the worker says %q, want %q", text, x.want)
			}
		})
	}
}

// Without a driver the reason says so.
func TestNoDriver(t *testing.T) {
	if realKind() != "" {
		t.Skip("there is one")
	}
	for p, want := range map[platform]string{onCUDA: "no CUDA driver: libcuda.so.1", onHIP: "no HIP: libamdhip64.so.7"} {
		t.Run(p.kind, func(t *testing.T) {
			b := newBuilder(1, 1, "gloo")
			b.collective(opAR, f32, plus, 0, 0, 1, 0)
			e := onGPU(p, b.w)
			j := start(t, e, launch{})
			j.wait()
			if text := j.messages(t); !strings.Contains(text, want) {
				t.Skipf("this machine seems to have a driver: %q", text)
			}
		})
	}
}

// What kinds of GPU there are, as the launcher asks.
func TestProbeDevice(t *testing.T) {
	for _, p := range platforms {
		t.Run(p.kind, func(t *testing.T) {
			cmd := exec.Command(worker(t), "--probe-device", p.kind)
			cmd.Env = append(cmd.Environ(), gpu(t, p)...)
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			var said struct {
				Count        int
				Name, Driver string
				Emulated     bool
			}
			if err := json.Unmarshal(out, &said); err != nil {
				t.Fatal(err)
			}
			if said.Count < 1 || said.Name == "" || !said.Emulated && realKind() == "" {
				t.Errorf("%s", out)
			}
			if want := map[string]string{"cuda": "12.4", "hip": "6.2"}[p.kind]; said.Emulated && said.Driver != want {
				t.Errorf("driver %q, want %q", said.Driver, want)
			}
		})
	}
	if out, err := exec.Command(worker(t), "--probe-device", "tpu").CombinedOutput(); err == nil || !strings.Contains(string(out), "known are cuda, hip") {
		t.Errorf("%v: %s", err, out)
	}
}

// Wrong data of every operation is found on the device too.
func TestDeviceDataCheckFails(t *testing.T) {
	if realKind() != "" {
		t.Skip("NCCL is not wrong")
	}
	for _, p := range platforms {
		t.Run(p.library, func(t *testing.T) { dataCheckFails(t, p) })
	}
}

func dataCheckFails(t *testing.T, p platform) {
	const size = 3
	env := gpu(t, p, "MIXDOWN_FAKE_WRONG=1")
	var workloads []*planpb.Workload
	for _, op := range collectives() {
		for _, inPlace := range []bool{false, true} {
			if op == planpb.Op_OP_BARRIER {
				continue
			}
			b := newBuilder(size, 1, p.library)
			root := 0
			if op == planpb.Op_OP_REDUCE || op == planpb.Op_OP_GATHER || op == planpb.Op_OP_GATHERV {
				root = size - 1 // only the root receives
			}
			b.call(call{op: op, dtype: i8, red: plus, root: root, count: 100, inPlace: inPlace})
			workloads = append(workloads, b.w)
		}
	}
	b := newBuilder(size, 1, p.library)
	b.ring(0, f32, 10, 0)
	e := onGPU(p, append(workloads, b.w)...)
	e.Settings.Iterations, e.Settings.Warmup = 0, 0
	j := start(t, e, launch{env: env})
	j.wait()
	seen := 0
	for _, r := range j.records(t, size-1) {
		v := r.GetVerification()
		if v == nil {
			continue
		}
		seen++
		if len(v.Errors) == 0 {
			t.Errorf("%v: no error", e.Plans[v.Plan].Workload.Programs[size-1].Tasks[0].GetCommunication())
		}
	}
	if seen != len(e.Plans) {
		t.Errorf("%d verdicts, want %d:\n%s", seen, len(e.Plans), j.out.String())
	}
}
