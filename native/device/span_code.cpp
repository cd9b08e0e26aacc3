#include "device/span_code.h"

namespace mixdown::device {
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

// AMD's GPUs have a clock that runs at one rate, 100 MHz on most: one is enough.
constexpr const char* kHip = R"(
extern "C" __global__ void mixdown_span(unsigned long long, unsigned long long ticks) {
  const unsigned long long start = wall_clock64();
  while (wall_clock64() - start < ticks) {
  }
}
)";

}  // namespace

const char* span_kernel_ptx() { return kPtx; }

const char* span_kernel_hip() { return kHip; }

}  // namespace mixdown::device
