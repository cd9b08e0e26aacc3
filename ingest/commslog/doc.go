// Package commslog reads what DeepSpeed's communication logger prints: a total
// for each operation and message size, and in verbose mode a line for each
// call. Neither is a timeline; both are a check on one.
//
//  1. The input is text (a job's output, with anything between the lines that
//     matter) or the JSON of log_summary(return_dict=True); its first byte
//     decides (read.go).
//  2. Summary and straggler tables have columns of 20 characters. A row is
//     read by columns first and, where a long value has shifted them, by its
//     grammar: size, count, four numbers with two decimals (table.go, row.go).
//  3. Verbose lines are found anywhere in a line, in the old form with "rank="
//     and in the new one; two that were written into one line are two (verbose.go).
//  4. Sizes in text are rounded to two decimals of a power of 1024, so a size
//     is an interval in bytes, and exact only in JSON, below 1 KB and for zero
//     (size.go).
//
// Times are int64 nanoseconds, read as decimals; text has them to 0.01 ms.
// Averages are means without the highest and the lowest tenth, so average x
// count is not the total. Bandwidths are what the logger printed: Gbit/s, made
// with the size of the world even for calls in smaller groups, and best
// computed anew from sizes and times. While the logger is on, operations block,
// so overlap in such a run is not that of the job.
//
// Sources: deepspeed/utils/comms_logging.py, its older versions, and the lines
// in DeepSpeed's tutorial and issues.
package commslog
