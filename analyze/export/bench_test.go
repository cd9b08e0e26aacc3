package export_test

import (
	"context"
	"io"
	"path/filepath"
	"testing"

	"mixdown/analyze/export"
	"mixdown/ingest/synthetic"
)

// BenchmarkExports writes a made run of 8 GPUs; the rate is in device events and
// operations of the host together.
func BenchmarkExports(b *testing.B) {
	run, _, err := synthetic.Load(b.TempDir(), synthetic.Options{Ranks: 8, Steps: 400, Generation: synthetic.CommSeq})
	if err != nil {
		b.Fatal(err)
	}
	in := analyze(b, run)
	events := 0
	for _, rank := range run.Ranks {
		events += rank.Events.Len()
	}
	tables := func(f func(context.Context, string, *export.Input) error) writer {
		return func(ctx context.Context, _ io.Writer, in *export.Input) error {
			return f(ctx, filepath.Join(b.TempDir(), "tables"), in)
		}
	}
	for _, c := range []struct {
		name  string
		write writer
	}{
		{"pprof", export.WritePprof}, {"perfetto", export.WritePerfetto}, {"chrome", export.WriteChrome},
		{"parquet", tables(export.WriteParquet)}, {"arrow", tables(export.WriteArrow)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.write(context.Background(), io.Discard, in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
