#include "device/span_kernel.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/span_code.h"

namespace mixdown {
namespace {

constexpr unsigned kThreads = 256;

// More than a launch can add, ns: what is above it was something else on the
// device or on this machine.
constexpr int64_t kMaxOverhead = 10'000;

}  // namespace

SpanKernel::SpanKernel(const Gpu& gpu, double share)
    : gpu_(gpu),
      blocks_(static_cast<unsigned>(std::max(1.0, std::round(share * gpu.sms())))),
      cycles_per_ns_(gpu.clock_khz() / 1e6) {
  if (!(share > 0 && share <= 1)) throw std::runtime_error("the share of SMs for computation must be above 0, up to 1");
  const std::string code = gpu_.api().span_code();
  gpu_.check(gpu_.api().module_load_data(&module_, code.data()), "loading the kernel of spans");
  gpu_.check(gpu_.api().module_get_function(&function_, module_, kSpanKernel), "finding the kernel of spans");
  calibrate();
}

SpanKernel::~SpanKernel() {
  if (module_ != nullptr) gpu_.api().module_unload(module_);
}

void SpanKernel::spin(const DeviceStream& stream, int64_t ns) const {
  auto duration = static_cast<uint64_t>(ns);
  auto cycles = static_cast<uint64_t>(static_cast<double>(ns) * cycles_per_ns_);
  void* parameters[] = {&duration, &cycles};
  gpu_.check(gpu_.api().launch_kernel(function_, blocks_, 1, 1, kThreads, 1, 1, 0, stream.handle(), parameters, nullptr),
             "launching the kernel of spans");
}

void SpanKernel::launch(const DeviceStream& stream, int64_t ns) const {
  if (ns > 0) spin(stream, std::max<int64_t>(ns - overhead_, 0));
}

// What lies between the events around a span beside the spinning: the median of
// some spans, taken behind a longer one, so that they are queued when it is their
// turn, as spans of a replay mostly are.
void SpanKernel::calibrate() {
  constexpr int kTries = 9;
  constexpr int64_t kLength = 50'000;  // ns
  const DeviceStream stream(gpu_);
  const DeviceEvent before(gpu_);
  const DeviceEvent after(gpu_);
  spin(stream, 2'000'000);  // the SMs' frequency rises with work
  std::vector<int64_t> extra;
  for (int i = 0; i < kTries; ++i) {
    spin(stream, 100'000);
    before.record(stream);
    spin(stream, kLength);
    after.record(stream);
    stream.synchronize();
    extra.push_back(after.since(before) - kLength);
  }
  std::nth_element(extra.begin(), extra.begin() + kTries / 2, extra.end());
  overhead_ = std::clamp<int64_t>(extra[kTries / 2], 0, kMaxOverhead);
}

}  // namespace mixdown
