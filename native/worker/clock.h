// CLOCK_MONOTONIC in nanoseconds, and waiting on it.
#pragma once

#include <time.h>

#include <cerrno>
#include <cstdint>

namespace mixdown {

inline int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

inline timespec timespec_of(int64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

/// Sleeps until the clock shows `when`; returns at once if it has passed.
inline void sleep_until(int64_t when) {
  if (now_ns() >= when) return;
  const timespec t = timespec_of(when);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
  }
}

/// Keeps a core busy until the clock shows `when`.
inline void spin_until(int64_t when) {
  while (now_ns() < when) {
  }
}

/// As sleep_until, but back from sleep a little earlier and spinning for the rest:
/// waking up takes about 20 us, which would be added to whatever starts then. No
/// sched_yield here: Linux charges a whole time slice for each.
inline void sleep_until_exactly(int64_t when) {
  constexpr int64_t kWakeUp = 20'000;  // ns
  sleep_until(when - kWakeUp);
  spin_until(when);
}

}  // namespace mixdown
