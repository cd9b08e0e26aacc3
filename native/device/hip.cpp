// HIP's runtime API: libamdhip64.so, and hiprtc, its compiler. Names, numbers and
// signatures are those of hip_runtime_api.h and hiprtc.h (rocm.docs.amd.com/projects/HIP).
#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>

#include "device/api.h"
#include "device/span_code.h"

namespace mixdown::device {
namespace {

constexpr const char* kFile = "libamdhip64.so";

// hipDeviceAttribute_t
constexpr int kMultiprocessorCount = 63;
constexpr int kWallClockRate = 10017;

constexpr int kOldest = 50'400'000;  // HIP_VERSION of ROCm 5.4, the first that knows this attribute

// Of a new ROCm first; the name without a number is the development package's.
constexpr const char* kSuffixes[] = {".7", ".6", ".5", ""};

using Program = struct ProgramOpaque*;  // hiprtcProgram

void* library = nullptr;   // libamdhip64.so
void* compiler = nullptr;  // libhiprtc.so, or the same in old versions

// What the table has in another form.
Result (*get_version)(int* version);
const char* (*error_name)(Result error);
const char* (*error_string)(Result error);
Result (*set_device)(Device device);

std::string text_of(Result error) { return std::string(error_name(error)) + ": " + error_string(error); }

// HIP_VERSION: two digits for the minor version, five for the patch.
std::string version() {
  int code = 0;
  get_version(&code);
  return std::to_string(code / 10'000'000) + "." + std::to_string(code / 100'000 % 100);
}

// HIP has the context of a device made and used without being asked; a thread only says
// which device.
Result retain(Context* context, Device device) {
  *context = reinterpret_cast<Context>(static_cast<intptr_t>(device) + 1);
  return kSuccess;
}
Result release(Device) { return kSuccess; }
Result set_current(Context context) { return set_device(static_cast<Device>(reinterpret_cast<intptr_t>(context) - 1)); }

// Compiles the span kernel for the device of the calling thread: hiprtc takes that one
// when it is told no other.
std::string compile() {
  Result (*create)(Program*, const char* source, const char* name, int headers, const char** texts, const char** names);
  Result (*build)(Program, int options, const char** texts);
  Result (*log_size)(Program, size_t*);
  Result (*log_text)(Program, char*);
  Result (*code_size)(Program, size_t*);
  Result (*code_bytes)(Program, char*);
  Result (*destroy)(Program*);
  const auto get = [](const char* name, auto& function) { find(compiler, "libhiprtc.so", name, function); };
  get("hiprtcCreateProgram", create);
  get("hiprtcCompileProgram", build);
  get("hiprtcGetProgramLogSize", log_size);
  get("hiprtcGetProgramLog", log_text);
  get("hiprtcGetCodeSize", code_size);
  get("hiprtcGetCode", code_bytes);
  get("hiprtcDestroyProgram", destroy);
  const auto check = [](Result result, const std::string& what) {
    if (result != kSuccess) throw std::runtime_error("hiprtc: " + what + ": error " + std::to_string(result));
  };
  Program program = nullptr;
  check(create(&program, span_kernel_hip(), kSpanKernel, 0, nullptr, nullptr), "making a program");
  if (const Result result = build(program, 0, nullptr); result != kSuccess) {
    size_t bytes = 0;
    std::string log;
    if (log_size(program, &bytes) == kSuccess && bytes > 0) {
      log.resize(bytes);
      log_text(program, log.data());
      log = ": " + log.substr(0, log.find('\0'));
    }
    check(result, "compiling the kernel of spans" + log);
  }
  size_t bytes = 0;
  check(code_size(program, &bytes), "asking for the size of the code");
  std::string code(bytes, '\0');
  check(code_bytes(program, code.data()), "asking for the code");
  destroy(&program);
  return code;
}

// The first of the names of a library that there is; null when there is none, with the
// linker's words for the first.
void* open(const std::string& file, std::string& why) {
  for (const char* suffix : kSuffixes) {
    if (void* found = dlopen((file + suffix).c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
    const char* said = dlerror();
    if (why.empty()) why = said;
  }
  return nullptr;
}

}  // namespace

void find_hip(Api& a) {
  // As CUDA_DEVICE_MAX_CONNECTIONS, in HIP's words; the default is 4.
  setenv("GPU_MAX_HW_QUEUES", "16", 0);
  std::string why;
  library = open(kFile, why);
  if (library == nullptr) throw std::runtime_error("no HIP: " + why);
  std::string unused;
  compiler = open("libhiprtc.so", unused);
  if (compiler == nullptr) compiler = library;
  const auto get = [](const char* name, auto& function) { find(library, kFile, name, function); };
  a.name = "HIP";
  a.kind = "hip";
  a.emulated = dlsym(library, "mixdown_emulated_gpu") != nullptr;
  a.multiprocessor_count = kMultiprocessorCount;
  a.clock_rate = kWallClockRate;
  a.error_text = text_of;
  a.version = version;
  a.span_code = compile;
  a.context_retain = retain;
  a.context_release = release;
  a.context_set_current = set_current;
  get("hipRuntimeGetVersion", get_version);
  int installed = 0;
  if (get_version(&installed) != kSuccess || installed < kOldest) {
    throw std::runtime_error("HIP " + version() + " is too old, or does not run: ROCm 5.4 or later is needed");
  }
  get("hipGetErrorName", error_name);
  get("hipGetErrorString", error_string);
  get("hipSetDevice", set_device);
  get("hipInit", a.init);
  get("hipGetDeviceCount", a.device_count);
  get("hipDeviceGet", a.device_get);
  get("hipDeviceGetName", a.device_name);
  get("hipDeviceGetAttribute", a.device_attribute);
  get("hipDeviceGetPCIBusId", a.device_address);
  get("hipMemGetInfo", a.memory_info);
  get("hipMalloc", a.memory_allocate);
  get("hipFree", a.memory_free);
  get("hipHostRegister", a.host_register);
  get("hipHostUnregister", a.host_unregister);
  get("hipMemcpyHtoDAsync", a.copy_to_device);
  get("hipMemcpyDtoHAsync", a.copy_to_host);
  get("hipMemcpyDtoDAsync", a.copy_on_device);
  get("hipMemsetD8Async", a.set_bytes);
  get("hipStreamCreateWithPriority", a.stream_create);
  get("hipStreamDestroy", a.stream_destroy);
  get("hipStreamWaitEvent", a.stream_wait_event);
  get("hipStreamSynchronize", a.stream_synchronize);
  get("hipEventCreateWithFlags", a.event_create);
  get("hipEventDestroy", a.event_destroy);
  get("hipEventRecord", a.event_record);
  get("hipEventQuery", a.event_query);
  get("hipEventSynchronize", a.event_synchronize);
  get("hipEventElapsedTime", a.event_elapsed_time);
  get("hipModuleLoadData", a.module_load_data);
  get("hipModuleUnload", a.module_unload);
  get("hipModuleGetFunction", a.module_get_function);
  get("hipModuleLaunchKernel", a.launch_kernel);
}

}  // namespace mixdown::device
