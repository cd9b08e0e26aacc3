#include "worker/staging.h"

#include <cstring>
#include <exception>

namespace mixdown {
namespace {

// What was in the host's memory must not be what a check finds there.
void spoil(const Operation& o, const StreamBuffers& host) {
  std::memset(host.in.data() - kGuard, 0x5a, o.input_buffer() + 2 * kGuard);
  std::memset(host.out.data() - kGuard, 0x5a, o.output_buffer() + 2 * kGuard);
}

}  // namespace

Stager::Stager(const Gpu& gpu, const StreamBuffers& host, const DeviceStreamBuffers& device)
    : gpu_(gpu), host_(host), device_(device), thread_([this] { work(); }) {}

Stager::~Stager() {
  quit_ = true;
  go_.set(jobs_ + 1);
  thread_.join();
}

void Stager::begin(const Job& job) {
  job_ = job;
  ended_.store(0, std::memory_order_relaxed);
  go_.set(++jobs_);
}

void Stager::work() {
  try {
    gpu_.attach();
    for (uint32_t job = 1;; ++job) {
      go_.wait(job);
      if (quit_) return;
      carry_out();
    }
  } catch (const std::exception& error) {
    fail(error.what(), job_.place);
  } catch (...) {
    fail("a backend threw something that is no std::exception", job_.place);
  }
}

void Stager::carry_out() {
  const Operation& o = *job_.operation;
  const DeviceStream& stream = *job_.stream;
  if (job_.check != nullptr) {
    job_.check->prepare(o, *job_.expectation, host_.in.data(), host_.out.data());
    all_to_device(o, host_, device_, stream);
    stream.synchronize();
    spoil(o, host_);
  }
  if (job_.start != nullptr) job_.start->record(stream);
  input_to_host(o, host_, device_, stream);
  stream.synchronize();
  execute(o, *job_.communicator, host_.in.data(), host_.out.data());
  output_to_device(o, host_, device_, stream);
  stream.synchronize();
  const int64_t now = now_ns();
  if (job_.check != nullptr) {
    spoil(o, host_);
    all_to_host(o, host_, device_, stream);
    stream.synchronize();
    job_.check->inspect(job_.place.task, o, *job_.expectation, host_.in.data(), host_.out.data());
  }
  ended_.store(now, std::memory_order_release);
}

}  // namespace mixdown
