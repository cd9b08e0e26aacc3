package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"mixdown/ingest/comm"
	"mixdown/ingest/synthetic"
)

// contended DIR FACTOR [BACKEND] writes the traces of a job on GPUs whose kernels take
// so many times as long while communication of the backend, nccl, runs beside them.
func contended(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 && len(args) != 3 {
		ts.Fatalf("usage: contended DIR FACTOR [BACKEND]")
	}
	factor, err := strconv.ParseFloat(args[1], 64)
	ts.Check(err)
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o777))
	_, err = synthetic.WriteFiles(dir, synthetic.Options{
		Ranks: 4, Steps: 4, Kernels: 60, KernelNs: 50_000, Noise: 0.02, Seed: 9, Contention: factor,
		Collectives: []synthetic.Collective{
			{Op: comm.AllReduce, Elements: 1 << 24, Async: true}, {Op: comm.AllGather, Elements: 1 << 16},
			{Op: comm.AllReduce, Elements: 1 << 24, Async: true}, {Op: comm.AllReduce, Elements: 1 << 12},
		},
	})
	ts.Check(err)
	for _, backend := range args[2:] {
		files, err := filepath.Glob(filepath.Join(dir, "*.json"))
		ts.Check(err)
		for _, name := range files {
			data, err := os.ReadFile(name)
			ts.Check(err)
			ts.Check(os.WriteFile(name, bytes.Replace(data, []byte(`"backend": "nccl"`), []byte(`"backend": "`+backend+`"`), 1), 0o666))
		}
	}
}
