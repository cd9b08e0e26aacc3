// Sleeping on a 32-bit word, within the process or across processes that share
// the page.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

#include "worker/clock.h"

namespace mixdown {

/// Who sleeps on a word: threads of this process, or of all that map its page.
enum class Scope : int { kProcess = FUTEX_PRIVATE_FLAG, kShared = 0 };

/// Sleeps while the word holds `expected`, at most `timeout_ns` (0: for ever).
/// May return early: callers look again.
inline void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, Scope scope, int64_t timeout_ns = 0) {
  const timespec t = timespec_of(timeout_ns);
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT | static_cast<int>(scope), expected,
          timeout_ns > 0 ? &t : nullptr, nullptr, 0);
}

/// Wakes all who sleep on the word.
inline void futex_wake(std::atomic<uint32_t>& word, Scope scope) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE | static_cast<int>(scope), INT_MAX, nullptr,
          nullptr, 0);
}

/// A number that grows and that threads wait for. Waking costs a system call
/// only when somebody sleeps: the lowest bit says so.
class Event {
 public:
  /// Only while nobody waits.
  void reset(uint32_t value) { word_.store(value << 1, std::memory_order_release); }

  void set(uint32_t value) {
    const uint32_t before = word_.exchange(value << 1, std::memory_order_acq_rel);
    if (before & 1) futex_wake(word_, Scope::kProcess);
  }

  bool is(uint32_t value) const { return word_.load(std::memory_order_acquire) >> 1 == value; }

  uint32_t value() const { return word_.load(std::memory_order_acquire) >> 1; }

  void wait(uint32_t value) {
    uint32_t seen = word_.load(std::memory_order_acquire);
    while (seen >> 1 != value) {
      if ((seen & 1) == 0) {
        if (!word_.compare_exchange_weak(seen, seen | 1, std::memory_order_acq_rel)) continue;
        seen |= 1;
      }
      futex_wait(word_, seen, Scope::kProcess);
      seen = word_.load(std::memory_order_acquire);
    }
  }

 private:
  std::atomic<uint32_t> word_{0};
};

}  // namespace mixdown
