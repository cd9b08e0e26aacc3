// A kernel that stands in for computation: it keeps SMs busy for a given time.
#pragma once

#include <cstdint>

#include "device/gpu.h"

namespace mixdown {

/// Spans of computation on one GPU.
///
/// A span holds one block of 256 threads on each of a share of the SMs, which
/// spin. It takes neither memory bandwidth nor power as real kernels do, and
/// little enough of registers and no shared memory, so that a communication
/// kernel fits beside it.
class SpanKernel {
 public:
  /// `share` of the SMs, above 0 up to 1. Measures what a launch adds to a span,
  /// which takes a few ms; nothing else may run on the device meanwhile.
  SpanKernel(const Gpu& gpu, double share);
  ~SpanKernel();
  SpanKernel(const SpanKernel&) = delete;
  SpanKernel& operator=(const SpanKernel&) = delete;

  /// Queues a span that takes `ns` from the end of what is before it on the stream
  /// to its own end.
  void launch(const DeviceStream& stream, int64_t ns) const;

  int blocks() const { return static_cast<int>(blocks_); }
  /// ns by which a span is longer than its kernel spins, as measured at the start.
  int64_t overhead() const { return overhead_; }

 private:
  void spin(const DeviceStream& stream, int64_t ns) const;
  void calibrate();

  const Gpu& gpu_;
  unsigned blocks_;
  double cycles_per_ns_;
  int64_t overhead_ = 0;
  device::Module module_ = nullptr;
  device::Function function_ = nullptr;
};

}  // namespace mixdown
