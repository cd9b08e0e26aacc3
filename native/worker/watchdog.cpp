#include "worker/watchdog.h"

#include <signal.h>

#include <cerrno>

#include "worker/control.h"
#include "worker/exit.h"
#include "worker/futex.h"

namespace mixdown {
namespace {

constexpr int64_t kInterval = 200'000'000;  // ns

bool gone(int64_t pid) { return pid > 0 && kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH; }

}  // namespace

Watchdog::Watchdog(Control& control) : thread_([this, &control] { watch(control); }) {}

Watchdog::~Watchdog() {
  off_.store(1);
  futex_wake(off_, Scope::kProcess);
  thread_.join();
}

void Watchdog::watch(Control& control) {
  while (off_.load() == 0) {
    if (control.stopping() || gone(control.launcher())) leave();
    futex_wait(off_, 0, Scope::kProcess, kInterval);
  }
}

}  // namespace mixdown
