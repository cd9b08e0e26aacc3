// The emulated GPU as HIP's: libamdhip64.so.6 is fake_cuda.cpp under HIP's names, with
// what HIP does in its own way.
#include <cstring>
#include <string>

#include "testing/fake_cuda.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

// An alias of a function of fake_cuda.cpp, which has the same parameters.
#define SAME(result, hip, cuda, parameters, arguments) \
  extern "C" result cuda parameters;                   \
  EXPORT result hip parameters { return cuda arguments; }

using Address = unsigned long long;

SAME(int, hipInit, cuInit, (unsigned flags), (flags))
SAME(int, hipGetDeviceCount, cuDeviceGetCount, (int* count), (count))
SAME(int, hipDeviceGet, cuDeviceGet, (int* device, int ordinal), (device, ordinal))
SAME(int, hipDeviceGetName, cuDeviceGetName, (char* name, int length, int device), (name, length, device))
SAME(int, hipDeviceGetPCIBusId, cuDeviceGetPCIBusId, (char* text, int length, int device), (text, length, device))
SAME(int, hipMemGetInfo, cuMemGetInfo_v2, (size_t* free, size_t* total), (free, total))
SAME(int, hipMalloc, cuMemAlloc_v2, (Address* pointer, size_t bytes), (pointer, bytes))
SAME(int, hipFree, cuMemFree_v2, (Address pointer), (pointer))
SAME(int, hipHostRegister, cuMemHostRegister_v2, (void* host, size_t bytes, unsigned flags), (host, bytes, flags))
SAME(int, hipHostUnregister, cuMemHostUnregister, (void* host), (host))
SAME(int, hipMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (Address to, const void* from, size_t bytes, void* stream), (to, from, bytes, stream))
SAME(int, hipMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void* to, Address from, size_t bytes, void* stream), (to, from, bytes, stream))
SAME(int, hipMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, (Address to, Address from, size_t bytes, void* stream), (to, from, bytes, stream))
SAME(int, hipMemsetD8Async, cuMemsetD8Async, (Address to, unsigned char value, size_t bytes, void* stream), (to, value, bytes, stream))
SAME(int, hipStreamCreateWithPriority, cuStreamCreateWithPriority, (void** stream, unsigned flags, int priority), (stream, flags, priority))
SAME(int, hipStreamDestroy, cuStreamDestroy_v2, (void* stream), (stream))
SAME(int, hipStreamSynchronize, cuStreamSynchronize, (void* stream), (stream))
SAME(int, hipStreamWaitEvent, cuStreamWaitEvent, (void* stream, void* event, unsigned flags), (stream, event, flags))
SAME(int, hipEventCreateWithFlags, cuEventCreate, (void** event, unsigned flags), (event, flags))
SAME(int, hipEventDestroy, cuEventDestroy_v2, (void* event), (event))
SAME(int, hipEventRecord, cuEventRecord, (void* event, void* stream), (event, stream))
SAME(int, hipEventQuery, cuEventQuery, (void* event), (event))
SAME(int, hipEventSynchronize, cuEventSynchronize, (void* event), (event))
SAME(int, hipEventElapsedTime, cuEventElapsedTime, (float* milliseconds, void* start, void* end), (milliseconds, start, end))
SAME(int, hipModuleUnload, cuModuleUnload, (void* module), (module))
SAME(int, hipModuleGetFunction, cuModuleGetFunction, (void** function, void* module, const char* name), (function, module, name))
SAME(int, hipModuleLaunchKernel, cuLaunchKernel,
     (void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
      void* stream, void** parameters, void** extra),
     (function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra))

extern "C" int cuDeviceGetAttribute(int* value, int attribute, int device);
extern "C" int cuCtxSetCurrent(void* context);
extern "C" int cuGetErrorName(int error, const char** text);
extern "C" int cuModuleLoadData(void** module, const void* image);

EXPORT int hipRuntimeGetVersion(int* version) {
  *version = 60'241'133;  // 6.2
  return 0;
}
EXPORT const char* hipGetErrorName(int error) {
  const char* text = nullptr;
  cuGetErrorName(error, &text);
  return text;
}
EXPORT const char* hipGetErrorString(int) { return "said by the emulated GPU"; }

EXPORT int hipSetDevice(int device) {
  static int token;
  return device < 0 ? 101 : cuCtxSetCurrent(&token);  // hipErrorInvalidDevice
}

// HIP's numbers.
EXPORT int hipDeviceGetAttribute(int* value, int attribute, int device) {
  switch (attribute) {
    case 63:  // CUs
      return cuDeviceGetAttribute(value, 16, device);
    case 10017:  // kHz of the wall clock
      *value = 100'000;
      return 0;
    default:
      return 1;
  }
}

// Takes what the stand-in of hiprtc makes, and no PTX.
EXPORT int hipModuleLoadData(void** module, const void* image) {
  const std::string text(static_cast<const char*>(image));
  if (text.rfind(MIXDOWN_FAKE_CODE, 0) != 0) return 200;  // hipErrorInvalidImage
  return cuModuleLoadData(module, image);
}
