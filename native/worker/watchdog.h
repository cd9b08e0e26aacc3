// A thread that ends the worker when nobody wants its result any more.
#pragma once

#include <atomic>
#include <thread>

namespace mixdown {

class Control;

/// Looks about every 200 ms whether the control file says stop or the launcher is
/// gone, and then ends the process with kStopped.
class Watchdog {
 public:
  explicit Watchdog(Control& control);
  ~Watchdog();

 private:
  void watch(Control& control);

  std::atomic<uint32_t> off_{0};
  std::thread thread_;
};

}  // namespace mixdown
