// CUDA's driver API: libcuda.so.1. Names, numbers and signatures are those of its
// reference (docs.nvidia.com/cuda/cuda-driver-api). Where a function has versions, the
// symbol is the one that programs built against CUDA 11 or later bind to; the driver
// keeps such symbols for good.
#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>

#include "device/api.h"
#include "device/span_code.h"

namespace mixdown::device {
namespace {

constexpr const char* kFile = "libcuda.so.1";

// CUdevice_attribute
constexpr int kClockRate = 13;  // of the SMs, the highest
constexpr int kMultiprocessorCount = 16;

// What the table has in another form.
Result (*get_version)(int* version);
Result (*error_name)(Result error, const char** text);
Result (*error_string)(Result error, const char** text);

std::string text_of(Result error) {
  const char* name = nullptr;
  const char* text = nullptr;
  error_name(error, &name);
  error_string(error, &text);
  return (name != nullptr ? name : "error " + std::to_string(error)) + (text != nullptr ? std::string(": ") + text : "");
}

std::string version() {
  int code = 0;
  get_version(&code);
  return std::to_string(code / 1000) + "." + std::to_string(code % 1000 / 10);
}

std::string code() { return span_kernel_ptx(); }

}  // namespace

void find_cuda(Api& a) {
  // Streams share this many queues to the device; in one queue a waiting kernel
  // keeps what is behind it from starting, of whatever stream it is. 32 is the
  // most there are, the default is 8. Read by cuInit.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  void* library = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(std::string("no CUDA driver: ") + dlerror());
  const auto get = [&](const char* name, auto& function) { find(library, kFile, name, function); };
  a.name = "CUDA";
  a.kind = "cuda";
  a.emulated = dlsym(library, "mixdown_emulated_gpu") != nullptr;
  a.multiprocessor_count = kMultiprocessorCount;
  a.clock_rate = kClockRate;
  a.error_text = text_of;
  a.version = version;
  a.span_code = code;
  get("cuDriverGetVersion", get_version);
  get("cuGetErrorName", error_name);
  get("cuGetErrorString", error_string);
  get("cuDevicePrimaryCtxRetain", a.context_retain);
  get("cuDevicePrimaryCtxRelease_v2", a.context_release);
  get("cuCtxSetCurrent", a.context_set_current);
  get("cuInit", a.init);
  get("cuDeviceGetCount", a.device_count);
  get("cuDeviceGet", a.device_get);
  get("cuDeviceGetName", a.device_name);
  get("cuDeviceGetAttribute", a.device_attribute);
  get("cuDeviceGetPCIBusId", a.device_address);
  get("cuMemGetInfo_v2", a.memory_info);
  get("cuMemAlloc_v2", a.memory_allocate);
  get("cuMemFree_v2", a.memory_free);
  get("cuMemHostRegister_v2", a.host_register);
  get("cuMemHostUnregister", a.host_unregister);
  get("cuMemcpyHtoDAsync_v2", a.copy_to_device);
  get("cuMemcpyDtoHAsync_v2", a.copy_to_host);
  get("cuMemcpyDtoDAsync_v2", a.copy_on_device);
  get("cuMemsetD8Async", a.set_bytes);
  get("cuStreamCreateWithPriority", a.stream_create);
  get("cuStreamDestroy_v2", a.stream_destroy);
  get("cuStreamWaitEvent", a.stream_wait_event);
  get("cuStreamSynchronize", a.stream_synchronize);
  get("cuEventCreate", a.event_create);
  get("cuEventDestroy_v2", a.event_destroy);
  get("cuEventRecord", a.event_record);
  get("cuEventQuery", a.event_query);
  get("cuEventSynchronize", a.event_synchronize);
  get("cuEventElapsedTime", a.event_elapsed_time);
  get("cuModuleLoadData", a.module_load_data);
  get("cuModuleUnload", a.module_unload);
  get("cuModuleGetFunction", a.module_get_function);
  get("cuLaunchKernel", a.launch_kernel);
}

}  // namespace mixdown::device
