package synthetic

import "mixdown/ingest/comm"

// spelling is how PyTorch writes an operation in its several places.
type spelling struct {
	param    string // "Collective name" of record_param_comms
	title    string // after "nccl:" or "gloo:"
	operator string // after "c10d::"
	kernel   string // of NCCL 2.19 and later
}

var spellings = map[comm.Op]spelling{
	comm.AllReduce:     {"allreduce", "all_reduce", "allreduce_", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"},
	comm.AllGather:     {"_allgather_base", "_all_gather_base", "_allgather_base_", "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"},
	comm.ReduceScatter: {"_reduce_scatter_base", "_reduce_scatter_base", "_reduce_scatter_base_", "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"},
	comm.AllToAll:      {"all_to_all", "all_to_all", "alltoall_base_", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"},
	comm.Broadcast:     {"broadcast", "broadcast", "broadcast_", "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)"},
	comm.Barrier:       {"barrier", "barrier", "barrier", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"},
	comm.Send:          {"send", "send", "send", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"},
	comm.Recv:          {"recv", "recv", "recv_", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"},
}

// sizes are the elements in and out of one member of a group of n.
func (c Collective) sizes(op comm.Op, n int) (in, out int64) {
	switch op {
	case comm.AllGather:
		return c.Elements, c.Elements * int64(n)
	case comm.ReduceScatter:
		return c.Elements * int64(n), c.Elements
	case comm.Barrier:
		return 0, 0
	case comm.Send:
		return c.Elements, 0
	case comm.Recv:
		return 0, c.Elements
	}
	return c.Elements, c.Elements
}

// group is a process group.
type group struct {
	name, description string
	ranks             []int
}

// groups makes the groups that the program uses, named as torch.distributed
// numbers them, and says which group a rank is in: of[scope][rank].
func (o Options) groups() (list []group, of [numScopes][]int) {
	used := [numScopes]bool{World: true}
	for _, c := range o.Collectives {
		used[c.Scope] = true
	}
	add := func(scope Scope, description string, ranks []int) {
		for _, r := range ranks {
			of[scope][r] = len(list)
		}
		list = append(list, group{itoa(len(list)), description, ranks})
	}
	for scope := range of {
		of[scope] = make([]int, o.Ranks)
	}
	world := make([]int, o.Ranks)
	for r := range world {
		world[r] = r
	}
	add(World, "default_pg", world)
	of[Forward], of[Backward] = of[World], of[World]
	if o.Beside != nil && o.Beside.Collective > 0 {
		add(other, "second", world)
	}
	tp := o.TensorParallel
	if used[Tensor] {
		for first := 0; first < o.Ranks; first += tp {
			add(Tensor, "mesh_tp", world[first:min(first+tp, o.Ranks)])
		}
	}
	if used[Data] {
		for first := range min(tp, o.Ranks) {
			var ranks []int
			for r := first; r < o.Ranks; r += tp {
				ranks = append(ranks, r)
			}
			add(Data, "mesh_dp", ranks)
		}
	}
	return list, of
}
