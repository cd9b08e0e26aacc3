package native_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"mixdown/replay/plan/planpb"
)

// persistent are the libraries that have persistent collectives, asked for.
var persistent = []string{"mpich", "openmpi"}

var asPersistent = []string{"MIXDOWN_MPI_PERSISTENT=1"}

// Persistent requests: the matrix, whose check runs everything a second time on other
// numbers, so that what was made at first is started again.
func TestPersistentMatrix(t *testing.T) {
	for _, backend := range persistent {
		for _, size := range []int{1, 2, 3, 4, 8} {
			t.Run(fmt.Sprintf("%s/%d", backend, size), func(t *testing.T) {
				need(t, filepath.Dir(worker(t)), backend)
				w, _ := matrix(size, backend)
				e := experiment(w)
				e.Settings.Iterations, e.Settings.Warmup = 1, 0
				start(t, e, launch{backend: backend, env: asPersistent}).done(t, e)
			})
		}
	}
}

// Operations that differ in their size, group or stream alternate, in two plans: each
// has requests of its own, and on each member buffers of its own, as members put the
// same operation on different streams. The sizes are those for which libraries take
// other algorithms than in the matrix.
func TestPersistentRepeats(t *testing.T) {
	for _, backend := range persistent {
		for _, size := range []int{2, 5, 8} {
			t.Run(fmt.Sprintf("%s/%d", backend, size), func(t *testing.T) {
				need(t, filepath.Dir(worker(t)), backend)
				var plans []*planpb.Workload
				for plan := range 2 {
					b := newBuilder(size, 2, backend)
					groups := shapes(b, size)
					for k, op := range collectives() {
						for i, count := range []int64{150_000, 3, 150_000} {
							b.call(call{op: op, dtype: f32, red: plus, root: (k + i) % size, count: count / int64(1+plan), inPlace: i == 1 && op != planpb.Op_OP_BARRIER, stream: i % 2})
						}
						for i, g := range groups {
							b.call(call{op: op, dtype: planpb.DType_DTYPE_INT32, red: plus, group: g, count: 100, stream: (i + plan) % 2})
						}
					}
					// The odd ranks the other way round.
					for _, p := range b.w.Programs {
						for _, task := range p.Tasks {
							if p.Rank%2 == 1 {
								task.Stream = 1 - task.Stream
							}
						}
					}
					plans = append(plans, b.w)
				}
				e := experiment(plans...)
				e.Settings.Iterations, e.Settings.Warmup = 1, 0
				start(t, e, launch{backend: backend, env: asPersistent}).done(t, e)
			})
		}
	}
}
