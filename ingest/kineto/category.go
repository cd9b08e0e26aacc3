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

// categoryOf returns the category of an event. Legacy ROCm profilers report
// copies as kernels; their names tell.
func categoryOf(cat, name []byte) trace.Category {
	c := categories[string(cat)]
	if c == trace.Kernel && (bytes.HasPrefix(name, []byte("__amd_rocclr_copy")) ||
		bytes.HasPrefix(name, []byte("MEMORY_COPY_")) ||
		bytes.HasPrefix(name, []byte("Memcpy ")) || bytes.HasPrefix(name, []byte("hipMemcpy"))) {
		return trace.Memcpy
	}
	if c == trace.Kernel && (bytes.HasPrefix(name, []byte("__amd_rocclr_fill")) || bytes.HasPrefix(name, []byte("Memset "))) {
		return trace.Memset
	}
	return c
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
