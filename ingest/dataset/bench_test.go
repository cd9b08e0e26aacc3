package dataset_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"mixdown/ingest/dataset"
	"mixdown/ingest/trace"
)

// big is a rank of a million events, as a long trace has them.
func big() *trace.Rank {
	r := &trace.Rank{Names: trace.NewStrings(), Threads: make([]trace.Thread, 4)}
	for i := range 1_000_000 {
		row := trace.Row{
			Name:     r.Names.Intern(fmt.Appendf(nil, "void at::native::vectorized_elementwise_kernel<4, functor_%d>", i*7919%3000)),
			Category: trace.CPUOp, Thread: trace.ThreadID(i % 4), TS: 1_700_000_000_000_000_000 + int64(i)*1713 + int64(i*i%997),
			Dur: int64(i * i % 90_001), Offset: int64(i) * 211, Correlation: trace.NoID, Stream: trace.NoStream, Device: -1,
		}
		if i%3 == 0 {
			row.Category, row.Correlation, row.Stream, row.Device = trace.Kernel, int64(i/3), int64(7+i%2), 0
		}
		r.Events.Append(row)
	}
	return r
}

func BenchmarkWrite(b *testing.B) {
	r := big()
	w, err := dataset.Create(dataset.Folder(filepath.Join(b.TempDir(), "ds")), dataset.CreateOptions{Tool: tool})
	if err != nil {
		b.Fatal(err)
	}
	var size int64
	for b.Loop() {
		e, err := w.Write(r, nil, dataset.Provenance{})
		if err != nil {
			b.Fatal(err)
		}
		size = e.Bytes
	}
	perSecond(b, r)
	b.ReportMetric(float64(size)/float64(r.Events.Len()), "bytes/event")
}

func BenchmarkRead(b *testing.B) {
	r := big()
	dir := filepath.Join(b.TempDir(), "ds")
	write(b, dir, &trace.Run{Ranks: []*trace.Rank{r}})
	for b.Loop() {
		read(b, dir)
	}
	perSecond(b, r)
}

// BenchmarkWriteSmall shows what a rank costs whatever its size.
func BenchmarkWriteSmall(b *testing.B) {
	run := load(b, "../../testdata/pipeline_1f1b_4rank/rank0*")
	w, err := dataset.Create(dataset.Folder(filepath.Join(b.TempDir(), "ds")), dataset.CreateOptions{Tool: tool})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := w.Write(run.Ranks[0], nil, dataset.Provenance{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTraces compares with reading the traces themselves.
func BenchmarkTraces(b *testing.B) {
	corpus := os.Getenv("MIXDOWN_CORPUS")
	if corpus == "" {
		b.Skip("MIXDOWN_CORPUS is not set")
	}
	run := load(b, filepath.Join(corpus, "param/dlrm_8rank/kineto"))
	dir := filepath.Join(b.TempDir(), "ds")
	write(b, dir, run)
	b.Run("json", func(b *testing.B) {
		for b.Loop() {
			load(b, filepath.Join(corpus, "param/dlrm_8rank/kineto"))
		}
	})
	b.Run("dataset", func(b *testing.B) {
		for b.Loop() {
			read(b, dir)
		}
	})
}

func perSecond(b *testing.B, r *trace.Rank) {
	b.ReportMetric(float64(r.Events.Len())*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
