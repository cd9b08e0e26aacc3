package gate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMachine reads what heads of traces say, as Kineto writes them.
func TestMachine(t *testing.T) {
	for head, want := range map[string]machine{
		`{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA \"H100\"", "totalGlobalMem": 84929347584, "computeMajor": 9},{"id": 1, "name": "NVIDIA \"H100\"", "totalGlobalMem": 8}],
		  "cupti_version": 24, "cuda_runtime_version": 12080, "cuda_driver_version": 12090,
		  "distributedInfo": {"backend": "nccl", "nccl_version": "2.27.3"}, "traceEvents": [{"name": "x", "args": {"name": "y"}}`: {
			gpu: `NVIDIA "H100"`, versions: map[string]string{"cupti": "24", "cuda runtime": "12080", "cuda driver": "12090", "nccl": "2.27.3"},
		},
		`{"deviceProperties": [], "traceEvents": []}`: {versions: map[string]string{}},
		`not a trace`: {versions: map[string]string{}},
	} {
		if diff := cmp.Diff(want, parseMachine([]byte(head)), cmp.AllowUnexported(machine{})); diff != "" {
			t.Errorf("%s: %s", head, diff)
		}
	}
}
