// The streams: one thread each, made once, that run programs again and again.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "plan.pb.h"
#include "worker/buffers.h"
#include "worker/check.h"
#include "worker/compile.h"
#include "worker/control.h"
#include "worker/exit.h"
#include "worker/futex.h"
#include "worker/runner.h"

namespace mixdown {

/// Runs programs. Nothing is allocated and no file written while one runs.
///
/// Spans are kept on a virtual clock: a span begins when what it waits for has
/// ended, not when the thread got to run, so that late wake-ups do not add up.
/// Communications take place in real time, never before the virtual clock
/// allows.
class Executor final : public Runner {
 public:
  Executor(Control& control, const std::vector<std::unique_ptr<Communicator>>& communicators,
           std::vector<StreamBuffers>& buffers, pb::SpanMode span_mode, size_t max_tasks);
  ~Executor() override;

  int64_t run(const Program& program, int64_t start, const Place& place, Check* check) override;
  const std::vector<Times>& times() const override { return times_; }

 private:
  void thread(int stream);
  void run_stream(int stream);
  int64_t await_dependencies(int stream, int task, const Step& step, int64_t ready);
  /// `now` is the time: reading the clock costs as much as the rest of this.
  void communicate(int stream, int task, const Step& step, int64_t ready, int64_t now);

  Control& control_;
  const std::vector<std::unique_ptr<Communicator>>& communicators_;
  std::vector<StreamBuffers>& buffers_;
  const bool spin_;

  // The run in progress.
  const Program* program_ = nullptr;
  Check* check_ = nullptr;
  int64_t start_ = 0;
  Place place_;
  uint32_t run_ = 0;  // counts runs; the value of `ended_` of tasks that have ended

  std::vector<Times> times_;
  std::unique_ptr<Event[]> ended_;        // by task
  std::unique_ptr<Event[]> turns_;        // by communicator: the collective whose turn it is
  std::vector<int64_t> stream_ends_;
  std::atomic<int> running_{0};
  Event go_;
  Event done_;
  bool quit_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace mixdown
