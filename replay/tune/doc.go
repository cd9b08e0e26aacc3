// Package tune holds tables of measurements: what an operation of a size takes on
// a library, with its settings, on a machine.
//
//  1. A Row is one measurement. It keeps what one rank contributes and receives in
//     bytes, from which every other tool's "size" follows (package imports), and
//     the time of the slowest rank: of the operation in a row, or within a job's step.
//
//  2. A Table is rows and the environments they were made in. Tables are merged
//     (table.go), stored as protobuf (file.go, tune.proto) and written as Parquet
//     for others to read (parquet.go).
//
//  3. Costs answers what an operation costs: as measured, between two measured
//     sizes on a straight line through the logarithms of size and time, and beyond
//     them by a fitted line alpha + beta x bytes, with a warning (cost.go, fit.go).
//
//  4. Compare finds who wins where, the sizes at which two contenders cross, and
//     what is lost by one contender for everything (compare.go, crossing.go).
//
//  5. A Contention is how much longer kernels take beside a contender's operations
//     (contention.go); it comes from traces.
//
// Measuring is package measure, other tools' results are package imports, and what
// a user applies is package exports.
//
// Times are int64 ns, sizes int64 bytes.
package tune
