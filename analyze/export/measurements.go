package export

import (
	"fmt"
	"io"
)

// Measurement is a row of a table of measurements of communication libraries; see
// package tune, which has it. Numbers that are 0 where they can't be are null in
// the file.
type Measurement struct {
	Backend, Variant, Version string
	Op, DType, Device         string
	InPlace                   bool
	Ranks, Nodes              int64
	In, Out, SizeError        int64 // bytes
	Streams                   int64
	Time                      int64 // ns
	Statistic                 string
	Min, P95, N               int64
	CILow, CIHigh             int64 // ns
	Hardware, Environment     string
	Source                    string
	Verified                  bool
	InStep                    bool
	Gap                       int64 // ns
}

// WriteMeasurements writes measurements as a Parquet file.
func WriteMeasurements(w io.Writer, rows []Measurement) error {
	l := measurementsLayout()
	meta := map[string]string{"mixdown.schema_version": fmt.Sprint(SchemaVersion), "mixdown.table": l.name}
	// Without its Close, which the library would call.
	if err := writeParquet(struct{ io.Writer }{w}, l.sheet(rows, meta)); err != nil {
		return fmt.Errorf("write measurements: %w", err)
	}
	return nil
}

func measurementsLayout() layout[Measurement] {
	type m = Measurement
	known := func(get func(*m) int64) func(*m) (int64, bool) {
		return func(x *m) (int64, bool) { return get(x), get(x) != 0 }
	}
	return layout[m]{
		name: "measurements", sorted: []string{"op", "ranks", "nodes"},
		about: "what one operation of one size takes on a communication library",
		columns: []column[m]{
			word("backend", "library", func(x *m) string { return x.Backend }),
			word("variant", "its settings; null for its own choice", func(x *m) string { return x.Variant }),
			word("version", "as the library itself reports it", func(x *m) string { return x.Version }),
			word("op", "operation", func(x *m) string { return x.Op }),
			word("dtype", "element type", func(x *m) string { return x.DType }),
			word("device", "where the buffers are: host or gpu", func(x *m) string { return x.Device }),
			flag("in_place", "input and output share memory", func(x *m) bool { return x.InPlace }),
			whole("ranks", "ranks", "members of the group", func(x *m) int64 { return x.Ranks }),
			maybe("nodes", "nodes", "machines they are on", known(func(x *m) int64 { return x.Nodes })),
			whole("in_bytes", "bytes", "one rank contributes", func(x *m) int64 { return x.In }),
			whole("out_bytes", "bytes", "one rank receives", func(x *m) int64 { return x.Out }),
			whole("size_error", "bytes", "the sizes are right to so many; 0: exact", func(x *m) int64 { return x.SizeError }),
			whole("streams", "groups", "that ran the same at once", func(x *m) int64 { return x.Streams }),
			whole("time_ns", "ns", "of the slowest rank", func(x *m) int64 { return x.Time }),
			word("statistic", "what time_ns is", func(x *m) string { return x.Statistic }),
			maybe("min_ns", "ns", "shortest", known(func(x *m) int64 { return x.Min })),
			maybe("p95_ns", "ns", "95th percentile", known(func(x *m) int64 { return x.P95 })),
			maybe("n", "", "measurements", known(func(x *m) int64 { return x.N })),
			maybe("ci_low_ns", "ns", "95 % confidence interval of the median", known(func(x *m) int64 { return x.CILow })),
			maybe("ci_high_ns", "ns", "its other end", known(func(x *m) int64 { return x.CIHigh })),
			word("hardware", "of the machine", func(x *m) string { return x.Hardware }),
			word("environment", "hash of hardware, libraries and settings", func(x *m) string { return x.Environment }),
			word("source", "who measured", func(x *m) string { return x.Source }),
			flag("verified", "the data was compared and right", func(x *m) bool { return x.Verified }),
			flag("in_step", "measured within a job's step, else in a row", func(x *m) bool { return x.InStep }),
			maybe("gap_ns", "ns", "in a step: between what a rank communicated before and this", func(x *m) (int64, bool) { return x.Gap, x.InStep }),
		},
	}
}
