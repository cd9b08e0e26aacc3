// A GPU that is none, for tests: libcuda.so.1 with the functions of
// device/cuda_api.h, over threads and host memory. Tests put its folder into
// LD_LIBRARY_PATH; it is not installed, and not beside the worker.
//
// A stream is a thread. A kernel holds a slot of the device from its start to its
// end; when all are taken others wait for one, in whatever order. So what hangs a
// GPU of few SMs hangs this one too. As on a GPU, allocating waits until no
// kernel runs. What the real driver would merely be slow at is an error here:
// copies from or to host memory that is not pinned, and addresses outside of an
// allocation.
//
// Environment:
//   MIXDOWN_FAKE_GPU        folder for what stands for device memory; without it
//                           there is no device
//   MIXDOWN_FAKE_DEVICES    number of devices that it shows, 1
//   MIXDOWN_FAKE_SLOTS      kernels that can run at once, 8
//   MIXDOWN_FAKE_JITTER_US  up to so much passes before a kernel asks for a slot,
//                           at random, 0
//   MIXDOWN_FAKE_SEED       of that
//
// Times measured on it mean nothing.
#pragma once

#include <cstdint>

extern "C" {

/// What the worker knows it by.
extern const int mixdown_emulated_gpu;

/// What code for the emulated HIP begins with; fake_hiprtc.cpp makes it. It is "PTX" to
/// fake_cuda.cpp.
#define MIXDOWN_FAKE_CODE ".version of the emulated HIP\n"

/// Queues a kernel on a stream: `run(argument)` in a slot.
int mixdown_fake_launch(void* stream, void (*run)(void*), void* argument);

/// Where another process finds device memory: in the file mem.PID.NUMBER of the
/// folder, at the offset. False unless all `bytes` are in one allocation.
bool mixdown_fake_locate(const void* pointer, int64_t bytes, int32_t* number, int64_t* offset);

}  // extern "C"
