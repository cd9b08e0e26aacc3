// One GPU as the worker uses it: its memory, streams and events.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "device/api.h"

namespace mixdown {

/// A GPU with the context that libraries share. Errors are thrown as
/// std::runtime_error. Threads must attach() before they use anything of it.
class Gpu {
 public:
  /// Opens a device: of `count` visible ones that with the number `worker` modulo
  /// `count`, so that the workers of a machine take one each while there are enough.
  Gpu(device::Platform platform, int worker);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  /// Makes the context current in the calling thread.
  void attach() const;

  const std::string& name() const { return name_; }
  /// "cuda" or "hip".
  const char* kind() const { return api_.kind; }
  /// Whether it is the stand-in of our tests.
  bool emulated() const { return api_.emulated; }
  int ordinal() const { return ordinal_; }
  int sms() const { return attribute(api_.multiprocessor_count); }
  /// Of the counter that the span kernel reads.
  int clock_khz() const { return attribute(api_.clock_rate); }
  /// Version of the driver's interface, for example "12.4".
  std::string driver_version() const;
  /// "0000:17:00", the same for all workers that share the device.
  std::string address() const;
  int64_t free_bytes() const;

  const device::Api& api() const { return api_; }
  /// Throws unless `result` is success: see device::Api::check.
  void check(device::Result result, const char* what) const { api_.check(result, what); }

 private:
  int attribute(int which) const;

  const device::Api& api_;
  int ordinal_ = 0;
  device::Device device_ = 0;
  device::Context context_ = nullptr;
  std::string name_;
};

/// Zeroed device memory with `guard` bytes of its own before and after. Made and
/// freed while nothing runs: both may wait for the whole device.
class DeviceBuffer {
 public:
  DeviceBuffer(const Gpu& gpu, int64_t bytes, int64_t guard);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : gpu_(other.gpu_), bytes_(other.bytes_), guard_(other.guard_), memory_(std::exchange(other.memory_, 0)) {}
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;

  /// The address as modules get it: not for the host to follow.
  char* data() const { return reinterpret_cast<char*>(memory_ + static_cast<device::Pointer>(guard_)); }
  int64_t size() const { return bytes_; }
  void clear(device::Stream stream) const;

 private:
  const Gpu& gpu_;
  int64_t bytes_;
  int64_t guard_;
  device::Pointer memory_ = 0;
};

/// Host memory that copies reach without help of the CPU, for as long as this
/// lives. The memory is the caller's.
class PinnedRange {
 public:
  PinnedRange(const Gpu& gpu, void* memory, int64_t bytes);
  ~PinnedRange();
  PinnedRange(PinnedRange&& other) noexcept : gpu_(other.gpu_), memory_(std::exchange(other.memory_, nullptr)) {}
  PinnedRange(const PinnedRange&) = delete;
  PinnedRange& operator=(const PinnedRange&) = delete;
  PinnedRange& operator=(PinnedRange&&) = delete;

 private:
  const Gpu& gpu_;
  void* memory_;
};

/// A queue of device work.
class DeviceStream {
 public:
  explicit DeviceStream(const Gpu& gpu);
  ~DeviceStream();
  DeviceStream(DeviceStream&& other) noexcept : gpu_(other.gpu_), stream_(std::exchange(other.stream_, nullptr)) {}
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  DeviceStream& operator=(DeviceStream&&) = delete;

  device::Stream handle() const { return stream_; }
  void to_device(void* to, const void* from, int64_t bytes) const;
  void to_host(void* to, const void* from, int64_t bytes) const;
  void wait(device::Event event) const;
  void synchronize() const;

 private:
  const Gpu& gpu_;
  device::Stream stream_ = nullptr;
};

/// A place in a stream, with the time at which the stream got there.
class DeviceEvent {
 public:
  explicit DeviceEvent(const Gpu& gpu);
  ~DeviceEvent();
  DeviceEvent(DeviceEvent&& other) noexcept : gpu_(other.gpu_), event_(std::exchange(other.event_, nullptr)) {}
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;
  DeviceEvent& operator=(DeviceEvent&&) = delete;

  device::Event handle() const { return event_; }
  void record(const DeviceStream& stream) const;
  /// Whether the stream has got to where it was last recorded.
  bool come() const;
  void synchronize() const;
  /// ns from `start` to this; both have come. Good to about 0.5 us.
  int64_t since(const DeviceEvent& start) const;

 private:
  const Gpu& gpu_;
  device::Event event_ = nullptr;
};

}  // namespace mixdown
