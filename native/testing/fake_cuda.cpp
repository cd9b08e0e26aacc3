#include "testing/fake_cuda.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "testing/fake_cuda_memory.h"
#include "worker/clock.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT const int mixdown_emulated_gpu;
const int mixdown_emulated_gpu = 1;

namespace {

using mixdown::now_ns;

constexpr int kOk = 0;
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kNotInitialized = 3;
constexpr int kNoDevice = 100;
constexpr int kInvalidContext = 201;
constexpr int kInvalidImage = 200;
constexpr int kNotFound = 500;
constexpr int kNotReady = 600;
constexpr int kIllegalAddress = 700;

int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::atoi(text) : otherwise;
}

// The slots of the device.
class Slots {
 public:
  void run(const std::function<void()>& kernel) {
    const int jitter = number_of("MIXDOWN_FAKE_JITTER_US", 0);
    int64_t delay = 0;
    {
      std::lock_guard lock(mutex_);
      if (jitter > 0) delay = static_cast<int64_t>(random_() % static_cast<uint64_t>(jitter)) * 1000;
    }
    if (delay > 0) mixdown::sleep_until(now_ns() + delay);
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return running_ < number_of("MIXDOWN_FAKE_SLOTS", 8); });
      ++running_;
    }
    kernel();
    std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_all();
  }

  void wait_until_none_runs() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = 0;
  std::mt19937_64 random_{static_cast<uint64_t>(number_of("MIXDOWN_FAKE_SEED", 1)) * 1000003 +
                          static_cast<uint64_t>(getpid())};
};

// Never destroyed: threads of streams may still look at them when the process ends.
Slots& slots() {
  static auto& all = *new Slots;
  return all;
}
mixdown::fake::Memory& memory() {
  static auto& all = *new mixdown::fake::Memory;
  return all;
}

bool initialized = false;
// In the static part of thread-local memory: ThreadSanitizer takes what lies before
// a dynamic part of one byte for its size.
thread_local bool current __attribute__((tls_model("initial-exec"))) = false;

int ready() { return !initialized ? kNotInitialized : !current ? kInvalidContext : kOk; }

// Records that are waited for are told apart by their number.
struct Event {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0;
  uint64_t come = 0;
  int64_t time = 0;  // ns

  void wait(uint64_t record) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return come >= record; });
  }
};

// A thread with a queue.
class Stream {
 public:
  Stream() : thread_([this] { work(); }) {}

  ~Stream() {
    push({});
    thread_.join();
  }

  void push(std::function<void()> item) {
    std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    changed_.notify_all();
  }

  void synchronize() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return items_.empty(); });
  }

 private:
  void work() {
    prctl(PR_SET_TIMERSLACK, 1);
    for (;;) {
      std::function<void()> item;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !items_.empty(); });
        item = items_.front();
      }
      if (item) item();
      std::lock_guard lock(mutex_);
      items_.pop_front();  // only now: synchronize waits for its end
      changed_.notify_all();
      if (!item) return;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> items_;
  std::thread thread_;
};

Stream& stream_of(void* handle) {
  static auto& ordinary = *new Stream;  // what a null stream stands for
  return handle == nullptr ? ordinary : *static_cast<Stream*>(handle);
}

uintptr_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// A copy or set whose device side is [device, device + bytes), and host side, if
// any, [host, host + bytes).
int queue(void* stream, uintptr_t device, const void* host, size_t bytes, std::function<void()> work) {
  if (const int code = ready(); code != kOk) return code;
  if (!memory().on_device(device, bytes)) return kIllegalAddress;
  if (host != nullptr && !memory().pinned(address(host), bytes)) return kInvalidValue;
  stream_of(stream).push(std::move(work));
  return kOk;
}

void* at(unsigned long long device) { return reinterpret_cast<void*>(device); }

}  // namespace

EXPORT int mixdown_fake_launch(void* stream, void (*run)(void*), void* argument) {
  if (const int code = ready(); code != kOk) return code;
  stream_of(stream).push([=] { slots().run([=] { run(argument); }); });
  return kOk;
}

EXPORT bool mixdown_fake_locate(const void* pointer, int64_t bytes, int32_t* number, int64_t* offset) {
  return memory().locate(address(pointer), static_cast<size_t>(bytes), number, offset);
}

EXPORT int cuInit(unsigned) {
  if (std::getenv("MIXDOWN_FAKE_GPU") == nullptr) return kNoDevice;
  initialized = true;
  return kOk;
}
EXPORT int cuDriverGetVersion(int* version) {
  *version = 12040;
  return kOk;
}
EXPORT int cuGetErrorName(int error, const char** text) {
  switch (error) {
    case kInvalidValue:
      *text = "CUDA_ERROR_INVALID_VALUE";
      break;
    case kOutOfMemory:
      *text = "CUDA_ERROR_OUT_OF_MEMORY";
      break;
    case kInvalidContext:
      *text = "CUDA_ERROR_INVALID_CONTEXT";
      break;
    case kNoDevice:
      *text = "CUDA_ERROR_NO_DEVICE";
      break;
    case kIllegalAddress:
      *text = "CUDA_ERROR_ILLEGAL_ADDRESS";
      break;
    default:
      *text = "CUDA_ERROR_UNKNOWN";
  }
  return kOk;
}
EXPORT int cuGetErrorString(int, const char** text) {
  *text = "said by the emulated GPU";
  return kOk;
}
EXPORT int cuDeviceGetCount(int* count) {
  *count = number_of("MIXDOWN_FAKE_DEVICES", 1);
  return initialized ? kOk : kNotInitialized;
}
EXPORT int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return kOk;
}
EXPORT int cuDeviceGetName(char* name, int length, int) {
  std::snprintf(name, static_cast<size_t>(length), "emulated GPU (no hardware)");
  return kOk;
}
EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case 13:  // clock rate, kHz
      *value = 1'000'000;
      return kOk;
    case 16:  // SMs
      *value = number_of("MIXDOWN_FAKE_SLOTS", 8);
      return kOk;
    case 75:  // compute capability
      *value = 9;
      return kOk;
    default:
      *value = 0;
      return kOk;
  }
}
EXPORT int cuDeviceGetPCIBusId(char* text, int length, int device) {
  std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0", static_cast<unsigned>(device + 1));
  return kOk;
}
EXPORT int cuDevicePrimaryCtxRetain(void** context, int) {
  static int token;
  *context = &token;
  return initialized ? kOk : kNotInitialized;
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int) { return kOk; }
EXPORT int cuCtxSetCurrent(void* context) {
  current = context != nullptr;
  return kOk;
}

EXPORT int cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = *total = size_t{1} << 34;
  return ready();
}
EXPORT int cuMemAlloc_v2(unsigned long long* pointer, size_t bytes) {
  if (const int code = ready(); code != kOk) return code;
  if (bytes == 0) return kInvalidValue;
  slots().wait_until_none_runs();
  *pointer = memory().allocate(bytes);
  return *pointer == 0 ? kOutOfMemory : kOk;
}
EXPORT int cuMemFree_v2(unsigned long long pointer) {
  if (pointer == 0) return kOk;
  slots().wait_until_none_runs();
  return memory().free(pointer) ? kOk : kInvalidValue;
}
EXPORT int cuMemHostRegister_v2(void* host, size_t bytes, unsigned) {
  if (const int code = ready(); code != kOk) return code;
  slots().wait_until_none_runs();
  return memory().pin(address(host), bytes) ? kOk : kInvalidValue;
}
EXPORT int cuMemHostUnregister(void* host) { return memory().unpin(address(host)) ? kOk : kInvalidValue; }

EXPORT int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, void* stream) {
  return queue(stream, to, from, bytes, [=] { std::memcpy(at(to), from, bytes); });
}
EXPORT int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, void* stream) {
  return queue(stream, from, to, bytes, [=] { std::memcpy(to, at(from), bytes); });
}
EXPORT int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, void* stream) {
  if (!memory().on_device(from, bytes)) return kIllegalAddress;
  return queue(stream, to, nullptr, bytes, [=] { std::memmove(at(to), at(from), bytes); });
}
EXPORT int cuMemsetD8Async(unsigned long long to, unsigned char value, size_t bytes, void* stream) {
  return queue(stream, to, nullptr, bytes, [=] { std::memset(at(to), value, bytes); });
}

EXPORT int cuStreamCreateWithPriority(void** stream, unsigned, int) {
  if (const int code = ready(); code != kOk) return code;
  *stream = new Stream;
  return kOk;
}
EXPORT int cuStreamDestroy_v2(void* stream) {
  delete static_cast<Stream*>(stream);
  return kOk;
}
EXPORT int cuStreamSynchronize(void* stream) {
  if (const int code = ready(); code != kOk) return code;
  stream_of(stream).synchronize();
  return kOk;
}
EXPORT int cuStreamWaitEvent(void* stream, void* handle, unsigned) {
  if (const int code = ready(); code != kOk) return code;
  auto* event = static_cast<Event*>(handle);
  uint64_t record = 0;
  {
    std::lock_guard lock(event->mutex);
    record = event->recorded;
  }
  stream_of(stream).push([=] { event->wait(record); });
  return kOk;
}

EXPORT int cuEventCreate(void** event, unsigned) {
  if (const int code = ready(); code != kOk) return code;
  *event = new Event;
  return kOk;
}
EXPORT int cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return kOk;
}
EXPORT int cuEventRecord(void* handle, void* stream) {
  if (const int code = ready(); code != kOk) return code;
  auto* event = static_cast<Event*>(handle);
  uint64_t record = 0;
  {
    std::lock_guard lock(event->mutex);
    record = ++event->recorded;
  }
  stream_of(stream).push([=] {
    std::lock_guard lock(event->mutex);
    event->come = record;
    event->time = now_ns();
    event->changed.notify_all();
  });
  return kOk;
}
EXPORT int cuEventQuery(void* handle) {
  auto* event = static_cast<Event*>(handle);
  std::lock_guard lock(event->mutex);
  return event->come >= event->recorded ? kOk : kNotReady;
}
EXPORT int cuEventSynchronize(void* handle) {
  auto* event = static_cast<Event*>(handle);
  uint64_t record = 0;
  {
    std::lock_guard lock(event->mutex);
    record = event->recorded;
  }
  event->wait(record);
  return kOk;
}
EXPORT int cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  auto* a = static_cast<Event*>(start);
  auto* b = static_cast<Event*>(end);
  if (cuEventQuery(a) != kOk || cuEventQuery(b) != kOk) return kNotReady;
  *milliseconds = static_cast<float>(static_cast<double>(b->time - a->time) / 1e6);
  return kOk;
}

EXPORT int cuModuleLoadData(void** module, const void* image) {
  if (const int code = ready(); code != kOk) return code;
  const std::string text = static_cast<const char*>(image);
  if (text.find(".version") == std::string::npos) return kInvalidImage;
  *module = new std::string(text);
  return kOk;
}
EXPORT int cuModuleUnload(void* module) {
  delete static_cast<std::string*>(module);
  return kOk;
}
// The span kernel is the only one that there is.
EXPORT int cuModuleGetFunction(void** function, void* module, const char* name) {
  if (std::string(name) != "mixdown_span" || static_cast<std::string*>(module)->find(name) == std::string::npos) {
    return kNotFound;
  }
  *function = module;
  return kOk;
}
EXPORT int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void* stream,
                          void** parameters, void**) {
  if (const int code = ready(); code != kOk) return code;
  const auto ns = static_cast<int64_t>(*static_cast<uint64_t*>(parameters[0]));
  stream_of(stream).push([=] { slots().run([=] { mixdown::sleep_until_exactly(now_ns() + ns); }); });
  return kOk;
}
