// The kernel of spans, as each platform takes it. Its parameters are the length of the
// span in ns and in ticks of the counter whose rate Api::clock_rate says, 64 bits each.
#pragma once

namespace mixdown {

inline constexpr const char* kSpanKernel = "mixdown_span";

namespace device {

/// PTX for compute capability 5.0 and later.
const char* span_kernel_ptx();

/// Source for hiprtc: HIP's libraries take no portable code.
const char* span_kernel_hip();

}  // namespace device
}  // namespace mixdown
