package collective

import "mixdown/ingest/comm"

// Bandwidth returns algorithm and bus bandwidth in GB/s (1e9 bytes), as
// nccl-tests defines them (its doc/PERFORMANCE.md): algbw is a size over a time
// and busbw scales it so that it can be held against the hardware's speed.
//
// inBytes and outBytes are one rank's, n the size of the group, ns the time of
// the transfer. It reports false where no time or size was measured.
func Bandwidth(op comm.Op, inBytes, outBytes int64, n int, ns int64) (algbw, busbw float64, ok bool) {
	if ns <= 0 || n <= 0 || inBytes <= 0 && outBytes <= 0 {
		return 0, 0, false
	}
	size := float64(max(inBytes, outBytes))
	factor := 1.0
	switch op {
	case comm.AllReduce:
		factor = 2 * float64(n-1) / float64(n)
	case comm.AllGather, comm.ReduceScatter, comm.AllToAll, comm.AllToAllV, comm.Gather, comm.Scatter,
		comm.AllGatherV, comm.ReduceScatterV:
		factor = float64(n-1) / float64(n)
	}
	algbw = size / float64(ns) // bytes per ns are GB per s
	return algbw, algbw * factor, true
}
