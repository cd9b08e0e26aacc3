// Package dataset keeps a run as Parquet tables, so that traces are parsed once
// and notebooks can read what mixdown read of them.
//
// A dataset is a folder. Each table is a folder of it, partitioned by rank the
// way Hive does, which pyarrow, DuckDB, Polars and Spark discover by themselves:
//
//	DIR/_mixdown.json                       what this is, and what was read into it
//	DIR/events/rank=3/part-0.parquet        the events of rank 3, in file order
//	DIR/operations/rank=3/part-0.parquet    its communication, in the order issued
//	DIR/ranks, groups, steps, waits, event_waits, threads, diagnostics
//	DIR/_ranks/rank=3                       written last: rank 3 is whole
//
// Times are int64 nanoseconds, sizes are bytes or elements as the column says,
// and what is not known is null. "mixdown help datasets" lists the columns.
//
// A dataset may be in an object store instead, file by file: see [Place]. Several
// tasks may write one together: see [Task].
//
// A rank is written below DIR/_incomplete and its folders are renamed into
// place, its marker last. The marker holds the length and the check sum of each
// file, so neither a killed process nor a damaged disk makes a rank that reads
// as whole but is not; and it holds what the rank was read from, so that
// reading again does what is left to do and no more.
//
// Parquet is written and read column by column through Arrow's parquet/file
// package: the store is columns already, and the Arrow layer above it would
// bring gRPC into the program. Files are taken for hostile: whatever a file
// says is checked before memory is set aside for it or an index is followed.
package dataset
