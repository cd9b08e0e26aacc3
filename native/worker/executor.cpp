#include "worker/executor.h"

#include <sys/prctl.h>

#include <algorithm>
#include <exception>

namespace mixdown {
namespace {

// A span this much ahead of the real clock is slept for at once, so that the
// control file shows what is going on; less is left to the next communication.
constexpr int64_t kMaxAhead = 1'000'000;  // ns

template <typename T>
void fetch(const T& object) {
  constexpr size_t kLine = 64;
  for (size_t at = 0; at < sizeof(T); at += kLine) __builtin_prefetch(reinterpret_cast<const char*>(&object) + at);
}

// Brings what a stream does next into the cache while the library works: a plan is
// run through once an iteration, and large operations leave nothing of it there.
void fetch_next(const Program& program, const std::vector<int>& tasks, size_t i) {
  if (i + 2 < tasks.size()) fetch(program.steps[tasks[i + 2]]);
  if (i + 1 >= tasks.size()) return;
  const int operation = program.steps[tasks[i + 1]].operation;
  if (operation >= 0) fetch(program.operations[operation]);
}

}  // namespace

Executor::Executor(Control& control, const std::vector<std::unique_ptr<Communicator>>& communicators,
                   std::vector<StreamBuffers>& buffers, pb::SpanMode span_mode, size_t max_tasks)
    : control_(control),
      communicators_(communicators),
      buffers_(buffers),
      spin_(span_mode == pb::SPAN_MODE_SPIN),
      times_(max_tasks),
      ended_(new Event[max_tasks]),
      turns_(new Event[communicators.size()]),
      stream_ends_(buffers.size()) {
  for (size_t s = 0; s < buffers.size(); ++s) threads_.emplace_back([this, s] { thread(static_cast<int>(s)); });
}

Executor::~Executor() {
  quit_ = true;
  go_.set(run_ + 1);
  for (auto& thread : threads_) thread.join();
}

int64_t Executor::run(const Program& program, int64_t start, const Place& place, Check* check) {
  program_ = &program;
  check_ = check;
  start_ = start + program.start_offset;
  place_ = place;
  ++run_;
  for (size_t c = 0; c < communicators_.size(); ++c) turns_[c].reset(0);
  running_.store(static_cast<int>(threads_.size()));
  go_.set(run_);
  if (!threads_.empty()) done_.wait(run_);
  int64_t end = start_;
  for (size_t s = 0; s < program.streams.size(); ++s) end = std::max(end, stream_ends_[s]);
  return end;
}

void Executor::thread(int stream) {
  const std::string name = "stream " + std::to_string(stream);
  prctl(PR_SET_NAME, name.c_str());
  for (uint32_t run = 1;; ++run) {
    go_.wait(run);
    if (quit_) return;
    if (stream < static_cast<int>(program_->streams.size())) run_stream(stream);
    if (running_.fetch_sub(1) == 1) done_.set(run);
  }
}

void Executor::run_stream(int stream) {
  int64_t ready = start_;  // virtual end of the stream's previous task
  int64_t seen = 0;        // what the clock showed when that ended, 0 when it was not looked at
  int current = -1;
  const bool alone = program_->streams.size() == 1;
  try {
    const std::vector<int>& tasks = program_->streams[stream];
    for (size_t i = 0; i < tasks.size(); ++i) {
      const int task = tasks[i];
      current = task;
      fetch_next(*program_, tasks, i);
      const Step& step = program_->steps[task];
      if (!step.deps.empty()) {
        ready = await_dependencies(stream, task, step, ready);
        seen = 0;
      }
      Times& times = times_[task];
      switch (step.kind) {
        case Step::Kind::kWait:
          times = {ready, ready};
          break;
        case Step::Kind::kSpan: {
          const int64_t end = ready + (check_ == nullptr ? step.duration : 0);
          times = {ready, end};
          control_.set_stream(stream, task, StreamState::kSpan, ready);
          if (spin_) {
            spin_until(end);
          } else if (end - now_ns() > kMaxAhead) {
            sleep_until(end);
          }
          break;
        }
        case Step::Kind::kCommunication:
          communicate(stream, task, step, ready, ready == seen ? seen : now_ns());
          seen = times.end;
          break;
      }
      ready = times.end;
      if (step.awaited) ended_[task].set(run_);
      control_.count_task(alone);
    }
    current = -1;
    sleep_until(ready);
  } catch (const std::exception& error) {
    fail(error.what(), {place_.plan, place_.iteration, current});
  } catch (...) {
    fail("a backend threw something that is no std::exception", {place_.plan, place_.iteration, current});
  }
  stream_ends_[stream] = ready;
  control_.set_stream(stream, -1, StreamState::kIdle, ready);
}

int64_t Executor::await_dependencies(int stream, int task, const Step& step, int64_t ready) {
  for (const int dep : step.deps) {
    if (!ended_[dep].is(run_)) {
      control_.set_stream(stream, task, StreamState::kWaiting, now_ns());
      ended_[dep].wait(run_);
    }
    ready = std::max(ready, times_[dep].end);
  }
  return ready;
}

void Executor::communicate(int stream, int task, const Step& step, int64_t ready, int64_t now) {
  const Operation& operation = program_->operations[step.operation];
  StreamBuffers& buffers = buffers_[stream];
  if (check_ != nullptr) {
    check_->prepare(operation, program_->expectations[step.operation], buffers.in.data(), buffers.out.data());
    now = now_ns();
  }
  if (ready > now) {
    control_.set_stream(stream, task, StreamState::kWaiting, now);
    sleep_until_exactly(ready);
    now = now_ns();
  }
  Event* turn = operation.turn >= 0 ? &turns_[operation.communicator] : nullptr;
  if (turn != nullptr && !turn->is(static_cast<uint32_t>(operation.turn))) {
    control_.set_stream(stream, task, StreamState::kTurn, now);
    turn->wait(static_cast<uint32_t>(operation.turn));
    now = now_ns();
  }
  Times& times = times_[task];
  times.start = now;
  control_.set_stream(stream, task, StreamState::kCommunication, times.start);
  execute(operation, *communicators_[operation.communicator], buffers.in.data(), buffers.out.data());
  times.end = now_ns();
  if (turn != nullptr) turn->set(static_cast<uint32_t>(operation.turn) + 1);
  if (check_ != nullptr) {
    check_->inspect(task, operation, program_->expectations[step.operation], buffers.in.data(),
                    buffers.out.data());
    times.end = now_ns();
  }
}

}  // namespace mixdown
