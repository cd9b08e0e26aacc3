// Package megatron reads the pipeline of Chrome traces as Megatron-style
// tracers write them (MegatronApp's MegaScan): one file for all ranks of a
// pipeline, B and E events named "forward" and "backward", the process id the
// pipeline rank, the thread id the run, and "microbatch", "model_chunk" and
// "pp_rank" in the arguments of the E event.
//
// [Read] joins the pairs and gives typed spans. It says nothing of what the
// trace has not: communication, and which data a span waited for.
package megatron
