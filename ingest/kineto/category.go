package kineto

import (
	"bytes"
	"strings"

	"mixdown/ingest/trace"
)

// categories maps the profiler's category names of all generations (the 1.8 to
// 1.12 names start with a capital).
var categories = map[string]trace.Category{
	"cpu_op": trace.CPUOp, "Operator": trace.CPUOp,
	"user_annotation": trace.UserAnnotation,
	"python_function": trace.PythonFunction,
	"kernel":          trace.Kernel, "Kernel": trace.Kernel,
	"gpu_memcpy": trace.Memcpy, "Memcpy": trace.Memcpy,
	"gpu_memset": trace.Memset, "Memset": trace.Memset,
	"cuda_runtime": trace.Runtime, "Runtime": trace.Runtime, "cuda_driver": trace.Runtime,
	"xpu_runtime": trace.Runtime, "xpu_driver": trace.Runtime,
	"mtia_runtime": trace.Runtime, "privateuse1_runtime": trace.Runtime,
	"privateuse1_driver": trace.Runtime, "glow_runtime": trace.Runtime,
	"collective_comm":     trace.CollectiveActivity,
	"gpu_user_annotation": trace.GPUAnnotation, "gpu_user_Annotation": trace.GPUAnnotation,
	"cuda_sync": trace.Sync, "xpu_sync": trace.Sync,
	"cpu_instant_event": trace.Instant,
}

// categoryOf returns the category of an event. Some profilers report all of a
// device's work as one category; there the names tell, and what no name tells
// is Other, never computation by accident.
func categoryOf(cat, name []byte) trace.Category {
	switch c := categories[string(cat)]; {
	case c == trace.Kernel:
		return kernelCategory(name)
	case c != trace.Other:
		return c
	case string(cat) == "mtia_ccp_events":
		return mtiaCategory(name)
	case string(cat) == "hpu_op":
		return trace.Kernel
	}
	return trace.Other
}

// kernelCategory tells legacy ROCm copies from kernels.
func kernelCategory(name []byte) trace.Category {
	for _, p := range []string{"__amd_rocclr_copy", "MEMORY_COPY_", "Memcpy ", "hipMemcpy"} {
		if bytes.HasPrefix(name, []byte(p)) {
			return trace.Memcpy
		}
	}
	for _, p := range []string{"__amd_rocclr_fill", "Memset ", "hipMemset"} {
		if bytes.HasPrefix(name, []byte(p)) {
			return trace.Memset
		}
	}
	return trace.Kernel
}

// mtiaCategory sorts the events of an MTIA device: processing elements at work,
// transfers, its collectives, and the rest (event records and waits, merges).
func mtiaCategory(name []byte) trace.Category {
	switch {
	case bytes.HasPrefix(name, []byte("pe_")):
		return trace.Kernel
	case bytes.HasPrefix(name, []byte("dma")):
		return trace.Memcpy
	case bytes.HasPrefix(name, []byte("hccl")):
		return trace.CollectiveActivity
	}
	return trace.Other
}

// commKernels are parts of kernel names, in lower case, that only
// communication has: the libraries first, then kernels of PyTorch's symmetric
// memory, of vLLM, SGLang and TensorRT-LLM, of DeepEP and of NVSHMEM.
var commKernels = []string{
	"nccl", "rccl", "msccl", "hccl", "oneccl", "xccl", "ucc_tl",
	"one_shot_all_reduce", "two_shot_all_reduce", "multimem_all_reduce",
	"multimem_one_shot_all_reduce", "multimem_all_gather",
	"put_signal_kernel", "wait_signal_kernel",
	"cross_device_reduce", "oneshotallreduce", "twoshotallreduce", "allreduce_fusion_kernel",
	"deep_ep::", "dpsk::ep::",
	"nvshmem",
}

// isCommKernel says whether a kernel's name says that it communicates. It says
// nothing about which operation: one name serves many.
func isCommKernel(name string) bool {
	lower := strings.ToLower(name)
	for _, part := range commKernels {
		if strings.Contains(lower, part) {
			return true
		}
	}
	return false
}

// commNames is isCommKernel by number, for kernels of one table of names: each
// name is looked at once.
func commNames(names *trace.Strings) func(trace.NameID) bool {
	const unknown, no, yes = 0, 1, 2
	known := make([]uint8, names.Len())
	return func(id trace.NameID) bool {
		if known[id] == unknown {
			known[id] = no
			if isCommKernel(names.Get(id)) {
				known[id] = yes
			}
		}
		return known[id] == yes
	}
}
