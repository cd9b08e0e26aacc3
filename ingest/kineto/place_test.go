package kineto_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMachine: names of GPUs and versions, as Kineto and PyTorch write them.
func TestMachine(t *testing.T) {
	type machine struct {
		gpu      string
		versions map[string]string
	}
	for head, want := range map[string]machine{
		`"deviceProperties": [{"id": 0, "name": "NVIDIA \"H100\"", "totalGlobalMem": 84929347584, "computeMajor": 9},{"id": 1, "name": "NVIDIA \"H100\"", "totalGlobalMem": 8}],
		  "cupti_version": 24, "cuda_runtime_version": 12080, "cuda_driver_version": 12090,
		  "distributedInfo": {"backend": "nccl", "nccl_version": "2.27.3"},`: {
			`NVIDIA "H100"`, map[string]string{"cupti": "24", "cuda runtime": "12080", "cuda driver": "12090", "nccl": "2.27.3"},
		},
		`"deviceProperties": [{"name": "B"},{"name": "A"},{"name": 7},{}], "hip_runtime_version": "6.4",`: {"A, B", map[string]string{"hip runtime": "6.4"}},
		`"deviceProperties": [], "cupti_version": [],`:                                                    {},
		``: {},
	} {
		r := one(t, head, "").Ranks[0]
		if diff := cmp.Diff(want, machine{r.GPU, r.Versions}, cmp.AllowUnexported(machine{})); diff != "" {
			t.Errorf("%s: %s", head, diff)
		}
	}
}

// TestHostGPUsAndChannels: only what the file says without doubt.
func TestHostGPUsAndChannels(t *testing.T) {
	const events = `
{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce(ncclDevComm*)","pid":0,"tid":20,"ts":30.5,"dur":7.25,"args":{"stream":20,"device":0,"grid":%s,"block":[544,1,1],"Collective name":"allreduce","dtype":"Float","In msg nelems":4,"Out msg nelems":4,"Group size":2,"Process Group Name":"0","Process Group Ranks":"[0, 1]"}}`
	for _, c := range []struct {
		head, grid string
		want       string // host, SMs, channels
		blocks     int
	}{
		{`"host_name":"node7","deviceProperties":[{"id":0,"name":"A","numSms":108},{"id":1,"name":"A","numSms":108}],`, `[24,1,1]`, "node7 108 24", 24},
		{`"deviceProperties":[{"id":0,"numSms":108},{"id":1,"numSms":132}],`, `[2,3,1]`, " 0 6", 6},
		{`"host_name":7,"deviceProperties":[{"id":0,"numSms":-5}],`, `"24"`, " 0 0", 0},
		{`"deviceProperties":{"numSms":4},`, `[0,1,1]`, " 0 0", 0},
		{``, `[9000000000000000000,2,1]`, " 0 0", 0},
		{``, `[]`, " 0 0", 0},
		{``, `[40000,8,2]`, " 0 0", 640_000},
	} {
		run := one(t, c.head, fmt.Sprintf(events, c.grid))
		r := run.Ranks[0]
		if got := r.Events.Blocks[r.Operations[0].Event]; int(got) != c.blocks {
			t.Errorf("grid %s: %d blocks, want %d", c.grid, got, c.blocks)
		}
		if got := fmt.Sprint(r.Host, " ", r.SMs, " ", r.Operations[0].Channels); got != c.want {
			t.Errorf("%s grid %s: %q, want %q", c.head, c.grid, got, c.want)
		}
	}
}
