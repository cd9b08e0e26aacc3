// The few functions of the CUDA driver that the worker uses, declared by
// ourselves and looked up at run time in libcuda.so.1: nothing of CUDA is needed
// to build, and a machine without a GPU loses nothing but the GPU.
//
// Names, numbers and signatures are those of the CUDA driver API reference
// (docs.nvidia.com/cuda/cuda-driver-api). Where a function has versions, the
// symbol is the one that programs built against CUDA 11 or later bind to; the
// driver keeps such symbols for good.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mixdown::cuda {

using Result = int;                        ///< CUresult, 0 is success
using Device = int;                        ///< CUdevice
using Pointer = unsigned long long;        ///< CUdeviceptr, an address in device memory
using Context = struct ContextOpaque*;     ///< CUcontext
using Stream = struct StreamOpaque*;       ///< CUstream
using Event = struct EventOpaque*;         ///< CUevent
using Module = struct ModuleOpaque*;       ///< CUmodule
using Function = struct FunctionOpaque*;   ///< CUfunction

inline constexpr Result kSuccess = 0;
inline constexpr Result kNotReady = 600;  ///< CUDA_ERROR_NOT_READY, of an event that has not come

inline constexpr unsigned kStreamNonBlocking = 1;  ///< CU_STREAM_NON_BLOCKING: not tied to the default stream

// Attributes of a device (CUdevice_attribute).
inline constexpr int kClockRate = 13;            ///< kHz, the highest of the SMs
inline constexpr int kMultiprocessorCount = 16;  ///< SMs
inline constexpr int kPciBusId = 33;
inline constexpr int kPciDeviceId = 34;
inline constexpr int kPciDomainId = 50;
inline constexpr int kComputeCapabilityMajor = 75;
inline constexpr int kComputeCapabilityMinor = 76;

/// The driver's functions. Filled by load().
struct Api {
  Result (*init)(unsigned flags);
  Result (*driver_version)(int* version);
  Result (*error_name)(Result error, const char** text);
  Result (*error_string)(Result error, const char** text);
  Result (*device_count)(int* count);
  Result (*device_get)(Device* device, int ordinal);
  Result (*device_name)(char* name, int length, Device device);
  Result (*device_attribute)(int* value, int attribute, Device device);
  Result (*primary_context_retain)(Context* context, Device device);
  Result (*primary_context_release)(Device device);
  Result (*context_set_current)(Context context);
  Result (*memory_info)(size_t* free, size_t* total);
  Result (*memory_allocate)(Pointer* pointer, size_t bytes);
  Result (*memory_free)(Pointer pointer);
  Result (*host_register)(void* memory, size_t bytes, unsigned flags);
  Result (*host_unregister)(void* memory);
  Result (*copy_to_device)(Pointer to, const void* from, size_t bytes, Stream stream);
  Result (*copy_to_host)(void* to, Pointer from, size_t bytes, Stream stream);
  Result (*copy_on_device)(Pointer to, Pointer from, size_t bytes, Stream stream);
  Result (*set_bytes)(Pointer to, unsigned char value, size_t bytes, Stream stream);
  Result (*stream_create)(Stream* stream, unsigned flags, int priority);
  Result (*stream_destroy)(Stream stream);
  Result (*stream_wait_event)(Stream stream, Event event, unsigned flags);
  Result (*stream_synchronize)(Stream stream);
  Result (*event_create)(Event* event, unsigned flags);
  Result (*event_destroy)(Event event);
  Result (*event_record)(Event event, Stream stream);
  Result (*event_query)(Event event);
  Result (*event_synchronize)(Event event);
  Result (*event_elapsed_time)(float* milliseconds, Event start, Event end);
  Result (*module_load_data)(Module* module, const void* image);
  Result (*module_unload)(Module module);
  Result (*module_get_function)(Function* function, Module module, const char* name);
  Result (*launch_kernel)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** parameters,
                          void** extra);

  /// Whether the library is the stand-in of our tests (testing/fake_cuda.h).
  bool emulated = false;
};

/// The driver's functions, after cuInit. Throws std::runtime_error that says why
/// there are none: no driver, one that is too old, no device. Every call gives
/// the same table.
const Api& load();

/// Throws std::runtime_error with the driver's own words unless `result` is
/// success.
void check(Result result, const char* call);

}  // namespace mixdown::cuda
