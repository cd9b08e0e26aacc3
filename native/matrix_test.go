// The matrix: every operation, dtype, reduce op and backend, in place and not,
// on groups of every shape.
package native_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mixdown/replay/plan/planpb"
)

// dtypes are all that the plan knows.
func dtypes() []planpb.DType {
	var all []planpb.DType
	for n := range planpb.DType_name {
		if d := planpb.DType(n); d != planpb.DType_DTYPE_UNSPECIFIED {
			all = append(all, d)
		}
	}
	slices.Sort(all)
	return all
}

// reduceOps are those that the dtype has.
func reduceOps(d planpb.DType) []planpb.ReduceOp {
	const (
		sum, avg = planpb.ReduceOp_REDUCE_OP_SUM, planpb.ReduceOp_REDUCE_OP_AVG
		lo, hi   = planpb.ReduceOp_REDUCE_OP_MIN, planpb.ReduceOp_REDUCE_OP_MAX
		product  = planpb.ReduceOp_REDUCE_OP_PROD
		and, or  = planpb.ReduceOp_REDUCE_OP_BAND, planpb.ReduceOp_REDUCE_OP_BOR
		xor      = planpb.ReduceOp_REDUCE_OP_BXOR
		premul   = planpb.ReduceOp_REDUCE_OP_PREMUL_SUM
	)
	switch d {
	case planpb.DType_DTYPE_FLOAT8_E4M3FN, planpb.DType_DTYPE_FLOAT8_E5M2:
		return nil
	case planpb.DType_DTYPE_COMPLEX64, planpb.DType_DTYPE_COMPLEX128:
		return []planpb.ReduceOp{sum, avg, premul}
	case planpb.DType_DTYPE_FLOAT16, planpb.DType_DTYPE_BFLOAT16, f32, planpb.DType_DTYPE_FLOAT64:
		return []planpb.ReduceOp{sum, avg, lo, hi, product, premul}
	case planpb.DType_DTYPE_BOOL:
		return []planpb.ReduceOp{sum, lo, hi, product, and, or, xor}
	}
	return []planpb.ReduceOp{sum, avg, lo, hi, product, and, or, xor}
}

func reducing(op planpb.Op) bool {
	switch op {
	case opAR, planpb.Op_OP_REDUCE, planpb.Op_OP_REDUCE_SCATTER, planpb.Op_OP_REDUCE_SCATTERV:
		return true
	}
	return false
}

// collectives are all ops but point-to-point.
func collectives() []planpb.Op {
	var ops []planpb.Op
	for n := range planpb.Op_name {
		switch op := planpb.Op(n); op {
		case planpb.Op_OP_UNSPECIFIED, planpb.Op_OP_SEND, planpb.Op_OP_RECV, planpb.Op_OP_BATCH:
		default:
			ops = append(ops, op)
		}
	}
	slices.Sort(ops)
	return ops
}

// coalescing are those that may have parts.
func coalescing() []planpb.Op {
	return []planpb.Op{opAR, planpb.Op_OP_REDUCE, planpb.Op_OP_BROADCAST, planpb.Op_OP_ALL_GATHER,
		planpb.Op_OP_REDUCE_SCATTER, planpb.Op_OP_ALL_TO_ALL, planpb.Op_OP_GATHER, planpb.Op_OP_SCATTER}
}

// cells are all combinations of op, dtype, reduce op and place, without counts.
func cells() []call {
	var all []call
	for _, op := range collectives() {
		for _, d := range dtypes() {
			reds := []planpb.ReduceOp{planpb.ReduceOp_REDUCE_OP_UNSPECIFIED}
			if reducing(op) {
				reds = reduceOps(d)
			}
			for k, red := range reds {
				factor := 0.0
				if red == planpb.ReduceOp_REDUCE_OP_PREMUL_SUM {
					factor = []float64{0.5, -1.0 / 3}[k%2]
				}
				all = append(all, call{op: op, dtype: d, red: red, factor: factor})
				if op != planpb.Op_OP_BARRIER {
					all = append(all, call{op: op, dtype: d, red: red, factor: factor, inPlace: true})
				}
			}
		}
	}
	return all
}

// shapes adds groups to the world of a builder: a pair and its reverse, every
// second rank, one rank, and all in another order. They overlap.
func shapes(b *builder, size int) []int {
	groups := []int{0, b.group(size - 1)}
	if size >= 2 {
		groups = append(groups, b.group(0, size-1), b.group(size-1, 0))
	}
	if size >= 3 {
		var all, even []int
		for r := range size {
			all = append(all, (r*3+1)%size)
			if r%2 == 0 {
				even = append(even, r)
			}
		}
		if size%3 == 0 {
			slices.Sort(all)
			all = slices.Compact(all)
		}
		groups = append(groups, b.group(even...), b.group(all...))
	}
	return groups
}

// matrix is a workload with all cells on the whole world (of eight ranks every
// third cell: they share few cores), and every seventh on the other groups in
// turn. It returns the number of operations.
func matrix(size int, backend string) (*planpb.Workload, int) {
	return matrixOf(size, backend, func(call) bool { return true })
}

// matrixOf is a matrix without what the backend can't do.
func matrixOf(size int, backend string, can func(call) bool) (*planpb.Workload, int) {
	b := newBuilder(size, 1, backend)
	groups := shapes(b, size)
	counts := []int64{37, 1, 0, 5, 64}
	n := 0
	step := 1
	if size > 4 {
		step = 3
	}
	for i, x := range cells() {
		if i%step != 0 || !can(x) {
			continue
		}
		x.count, x.root, x.withoutSplits = counts[0], i%size, i%2 == 0
		if i%4 == 0 {
			x.count = counts[i/4%len(counts)]
		}
		b.call(x)
		n++
	}
	for i, x := range cells() {
		if i%7 != 0 || !can(x) {
			continue
		}
		x.group = groups[1+i/7%(len(groups)-1)]
		x.root, x.count = i%len(b.members(x.group)), counts[i%len(counts)]
		b.call(x)
		n++
	}
	for i, op := range coalescing() {
		for k, d := range dtypes() {
			x := call{op: op, dtype: d, red: plus, root: (i + k) % size, inPlace: (i+k)%2 == 0, parts: []int64{7, 0, 1, 130}}
			if reducing(op) && len(reduceOps(d)) == 0 || !can(x) {
				continue
			}
			b.call(x)
			n++
		}
	}
	for _, op := range collectives() {
		for k, d := range []planpb.DType{f32, f16, i8, planpb.DType_DTYPE_COMPLEX128} {
			b.call(call{op: op, dtype: d, red: plus, root: size / 2, count: 70_001 / int64(size), inPlace: k == 1 && op != planpb.Op_OP_BARRIER})
			n++
		}
	}
	for _, d := range dtypes() {
		for _, g := range groups {
			b.ring(g, d, 37, 0)
			n++
		}
		if size > 1 { // a message to self must be in a batch: a send may wait for its receive
			b.sendRecv(0, 0, size-1, d, 1001, 0)
			n++
		}
	}
	b.ring(0, f32, 0, 0)
	b.ring(0, f32, 300_000, 0)
	return b.w, n + 2
}

func TestMatrix(t *testing.T) {
	for _, backend := range backends {
		for _, size := range []int{1, 2, 3, 4, 8} {
			t.Run(fmt.Sprintf("%s/%d", backend, size), func(t *testing.T) {
				need(t, filepath.Dir(worker(t)), backend)
				w, n := matrix(size, backend)
				e := experiment(w)
				e.Settings.Iterations, e.Settings.Warmup = 0, 0
				start(t, e, launch{backend: backend}).done(t, e)
				t.Logf("%d operations, %d cells of op, dtype, reduce op and place", n, len(cells()))
			})
		}
	}
}

// Each cell fails when its data is wrong: one plan for each, so that each has its
// own verdict, on the backend that is wrong for the last rank.
func TestDataCheckFails(t *testing.T) {
	folder := filepath.Join(filepath.Dir(worker(t)), "testing")
	need(t, folder, "broken")
	const size = 3
	var workloads []*planpb.Workload
	var want []string
	for i, x := range append(cells(), coalescedCells()...) {
		b := newBuilder(size, 1, "broken")
		if len(x.parts) == 0 {
			x.count = 100
		}
		x.root = 0
		if x.op == planpb.Op_OP_REDUCE || x.op == planpb.Op_OP_GATHER || x.op == planpb.Op_OP_GATHERV {
			x.root = size - 1 // only the root receives
		}
		x.withoutSplits = i%2 == 0
		b.call(x)
		workloads = append(workloads, b.w)
		name := strings.ToLower(strings.TrimPrefix(x.op.String(), "OP_"))
		switch x.op {
		case planpb.Op_OP_BARRIER:
			want = append(want, "")
		case planpb.Op_OP_ALL_TO_ALL:
			want = append(want, "its input was written")
			if x.inPlace {
				want[len(want)-1] = "all_to_all of" // which is its output
			}
		case planpb.Op_OP_ALL_GATHER:
			want = append(want, "after its output were written")
			if len(x.parts) > 0 {
				want[len(want)-1] = name // the byte after a part is the next part's
			}
		default:
			want = append(want, name)
		}
	}
	e := experiment(workloads...)
	e.Settings.Iterations, e.Settings.Warmup = 0, 0
	j := start(t, e, launch{modules: folder})
	j.wait()
	for i := range size {
		seen := 0
		for _, r := range j.records(t, i) {
			v := r.GetVerification()
			if v == nil {
				continue
			}
			seen++
			text := strings.Join(v.Errors, "\n")
			c := workloads[v.Plan].Programs[i].Tasks[0].GetCommunication()
			switch expected := want[v.Plan]; {
			case i < size-1 || expected == "":
				if text != "" {
					t.Errorf("rank %d: %v: %s", i, c, text)
				}
			case !strings.Contains(text, expected):
				t.Errorf("rank %d: %v: errors %q, want %q", i, c, text, expected)
			}
		}
		if seen != len(workloads) {
			t.Errorf("rank %d: %d verdicts, want %d:\n%s", i, seen, len(workloads), j.out.String())
		}
	}
	t.Logf("%d cells", len(workloads))
}

// coalescedCells are coalesced operations in and out of place.
func coalescedCells() []call {
	var all []call
	for _, op := range coalescing() {
		for _, inPlace := range []bool{false, true} {
			all = append(all, call{op: op, dtype: f32, red: plus, inPlace: inPlace, parts: []int64{3, 50}})
		}
	}
	return all
}

// More elements than an int counts, where the memory is: MIXDOWN_LARGE=1 runs it.
// The smallest such thing in every way that a backend may take.
func TestMoreThanAnIntCounts(t *testing.T) {
	if os.Getenv("MIXDOWN_LARGE") == "" {
		t.Skip("needs 10 GiB of memory and a quarter of an hour: set MIXDOWN_LARGE=1")
	}
	const count = 1<<31 + 5
	for _, backend := range backends {
		for name, add := range map[string]func(b *builder){
			"broadcast": func(b *builder) { b.call(call{op: planpb.Op_OP_BROADCAST, dtype: i8, count: count}) },
			"send":      func(b *builder) { b.sendRecv(0, 1, 0, i8, count, 0) },
			"all_reduce": func(b *builder) {
				b.call(call{op: opAR, dtype: i8, red: planpb.ReduceOp_REDUCE_OP_BXOR, count: count, inPlace: true})
			},
			"all_gather": func(b *builder) {
				b.call(call{op: planpb.Op_OP_ALL_GATHER, dtype: i8, count: count/2 + 1, inPlace: true})
			},
			"scatterv": func(b *builder) { b.call(call{op: planpb.Op_OP_SCATTERV, dtype: i8, count: count/2 + 1}) },
			"all_to_allv": func(b *builder) {
				b.call(call{op: planpb.Op_OP_ALL_TO_ALLV, dtype: i8, count: count / 2})
			},
			"bytes": func(b *builder) { b.call(call{op: planpb.Op_OP_BROADCAST, dtype: f32, count: count/4 + 1000}) },
		} {
			t.Run(backend+"/"+name, func(t *testing.T) {
				need(t, filepath.Dir(worker(t)), backend)
				b := newBuilder(2, 1, backend)
				add(b)
				e := experiment(b.w)
				e.Settings.Iterations, e.Settings.Warmup = 0, 0
				start(t, e, launch{backend: backend, deadline: largeDeadline}).done(t, e)
			})
		}
	}
}
