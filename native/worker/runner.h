// What runs programs: streams on host threads, or on a GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/check.h"
#include "worker/compile.h"
#include "worker/exit.h"

namespace mixdown {

/// Start and end of a task, ns on the monotonic clock.
struct Times {
  int64_t start = 0;
  int64_t end = 0;
};

/// Runs programs again and again.
class Runner {
 public:
  virtual ~Runner() = default;

  /// Runs the program from time `start` on, spans without their duration when
  /// `check` is given. Returns when all its tasks have ended; the time of the last.
  virtual int64_t run(const Program& program, int64_t start, const Place& place, Check* check) = 0;

  /// Of the last run, by task. Those of iterations that are not sampled need not be
  /// known.
  virtual const std::vector<Times>& times() const = 0;
};

}  // namespace mixdown
