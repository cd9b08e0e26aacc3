#include "device/cuda_api.h"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>

namespace mixdown::cuda {
namespace {

Api the_api;
bool loaded = false;

template <typename F>
void find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string("libcuda.so.1 has no ") + name + ": the driver is too old");
}

void find_all(void* library, Api& a) {
  find(library, "cuInit", a.init);
  find(library, "cuDriverGetVersion", a.driver_version);
  find(library, "cuGetErrorName", a.error_name);
  find(library, "cuGetErrorString", a.error_string);
  find(library, "cuDeviceGetCount", a.device_count);
  find(library, "cuDeviceGet", a.device_get);
  find(library, "cuDeviceGetName", a.device_name);
  find(library, "cuDeviceGetAttribute", a.device_attribute);
  find(library, "cuDevicePrimaryCtxRetain", a.primary_context_retain);
  find(library, "cuDevicePrimaryCtxRelease_v2", a.primary_context_release);
  find(library, "cuCtxSetCurrent", a.context_set_current);
  find(library, "cuMemGetInfo_v2", a.memory_info);
  find(library, "cuMemAlloc_v2", a.memory_allocate);
  find(library, "cuMemFree_v2", a.memory_free);
  find(library, "cuMemHostRegister_v2", a.host_register);
  find(library, "cuMemHostUnregister", a.host_unregister);
  find(library, "cuMemcpyHtoDAsync_v2", a.copy_to_device);
  find(library, "cuMemcpyDtoHAsync_v2", a.copy_to_host);
  find(library, "cuMemcpyDtoDAsync_v2", a.copy_on_device);
  find(library, "cuMemsetD8Async", a.set_bytes);
  find(library, "cuStreamCreateWithPriority", a.stream_create);
  find(library, "cuStreamDestroy_v2", a.stream_destroy);
  find(library, "cuStreamWaitEvent", a.stream_wait_event);
  find(library, "cuStreamSynchronize", a.stream_synchronize);
  find(library, "cuEventCreate", a.event_create);
  find(library, "cuEventDestroy_v2", a.event_destroy);
  find(library, "cuEventRecord", a.event_record);
  find(library, "cuEventQuery", a.event_query);
  find(library, "cuEventSynchronize", a.event_synchronize);
  find(library, "cuEventElapsedTime", a.event_elapsed_time);
  find(library, "cuModuleLoadData", a.module_load_data);
  find(library, "cuModuleUnload", a.module_unload);
  find(library, "cuModuleGetFunction", a.module_get_function);
  find(library, "cuLaunchKernel", a.launch_kernel);
  a.emulated = dlsym(library, "mixdown_emulated_gpu") != nullptr;
}

}  // namespace

const Api& load() {
  if (loaded) return the_api;
  // Streams share this many queues to the device; in one queue a waiting kernel
  // keeps what is behind it from starting, of whatever stream it is. 32 is the
  // most there are, the default is 8. Read by cuInit.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(std::string("no CUDA driver: ") + dlerror());
  Api api;
  find_all(library, api);
  the_api = api;  // for the texts of errors
  check(api.init(0), "cuInit");
  int count = 0;
  check(api.device_count(&count), "cuDeviceGetCount");
  if (count == 0) throw std::runtime_error("the CUDA driver finds no GPU");
  loaded = true;
  return the_api;
}

void check(Result result, const char* call) {
  if (result == kSuccess) return;
  const char* name = nullptr;
  const char* text = nullptr;
  if (the_api.error_name != nullptr) the_api.error_name(result, &name);
  if (the_api.error_string != nullptr) the_api.error_string(result, &text);
  throw std::runtime_error(std::string(call) + ": " + (name != nullptr ? name : "error " + std::to_string(result)) +
                           (text != nullptr ? std::string(": ") + text : ""));
}

}  // namespace mixdown::cuda
