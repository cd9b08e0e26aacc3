// What a rank does that waits by polling where ranks share cores.
#pragma once

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace mixdown {

/// Whether ranks that poll should let others run: MIXDOWN_YIELD=0 or 1, else where
/// more threads poll than there are cores.
inline bool shares_cores(long polling) {
  if (const char* choice = std::getenv("MIXDOWN_YIELD")) return std::strcmp(choice, "0") != 0;
  return polling > sysconf(_SC_NPROCESSORS_ONLN);
}

/// One thread's waiting. It gives the core to others with sched_yield, and where that
/// does not help it sleeps.
///
/// Linux yields among the threads of one scheduling group only, and with
/// sched_autogroup_enabled each session is one. MPICH's mpirun starts every rank in a
/// session of its own: a rank that yields is then let run on through its whole time
/// slice, while the rank that it waits for has none. A yield that gave the core to
/// nobody is over in less than a microsecond; after some of them in a row the thread
/// sleeps, for less than a time slice and for more than the shortest time that timers
/// of virtual machines keep: what is shorter comes back at once.
class Patience {
 public:
  /// Once each time that polling found nothing.
  void wait() {
    if (idle_ < kIdle) {
      const int64_t before = now();
      sched_yield();
      idle_ = now() - before < kNothing ? idle_ + 1 : 0;
      return;
    }
    if (!exact_) {
      // Else Linux adds up to 50 us.
      prctl(PR_SET_TIMERSLACK, 1UL);
      exact_ = true;
    }
    const timespec t = {0, kSleep};
    nanosleep(&t, nullptr);
  }
  /// When polling found something.
  void over() { idle_ = 0; }

 private:
  static constexpr int64_t kNothing = 1'000;  // ns
  static constexpr long kSleep = 50'000;          // ns
  static constexpr int kIdle = 20;                      // yields

  static int64_t now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
  }

  int idle_ = 0;  // yields in a row that gave the core to nobody
  bool exact_ = false;
};

}  // namespace mixdown
