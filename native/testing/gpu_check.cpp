// How exact spans of computation are on this machine's GPU, and how well the
// device's clock and the host's agree. Prints a table and a verdict per line;
// ends with 1 when a line is out of bounds. "cuda", or another kind of device, is the argument. Part of gpu_check.sh.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <vector>

#include "device/gpu.h"
#include "device/span_kernel.h"
#include "worker/clock.h"

namespace {

using namespace mixdown;

constexpr double kBound = 0.02;  // of the length

bool bad = false;

const char* verdict(double error) {
  const bool ok = std::fabs(error) <= kBound;
  bad = bad || !ok;
  return ok ? "ok" : "OUT OF BOUNDS";
}

template <typename T>
T median(std::vector<T> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// From event to event around one span.
void single(const SpanKernel& spans, const DeviceStream& stream, const DeviceEvent& before, const DeviceEvent& after,
            int64_t ns) {
  std::vector<int64_t> took;
  const int n = static_cast<int>(std::clamp<int64_t>(200'000'000 / ns, 20, 400));
  for (int i = 0; i < n; ++i) {
    // Behind something else, so that it is queued when its turn comes.
    spans.launch(stream, 50'000);
    before.record(stream);
    spans.launch(stream, ns);
    after.record(stream);
    stream.synchronize();
    took.push_back(after.since(before));
  }
  std::sort(took.begin(), took.end());
  const auto at = [&](double q) { return took[static_cast<size_t>(q * static_cast<double>(took.size() - 1))]; };
  const double error = static_cast<double>(median(took) - ns) / static_cast<double>(ns);
  std::printf("single span   %10.1f us  median %10.2f us  5 %% %10.2f  95 %% %10.2f  error %+6.2f %%  %s\n", ns / 1e3,
              median(took) / 1e3, at(0.05) / 1e3, at(0.95) / 1e3, 100 * error, verdict(error));
}

// Many in a row.
void chain(const SpanKernel& spans, const DeviceStream& stream, const DeviceEvent& before, const DeviceEvent& after,
           int64_t ns) {
  const int n = static_cast<int>(std::clamp<int64_t>(40'000'000 / ns, 8, 400));
  spans.launch(stream, 5'000'000);  // while the others are queued
  before.record(stream);
  for (int i = 0; i < n; ++i) {
    spans.launch(stream, ns);
    after.record(stream);  // as in a replay, where each task has its event
  }
  stream.synchronize();
  const double each = static_cast<double>(after.since(before)) / n;
  const double error = (each - static_cast<double>(ns)) / static_cast<double>(ns);
  std::printf("chain of %3d  %10.1f us  mean   %10.2f us  %35s error %+6.2f %%  %s\n", n, ns / 1e3, each / 1e3, "",
              100 * error, verdict(error));
}

// Events against the host's clock.
void clocks(const SpanKernel& spans, const DeviceStream& stream, const DeviceEvent& before, const DeviceEvent& after,
            int64_t ns) {
  std::vector<double> errors;
  for (int i = 0; i < 15; ++i) {
    stream.synchronize();
    before.record(stream);
    before.synchronize();
    const int64_t start = now_ns();
    spans.launch(stream, ns);
    after.record(stream);
    after.synchronize();
    const int64_t host = now_ns() - start;
    errors.push_back(static_cast<double>(after.since(before) - host) / static_cast<double>(host));
  }
  const double error = median(errors);
  std::printf("event / clock %10.1f us  %60s error %+6.2f %%  %s\n", ns / 1e3, "", 100 * error, verdict(error));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Gpu gpu(device::platform_of(argc > 1 ? argv[1] : "cuda"), 0);
    std::printf("%s%s, %d SMs, driver %s, at %s\n", gpu.name().c_str(), gpu.emulated() ? " (EMULATED: a test of this program)" : "",
                gpu.sms(), gpu.driver_version().c_str(), gpu.address().c_str());
    const DeviceStream stream(gpu);
    const DeviceEvent before(gpu);
    const DeviceEvent after(gpu);
    for (const double share : {1.0, 0.5}) {
      const SpanKernel spans(gpu, share);
      std::printf("%d blocks, a launch adds %.2f us\n", spans.blocks(), spans.overhead() / 1e3);
      for (const int64_t us : {20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000}) {
        single(spans, stream, before, after, us * 1000);
      }
      for (const int64_t us : {20, 100, 1000}) chain(spans, stream, before, after, us * 1000);
      for (const int64_t us : {5000, 20000}) clocks(spans, stream, before, after, us * 1000);
    }
    return bad ? 1 : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu-check: %s\n", error.what());
    return 2;
  }
}
