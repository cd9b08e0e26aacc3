#include "device/gpu.h"

#include <cmath>
#include <stdexcept>

namespace mixdown {

namespace {

constexpr int kComputeCapabilityMajor = 75;  // CUdevice_attribute

}  // namespace

Gpu::Gpu(device::Platform platform, int worker) : api_(device::load(platform)) {
  int count = 0;
  check(api_.device_count(&count), "counting devices");
  ordinal_ = worker % count;
  check(api_.device_get(&device_, ordinal_), "choosing a device");
  char name[256] = "";
  check(api_.device_name(name, sizeof name - 1, device_), "asking for a device's name");
  name_ = name;
  if (platform == device::Platform::kCuda && attribute(kComputeCapabilityMajor) < 5) {
    throw std::runtime_error(name_ + ": compute capability 5.0 or later is needed");
  }
  check(api_.context_retain(&context_, device_), "making a context");
  attach();
}

Gpu::~Gpu() { api_.context_release(device_); }

void Gpu::attach() const { check(api_.context_set_current(context_), "choosing a device for a thread"); }

int Gpu::attribute(int which) const {
  int value = 0;
  check(api_.device_attribute(&value, which, device_), "asking what a device is like");
  return value;
}

std::string Gpu::driver_version() const { return api_.version(); }

std::string Gpu::address() const {
  char text[32] = "";
  check(api_.device_address(text, sizeof text - 1, device_), "asking for a device's address");
  const std::string address(text);
  return address.substr(0, address.find('.'));  // the function is always 0
}

int64_t Gpu::free_bytes() const {
  size_t free = 0;
  size_t total = 0;
  check(api_.memory_info(&free, &total), "asking for free memory");
  return static_cast<int64_t>(free);
}

DeviceBuffer::DeviceBuffer(const Gpu& gpu, int64_t bytes, int64_t guard) : gpu_(gpu), bytes_(bytes), guard_(guard) {
  const auto whole = static_cast<size_t>(bytes + 2 * guard);
  gpu.check(gpu_.api().memory_allocate(&memory_, whole), ("allocating " + std::to_string(whole) + " bytes").c_str());
  clear(nullptr);
  gpu_.check(gpu_.api().stream_synchronize(nullptr), "waiting for a stream");
}

DeviceBuffer::~DeviceBuffer() {
  if (memory_ != 0) gpu_.api().memory_free(memory_);
}

void DeviceBuffer::clear(device::Stream stream) const {
  gpu_.check(gpu_.api().set_bytes(memory_, 0, static_cast<size_t>(bytes_ + 2 * guard_), stream), "clearing memory");
}

PinnedRange::PinnedRange(const Gpu& gpu, void* memory, int64_t bytes) : gpu_(gpu), memory_(memory) {
  gpu_.check(gpu_.api().host_register(memory, static_cast<size_t>(bytes), 0), "pinning memory of the host");
}

PinnedRange::~PinnedRange() {
  if (memory_ != nullptr) gpu_.api().host_unregister(memory_);
}

DeviceStream::DeviceStream(const Gpu& gpu) : gpu_(gpu) {
  gpu_.check(gpu_.api().stream_create(&stream_, device::kStreamNonBlocking, 0), "making a stream");
}

DeviceStream::~DeviceStream() {
  if (stream_ != nullptr) gpu_.api().stream_destroy(stream_);
}

void DeviceStream::to_device(void* to, const void* from, int64_t bytes) const {
  if (bytes == 0) return;
  gpu_.check(gpu_.api().copy_to_device(reinterpret_cast<device::Pointer>(to), from, static_cast<size_t>(bytes), stream_),
        "copying to the device");
}

void DeviceStream::to_host(void* to, const void* from, int64_t bytes) const {
  if (bytes == 0) return;
  gpu_.check(gpu_.api().copy_to_host(to, reinterpret_cast<device::Pointer>(from), static_cast<size_t>(bytes), stream_),
        "copying to the host");
}

void DeviceStream::wait(device::Event event) const {
  gpu_.check(gpu_.api().stream_wait_event(stream_, event, 0), "making a stream wait");
}

void DeviceStream::synchronize() const { gpu_.check(gpu_.api().stream_synchronize(stream_), "waiting for a stream"); }

DeviceEvent::DeviceEvent(const Gpu& gpu) : gpu_(gpu) { gpu_.check(gpu_.api().event_create(&event_, 0), "making an event"); }

DeviceEvent::~DeviceEvent() {
  if (event_ != nullptr) gpu_.api().event_destroy(event_);
}

void DeviceEvent::record(const DeviceStream& stream) const {
  gpu_.check(gpu_.api().event_record(event_, stream.handle()), "recording an event");
}

bool DeviceEvent::come() const {
  const device::Result result = gpu_.api().event_query(event_);
  if (result == device::kNotReady) return false;
  gpu_.check(result, "asking for an event");
  return true;
}

void DeviceEvent::synchronize() const { gpu_.check(gpu_.api().event_synchronize(event_), "waiting for an event"); }

int64_t DeviceEvent::since(const DeviceEvent& start) const {
  float milliseconds = 0;
  gpu_.check(gpu_.api().event_elapsed_time(&milliseconds, start.event_, event_), "reading the time of events");
  return std::llround(static_cast<double>(milliseconds) * 1e6);
}

}  // namespace mixdown
