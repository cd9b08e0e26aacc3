package exports

import (
	"encoding/json"
	"fmt"
	"slices"

	"mixdown/ingest/comm"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// PARAM's basic trace is a list of records for each rank, as
// train/comms/pt/commsTraceParser.py reads them: an "init" for each group, then
// operations with their sizes in elements; a point-to-point message has its ends.
type paramRecord struct {
	Comms     string   `json:"comms"`
	Req       *int     `json:"req,omitempty"`
	In        *int64   `json:"in_msg_size,omitempty"`
	Out       *int64   `json:"out_msg_size,omitempty"`
	DType     string   `json:"dtype,omitempty"`
	InSplit   []int64  `json:"in_split,omitempty"`
	OutSplit  []int64  `json:"out_split,omitempty"`
	Root      *int32   `json:"root,omitempty"`
	Src       *int32   `json:"src_rank,omitempty"`
	Dst       *int32   `json:"dst_rank,omitempty"`
	Batch     *bool    `json:"use_batch,omitempty"`
	Group     int32    `json:"pg_id"`
	Ranks     []int32  `json:"global_ranks,omitempty"`
	WorldSize int      `json:"world_size"`
	Start     int64    `json:"startTime_ns"`
	Markers   []string `json:"markers,omitempty"`
}

// paramNames are PARAM's names of operations.
var paramNames = map[comm.Op]string{
	comm.AllReduce: "all_reduce", comm.Reduce: "reduce", comm.Broadcast: "broadcast", comm.AllGather: "all_gather_base",
	comm.ReduceScatter: "reduce_scatter_base", comm.AllToAll: "all_to_all_single", comm.AllToAllV: "all_to_allv",
	comm.Gather: "gather", comm.Scatter: "scatter", comm.Barrier: "barrier",
}

// paramDTypes are PARAM's names of element types.
var paramDTypes = map[comm.DType]string{
	comm.Float32: "float", comm.Float64: "double", comm.Float16: "half", comm.BFloat16: "bfloat16",
	comm.Int8: "char", comm.Uint8: "byte", comm.Int32: "int", comm.Int64: "long", comm.Bool: "bool", comm.Int16: "short",
}

func writePARAM(j *job) (*Output, error) {
	w := j.Plan.GetWorkload()
	left := map[comm.Op]int{}
	for _, program := range w.GetPrograms() {
		records := []paramRecord{}
		for i, g := range w.Groups {
			if slices.Contains(g.Ranks, program.Rank) {
				records = append(records, paramRecord{Comms: "init", Group: int32(i), Ranks: g.Ranks, WorldSize: len(g.Ranks)})
			}
		}
		if len(records) == 0 {
			continue
		}
		req := 0
		for _, t := range program.Tasks {
			c := t.GetCommunication()
			if c == nil || int(c.Group) >= len(w.Groups) {
				continue
			}
			list, ok := paramRecords(c, program.Rank, len(w.Groups[c.Group].Ranks), t.GetOrigin(), &req)
			if !ok {
				left[plan.Op(c)]++
			}
			records = append(records, list...)
		}
		data, err := json.MarshalIndent(records, "", " ")
		if err != nil {
			return nil, err
		}
		j.out.Files = append(j.out.Files, File{fmt.Sprintf("%d.json", program.Rank), append(data, '\n')})
	}
	if len(j.out.Files) == 0 {
		return nil, fmt.Errorf("%w: the plan has no programs", ErrNothing)
	}
	for op, n := range left {
		j.out.warn("%d of %s are left out: PARAM's basic traces have none", n, op)
	}
	j.out.warn("PARAM runs communication alone: computation between operations is not in its basic traces, and one backend runs all")
	j.out.Apply = []string{"python -m param_bench.train.comms.pt.commsTraceReplay --trace-type basic --trace-path DIR --backend nccl"}
	j.out.Proof = []string{"--dry-run lists the operations", "replayedCommsPerf.rank-0.json has the time of each"}
	return j.out, nil
}

// paramRecords is a communication as records, false where it can't be said.
func paramRecords(c *planpb.Communication, rank int32, members int, origin *planpb.Origin, req *int) ([]paramRecord, bool) {
	base := paramRecord{Group: c.Group, WorldSize: members, Start: origin.GetTs()}
	next := func() *int { n := *req; *req++; return &n }
	op := plan.Op(c)
	dtype, known := paramDTypes[plan.DType(c)]
	if op == comm.Barrier {
		base.Comms, base.Req = "barrier", next()
		return []paramRecord{base}, true
	}
	if !known {
		return nil, false
	}
	base.DType = dtype
	if op.IsP2P() {
		var list []paramRecord
		batch := op == comm.Batch
		for _, t := range c.Transfers {
			r := base
			count, src, dst := t.Count, rank, t.Peer
			r.Comms = "isend"
			if !t.Send {
				r.Comms, src, dst = "irecv", t.Peer, rank
			}
			r.In, r.Out, r.Src, r.Dst, r.Batch, r.Req = &count, &count, &src, &dst, &batch, next()
			list = append(list, r)
		}
		if batch && len(list) > 0 {
			list = append(list, paramRecord{Comms: "batch_isend_irecv", Group: c.Group, WorldSize: members, Start: base.Start, Req: next()})
		}
		if !batch {
			for _, r := range list {
				list = append(list, paramRecord{Comms: "wait", Req: r.Req, Group: c.Group, WorldSize: members, Start: r.Start})
			}
		}
		return list, true
	}
	name, ok := paramNames[op]
	if !ok {
		return nil, false
	}
	in, out := c.InCount, c.OutCount
	base.Comms, base.In, base.Out, base.Req = name, &in, &out, next()
	base.InSplit, base.OutSplit = c.InSplits, c.OutSplits
	if op.Rooted() {
		root := c.Root
		base.Root = &root
	}
	return []paramRecord{base}, true
}
