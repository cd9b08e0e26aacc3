// Package export writes what an analysis found for other programs to read.
//
//	pprof     samples for "go tool pprof": what communication cost, by where it was issued
//	Perfetto  the run's time line as protobuf, for ui.perfetto.dev and trace_processor
//	Chrome    the same time line as JSON, for chrome://tracing and for scripts
//	tables    Parquet and Arrow, for DuckDB, Polars, pandas
//
// All of them start from the same two views of a rank: its operations with what
// is known of each (operation.go) and its time line (timeline.go). They are made
// rank by rank and written as they are made, so that memory is that of one rank
// beside the run itself.
//
// Times are int64 ns on the aligned clock (package align, applied before); a
// quantity that is not known is null or absent, never 0. Names from traces are
// hostile: they are escaped, and what is not UTF-8 is replaced.
//
// Files are written under a temporary name beside the target and renamed when
// they are whole (target.go), so a killed process leaves the old file or none.
package export
