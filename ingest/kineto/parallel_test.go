package kineto_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"mixdown/ingest/chrome"
	"mixdown/ingest/kineto"
	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/source"
	"mixdown/ingest/trace"
)

// manyEvents is a trace with every kind of thing that is read of events, in
// random order, and faults in some of them.
func manyEvents(rng *rand.Rand, n int) string {
	var events []string
	add := func(format string, args ...any) { events = append(events, fmt.Sprintf(format, args...)) }
	for i := range n {
		t, tid := 10*i, 2+rng.IntN(5)
		switch rng.IntN(13) {
		case 0:
			add(`{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":%d,"ts":%d,"dur":9,"args":{"Collective name":"allreduce","dtype":"Float","In msg nelems":%d,"Out msg nelems":%d,"Group size":2,"Process Group Name":"7","Process Group Ranks":"[0, 1]"}}`, tid, t, i, i)
			add(`{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":%d,"ts":%d,"dur":3,"args":{"correlation":%d}}`, tid, t+1, i)
			add(`{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)","pid":0,"tid":20,"ts":%d.5,"dur":7.25,"args":{"correlation":%d,"stream":20,"device":0}}`, t+3, i)
		case 1:
			add(`{"ph":"X","cat":"user_annotation","name":"ProfilerStep#%d","pid":1,"tid":2,"ts":%d,"dur":300}`, i, t)
		case 2:
			add(`{"ph":"M","name":"thread_name","pid":1,"tid":%d,"args":{"name":"pt_gloo_runloop %d"}}`, tid+rng.IntN(90), i)
		case 3:
			add(`{"ph":"X","cat":"cpu_op","name":"_c10d_functional::wait_tensor","pid":1,"tid":%d,"ts":%d,"dur":1}`, tid, t)
		case 4:
			add(`{"ph":"X","cat":"python_function","name":"train.py(%d): step","pid":1,"tid":%d,"ts":%d,"dur":1}`, rng.IntN(9), tid, t)
		case 5:
			add(`{"ph":"X","cat":"python_function","name":"nn.Module: Linear_%d","pid":1,"tid":%d,"ts":%d,"dur":40}`, rng.IntN(9), tid, t)
		case 6:
			add(`{"ph":"s","id":%d,"pid":1,"tid":%d,"ts":%d,"cat":"ac2g","name":"ac2g"}`, i, tid, t)
		case 7:
			add(`{"ph":"X","cat":"kernel","name":"timed \"badly\" %d","pid":0,"tid":"stream 7","ts":0,"dur":0}`, i)
		case 8:
			add(`{"ph":"X","cat":"cpu_op","name":"aten::no time %d","pid":1,"tid":%d,"ts":nan}`, i, tid)
		case 9:
			add(`{"ph":"X","cat":"kernel","name":"gemm "quoted" %d","pid":0,"tid":7,"ts":%d,"dur":2,"args":{"stream":7,"correlation":%d}}`, rng.IntN(4), t, i)
		case 10:
			add(`{"ph":"X","cat":"cpu_op","name":"broken, "pid":1}`)
		default:
			add(`{"ph":"X","cat":"gpu_memcpy","name":"Memcpy %d","pid":0,"tid":7,"ts":%d,"dur":2,"args":{"stream":7,"correlation":%d}}`, rng.IntN(99), t, i)
		}
	}
	return traceOf(`"distributedInfo":{"rank":0,"world_size":2,"backend":"nccl"},`, strings.Join(events, ",\n"))
}

// sameRun says how two runs differ.
func sameRun(a, b *trace.Run) string {
	if x, y := fmt.Sprint(a.Diagnostics.List()), fmt.Sprint(b.Diagnostics.List()); x != y {
		return x + "\nand\n" + y
	}
	if len(a.Ranks) != len(b.Ranks) {
		return fmt.Sprint(len(a.Ranks), " and ", len(b.Ranks), " ranks")
	}
	for i := range a.Ranks {
		x, y := reflect.ValueOf(*a.Ranks[i]), reflect.ValueOf(*b.Ranks[i])
		for f := range x.NumField() {
			if !reflect.DeepEqual(a.Ranks[i], b.Ranks[i]) && fmt.Sprint(x.Field(f)) != fmt.Sprint(y.Field(f)) {
				return fmt.Sprintf("rank %d: %s", a.Ranks[i].Rank, x.Type().Field(f).Name)
			}
		}
		if !reflect.DeepEqual(a.Ranks[i], b.Ranks[i]) {
			return fmt.Sprintf("rank %d", a.Ranks[i].Rank)
		}
	}
	return ""
}

// TestPartsMakeTheSameRun: however a file is cut and however many read it, the
// run is the same, numbers of names and threads included.
func TestPartsMakeTheSameRun(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 30 {
		files := map[string]string{"rank0.json": manyEvents(rng, 20+rng.IntN(400))}
		want, err := loadFiles(t, files, kineto.Options{Limits: chrome.Options{Workers: 1}})
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			limits := chrome.Options{Workers: 2 + rng.IntN(3), PartBytes: 1 + rng.IntN(4000), BufferSize: 64 + rng.IntN(400)}
			got, err := loadFiles(t, files, kineto.Options{Limits: limits})
			if err != nil {
				t.Fatal(err)
			}
			for _, run := range []*trace.Run{want, got} {
				run.Ranks[0].Source = ""
			}
			if d := sameRun(want, got); d != "" {
				t.Fatalf("%+v: %s", limits, d)
			}
		}
	}
}

// TestPartsOfRealTraces: likewise for the corpus, each file as a run of its own.
func TestPartsOfRealTraces(t *testing.T) {
	corpus := kinetotest.Corpus(t)
	files, err := source.Find([]string{corpus}, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		if testing.Short() && i%5 != 0 {
			continue
		}
		var runs [2]*trace.Run
		var errs [2]error
		for k, limits := range []chrome.Options{{Workers: 1}, {Workers: 3, PartBytes: 20_000, BufferSize: 2_000}} {
			runs[k], errs[k] = kineto.Load(context.Background(), files[i:i+1], kineto.Options{Limits: limits})
		}
		name, _ := filepath.Rel(corpus, f.Name)
		if fmt.Sprint(errs[0]) != fmt.Sprint(errs[1]) {
			t.Errorf("%s: %v, in parts %v", name, errs[0], errs[1])
		} else if errs[0] == nil {
			if d := sameRun(runs[0], runs[1]); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
}

// TestEventsThatAreNotStored: what the interpreter did, flows and counters are
// counted and not kept.
func TestEventsThatAreNotStored(t *testing.T) {
	run, err := loadFiles(t, map[string]string{"rank0.json": traceOf(``, `
{"ph":"X","cat":"python_function","name":"a.py(1): f","pid":1,"tid":2,"ts":1,"dur":1},
{"ph":"X","cat":"python_function","name":"nn.Module: Linear_0","pid":1,"tid":2,"ts":2,"dur":1},
{"ph":"s","id":1,"pid":1,"tid":2,"ts":3,"cat":"ac2g","name":"ac2g"},
{"ph":"C","name":"memory","pid":1,"tid":2,"ts":3,"args":{"bytes":1}},
{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":2,"ts":4,"dur":1}`)}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rank := run.Ranks[0]
	var names []string
	for i := range rank.Events.Len() {
		names = append(names, rank.Name(i))
	}
	if got := strings.Join(names, ", "); rank.Read != 5 || got != "nn.Module: Linear_0, aten::add" {
		t.Errorf("%d events read, stored: %s", rank.Read, got)
	}
}

// TestReadingEndsItsGoroutines: nothing is left behind, faults or not.
func TestReadingEndsItsGoroutines(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	before := runtime.NumGoroutine()
	for range 5 {
		content := manyEvents(rng, 300)
		for _, c := range []string{content, content[:len(content)/2], content[len(content)/2:]} {
			loadFiles(t, map[string]string{"rank0.json": c}, kineto.Options{Limits: chrome.Options{Workers: 3, PartBytes: 500, BufferSize: 64}})
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, %d before", after, before)
	}
}
