#include "device/gpu.h"

#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace mixdown {

using cuda::check;

Gpu::Gpu(int worker) : api_(cuda::load()) {
  int count = 0;
  check(api_.device_count(&count), "cuDeviceGetCount");
  ordinal_ = worker % count;
  check(api_.device_get(&device_, ordinal_), "cuDeviceGet");
  char name[256] = "";
  check(api_.device_name(name, sizeof name - 1, device_), "cuDeviceGetName");
  name_ = name;
  const int major = attribute(cuda::kComputeCapabilityMajor);
  if (major < 5) throw std::runtime_error(name_ + ": compute capability " + std::to_string(major) + ", 5.0 is needed");
  check(api_.primary_context_retain(&context_, device_), "cuDevicePrimaryCtxRetain");
  attach();
}

Gpu::~Gpu() { api_.primary_context_release(device_); }

void Gpu::attach() const { check(api_.context_set_current(context_), "cuCtxSetCurrent"); }

int Gpu::attribute(int which) const {
  int value = 0;
  check(api_.device_attribute(&value, which, device_), "cuDeviceGetAttribute");
  return value;
}

std::string Gpu::driver_version() const {
  int version = 0;
  check(api_.driver_version(&version), "cuDriverGetVersion");
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string Gpu::address() const {
  char text[32];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x", attribute(cuda::kPciDomainId), attribute(cuda::kPciBusId),
                attribute(cuda::kPciDeviceId));
  return text;
}

int64_t Gpu::free_bytes() const {
  size_t free = 0;
  size_t total = 0;
  check(api_.memory_info(&free, &total), "cuMemGetInfo");
  return static_cast<int64_t>(free);
}

DeviceBuffer::DeviceBuffer(const Gpu& gpu, int64_t bytes, int64_t guard) : gpu_(gpu), bytes_(bytes), guard_(guard) {
  const auto whole = static_cast<size_t>(bytes + 2 * guard);
  check(gpu_.api().memory_allocate(&memory_, whole), ("cuMemAlloc of " + std::to_string(whole) + " bytes").c_str());
  clear(nullptr);
  check(gpu_.api().stream_synchronize(nullptr), "cuStreamSynchronize");
}

DeviceBuffer::~DeviceBuffer() {
  if (memory_ != 0) gpu_.api().memory_free(memory_);
}

void DeviceBuffer::clear(cuda::Stream stream) const {
  check(gpu_.api().set_bytes(memory_, 0, static_cast<size_t>(bytes_ + 2 * guard_), stream), "cuMemsetD8Async");
}

PinnedRange::PinnedRange(const Gpu& gpu, void* memory, int64_t bytes) : gpu_(gpu), memory_(memory) {
  check(gpu_.api().host_register(memory, static_cast<size_t>(bytes), 0), "cuMemHostRegister");
}

PinnedRange::~PinnedRange() {
  if (memory_ != nullptr) gpu_.api().host_unregister(memory_);
}

DeviceStream::DeviceStream(const Gpu& gpu) : gpu_(gpu) {
  check(gpu_.api().stream_create(&stream_, cuda::kStreamNonBlocking, 0), "cuStreamCreateWithPriority");
}

DeviceStream::~DeviceStream() {
  if (stream_ != nullptr) gpu_.api().stream_destroy(stream_);
}

void DeviceStream::to_device(void* to, const void* from, int64_t bytes) const {
  if (bytes == 0) return;
  check(gpu_.api().copy_to_device(reinterpret_cast<cuda::Pointer>(to), from, static_cast<size_t>(bytes), stream_),
        "cuMemcpyHtoDAsync");
}

void DeviceStream::to_host(void* to, const void* from, int64_t bytes) const {
  if (bytes == 0) return;
  check(gpu_.api().copy_to_host(to, reinterpret_cast<cuda::Pointer>(from), static_cast<size_t>(bytes), stream_),
        "cuMemcpyDtoHAsync");
}

void DeviceStream::wait(cuda::Event event) const {
  check(gpu_.api().stream_wait_event(stream_, event, 0), "cuStreamWaitEvent");
}

void DeviceStream::synchronize() const { check(gpu_.api().stream_synchronize(stream_), "cuStreamSynchronize"); }

DeviceEvent::DeviceEvent(const Gpu& gpu) : gpu_(gpu) { check(gpu_.api().event_create(&event_, 0), "cuEventCreate"); }

DeviceEvent::~DeviceEvent() {
  if (event_ != nullptr) gpu_.api().event_destroy(event_);
}

void DeviceEvent::record(const DeviceStream& stream) const {
  check(gpu_.api().event_record(event_, stream.handle()), "cuEventRecord");
}

bool DeviceEvent::come() const {
  const cuda::Result result = gpu_.api().event_query(event_);
  if (result == cuda::kNotReady) return false;
  check(result, "cuEventQuery");
  return true;
}

void DeviceEvent::synchronize() const { check(gpu_.api().event_synchronize(event_), "cuEventSynchronize"); }

int64_t DeviceEvent::since(const DeviceEvent& start) const {
  float milliseconds = 0;
  check(gpu_.api().event_elapsed_time(&milliseconds, start.event_, event_), "cuEventElapsedTime");
  return std::llround(static_cast<double>(milliseconds) * 1e6);
}

}  // namespace mixdown
