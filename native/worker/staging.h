// Libraries for host memory on device buffers: through pinned memory, each stream
// of the plan with a thread of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "device/gpu.h"
#include "worker/check.h"
#include "worker/device_buffers.h"
#include "worker/exit.h"
#include "worker/futex.h"
#include "worker/operation.h"

namespace mixdown {

/// The communications of one stream of the plan that libraries for host memory
/// carry out: copy the input to the host, call the library, copy the output to the
/// device. One at a time.
class Stager {
 public:
  struct Job {
    const Operation* operation = nullptr;
    Communicator* communicator = nullptr;
    const DeviceStream* stream = nullptr;  ///< on which the copies are queued
    Check* check = nullptr;
    const Expectation* expectation = nullptr;
    const DeviceEvent* start = nullptr;  ///< recorded when the input is there, if wanted
    Place place;
  };

  Stager(const Gpu& gpu, const StreamBuffers& host, const DeviceStreamBuffers& device);
  ~Stager();

  /// Begins a job. Only when the one before has ended.
  void begin(const Job& job);

  /// When the job in progress ended, ns, 0 while it has not. Its output is in
  /// device memory then.
  int64_t ended() const { return ended_.load(std::memory_order_acquire); }

 private:
  void work();
  void carry_out();

  const Gpu& gpu_;
  const StreamBuffers& host_;
  const DeviceStreamBuffers& device_;
  Job job_;
  uint32_t jobs_ = 0;
  Event go_;
  std::atomic<int64_t> ended_{0};
  bool quit_ = false;
  std::thread thread_;
};

}  // namespace mixdown
