#include "device/span_kernel.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace mixdown {
namespace {

// Two clocks, because neither will do alone. %globaltimer counts nanoseconds, but
// on many devices moves on once in a microsecond, which is 5 % of 20 us. %clock64
// counts cycles, whose length changes with the SM's frequency. So the span is
// measured in cycles, and the length of a cycle by the moments at which
// %globaltimer moves on, from the first one to the latest: the longer the span,
// the better it is known. Until these are 4 us apart, `cycles` counts: the span
// in cycles of the device's highest frequency.
//
// In C, with `ns` and `cycles` as parameters:
//
//   start = clock(); end = start + cycles; before = timer(); first = 0;
//   while ((now = clock()) < end) {
//     if ((t = timer()) == before) continue;
//     before = t;
//     if (first == 0) { first = t; at = now; continue; }
//     if (t - first >= 4000) end = start + ns * (now - at) / (t - first);
//   }
constexpr const char* kPtx = R"(
.version 6.0
.target sm_50
.address_size 64

.visible .entry mixdown_span(
    .param .u64 param_ns,
    .param .u64 param_cycles)
{
    .reg .pred %p;
    .reg .u64 %ns, %cycles, %start, %end, %now, %t, %before, %first, %at, %dt, %dc;
    .reg .f64 %fns, %fdt, %fdc;

    ld.param.u64 %ns, [param_ns];
    ld.param.u64 %cycles, [param_cycles];
    cvt.rn.f64.u64 %fns, %ns;
    mov.u64 %start, %clock64;
    add.u64 %end, %start, %cycles;
    mov.u64 %before, %globaltimer;
    mov.u64 %first, 0;
    mov.u64 %at, 0;

again:
    mov.u64 %now, %clock64;
    setp.ge.u64 %p, %now, %end;
    @%p bra done;
    mov.u64 %t, %globaltimer;
    setp.eq.u64 %p, %t, %before;
    @%p bra again;
    mov.u64 %before, %t;
    setp.ne.u64 %p, %first, 0;
    @%p bra known;
    mov.u64 %first, %t;
    mov.u64 %at, %now;
    bra again;

known:
    sub.u64 %dt, %t, %first;
    setp.lt.u64 %p, %dt, 4000;
    @%p bra again;
    sub.u64 %dc, %now, %at;
    cvt.rn.f64.u64 %fdt, %dt;
    cvt.rn.f64.u64 %fdc, %dc;
    mul.f64 %fdc, %fdc, %fns;
    div.rn.f64 %fdc, %fdc, %fdt;
    cvt.rzi.u64.f64 %dc, %fdc;
    add.u64 %end, %start, %dc;
    bra again;

done:
    ret;
}
)";

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
  cuda::check(gpu_.api().module_load_data(&module_, kPtx), "cuModuleLoadData");
  cuda::check(gpu_.api().module_get_function(&function_, module_, "mixdown_span"), "cuModuleGetFunction");
  calibrate();
}

SpanKernel::~SpanKernel() {
  if (module_ != nullptr) gpu_.api().module_unload(module_);
}

void SpanKernel::spin(const DeviceStream& stream, int64_t ns) const {
  auto duration = static_cast<uint64_t>(ns);
  auto cycles = static_cast<uint64_t>(static_cast<double>(ns) * cycles_per_ns_);
  void* parameters[] = {&duration, &cycles};
  cuda::check(gpu_.api().launch_kernel(function_, blocks_, 1, 1, kThreads, 1, 1, 0, stream.handle(), parameters, nullptr),
              "cuLaunchKernel");
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
