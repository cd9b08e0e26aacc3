// Package commlog writes what a replay measured as DeepSpeed's communication
// logger would: a table of operations and message sizes, for those who read such
// tables, and the dictionary of log_summary(return_dict=True) as JSON, with every
// single call beside it. Package ingest/commslog reads both.
//
// The layout is DeepSpeed's to the byte: names of its functions, sizes of the
// tensor that is passed in (of gathers one rank's part), averages without the
// highest and the lowest tenth, Gbit/s with all_reduce counted twice. Three things
// are better than in DeepSpeed's own tables. Latencies are those of the operations
// as they ran, overlapped as in the job: DeepSpeed's logger makes each call block,
// and in some versions adds up the times of earlier ones. Bandwidths go by the size
// of the group, not by that of the job. And a straggler's share is found by
// matching the operation, not by counting calls.
package commlog
