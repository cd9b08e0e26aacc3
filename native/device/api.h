// The few functions of a GPU's driver that the worker uses: CUDA's driver, or HIP's
// runtime, which has the same functions under other names. Declared by ourselves and
// looked up at run time: nothing of them is needed to build, and a machine without a
// GPU loses nothing but the GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mixdown::device {

/// Whose GPUs.
enum class Platform { kCuda, kHip };

using Result = int;                        ///< CUresult, hipError_t; 0 is success
using Device = int;                        ///< CUdevice, hipDevice_t
using Pointer = unsigned long long;        ///< CUdeviceptr, an address in device memory; HIP's is a void*
using Context = struct ContextOpaque*;     ///< CUcontext; HIP needs none
using Stream = struct StreamOpaque*;       ///< CUstream, hipStream_t
using Event = struct EventOpaque*;         ///< CUevent, hipEvent_t
using Module = struct ModuleOpaque*;       ///< CUmodule, hipModule_t
using Function = struct FunctionOpaque*;   ///< CUfunction, hipFunction_t

inline constexpr Result kSuccess = 0;
inline constexpr Result kNotReady = 600;  ///< CUDA_ERROR_NOT_READY, hipErrorNotReady: of an event that has not come

inline constexpr unsigned kStreamNonBlocking = 1;  ///< not tied to the default stream, on both

/// What a platform has. Filled by load().
struct Api {
  Platform platform = Platform::kCuda;
  const char* name = "";  ///< as people call it: "CUDA", "HIP"
  const char* kind = "";  ///< as plans and results call it: "cuda", "hip"
  /// Whether the library is the stand-in of our tests (testing/fake_cuda.h).
  bool emulated = false;

  // Numbers of attributes of a device.
  int multiprocessor_count = 0;  ///< SMs, or CUs
  int clock_rate = 0;            ///< kHz, of the counter that the span kernel reads

  // These have another form on each platform.
  std::string (*error_text)(Result error) = nullptr;  ///< name and words
  std::string (*version)() = nullptr;                 ///< of the driver's interface, for example "12.4"
  /// The code of the span kernel for the current device (device/span_kernel.h). Throws
  /// std::runtime_error.
  std::string (*span_code)() = nullptr;
  Result (*context_retain)(Context* context, Device device) = nullptr;
  Result (*context_release)(Device device) = nullptr;
  Result (*context_set_current)(Context context) = nullptr;

  Result (*init)(unsigned flags);
  Result (*device_count)(int* count);
  Result (*device_get)(Device* device, int ordinal);
  Result (*device_name)(char* name, int length, Device device);
  Result (*device_attribute)(int* value, int attribute, Device device);
  Result (*device_address)(char* text, int length, Device device);  ///< "0000:17:00.0", on the PCI bus
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

  /// Throws std::runtime_error with the platform's own words unless `result` is
  /// success. `what` was being done: "copying to the host".
  void check(Result result, const char* what) const;
};

/// The platform's functions, initialised. Throws std::runtime_error that says why there
/// are none: no driver, one that is too old, no device. Every call gives the same table.
const Api& load(Platform platform);

/// The platform of a name as plans have it, "cuda" or "hip". Throws std::runtime_error.
Platform platform_of(const std::string& kind);

/// Fills a table from the platform's libraries (cuda.cpp, hip.cpp). Throws.
void find_cuda(Api& api);
void find_hip(Api& api);

/// A function of a library. Throws std::runtime_error that calls `file` too old.
void* look_up(void* library, const char* file, const char* name);

/// The same into a pointer of its type.
template <typename F>
void find(void* library, const char* file, const char* name, F& function) {
  function = reinterpret_cast<F>(look_up(library, file, name));
}

}  // namespace mixdown::device
