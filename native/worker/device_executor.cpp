#include "worker/device_executor.h"

#include <algorithm>
#include <exception>

#include "worker/ops.h"

namespace mixdown {
namespace {

// Work queued on a lane ahead of the device. Beyond about a thousand the driver
// makes the caller wait, and with it all other streams.
constexpr size_t kMaxOpen = 256;

constexpr int64_t kNap = 20'000;  // ns, of a core that is shared

}  // namespace

DeviceExecutor::DeviceExecutor(const Gpu& gpu, Control& control,
                               const std::vector<std::unique_ptr<Communicator>>& communicators,
                               const std::vector<CommunicatorKey>& keys, const std::vector<bool>& ordered,
                               std::vector<StreamBuffers>& host, std::vector<DeviceStreamBuffers>& device,
                               const std::vector<Program>& programs, const Options& options)
    : gpu_(gpu),
      control_(control),
      communicators_(communicators),
      keys_(keys),
      ordered_(ordered),
      host_(host),
      device_(device),
      options_(options),
      programs_(programs),
      lanes_(gpu),
      stagers_(host.size()),
      turns_(communicators.size()) {
  for (const StreamBuffers& b : host_) {
    for (const Buffer* buffer : {&b.in, &b.out}) {
      pinned_.emplace_back(gpu, buffer->data() - kGuard, buffer->size() + 2 * kGuard);
    }
  }
  for (int i = 0; i < 8; ++i) zeros_.emplace_back(gpu);
  size_t tasks = 0;
  bool spans = false;
  for (const Program& program : programs) {
    tasks = std::max(tasks, program.steps.size());
    plans_.push_back(plan(program));
    for (const Planned& p : plans_.back()) spans = spans || p.way == Way::kDeviceSpan;
  }
  if (spans) spans_ = std::make_unique<SpanKernel>(gpu, options.sm_share);
  states_.resize(tasks);
  times_.resize(tasks);
  host_spans_.reserve(host.size());
  for (size_t t = 0; t < tasks; ++t) {
    ends_.emplace_back(gpu);
    if (options.samples > 0) starts_.emplace_back(gpu);
  }
}

DeviceExecutor::~DeviceExecutor() = default;

std::vector<DeviceExecutor::Planned> DeviceExecutor::plan(const Program& program) {
  // What a stream has decides whose its waits are.
  std::vector<bool> host_spans(program.streams.size());
  std::vector<bool> device_work(program.streams.size());
  for (const Step& step : program.steps) {
    const auto s = static_cast<size_t>(step.stream);
    if (step.kind == Step::Kind::kSpan) (step.device ? device_work : host_spans)[s] = true;
    if (step.kind == Step::Kind::kCommunication) device_work[s] = true;
  }
  std::vector<Planned> planned(program.steps.size());
  for (size_t t = 0; t < program.steps.size(); ++t) {
    const Step& step = program.steps[t];
    const auto s = static_cast<size_t>(step.stream);
    Planned& p = planned[t];
    std::string backend;  // of the lane, "" for spans
    switch (step.kind) {
      case Step::Kind::kSpan:
        p.way = step.device ? Way::kDeviceSpan : Way::kHostSpan;
        break;
      case Step::Kind::kWait:
        p.way = host_spans[s] || !device_work[s] ? Way::kHostWait : Way::kDeviceWait;
        break;
      case Step::Kind::kCommunication: {
        const Operation& o = program.operations[static_cast<size_t>(step.operation)];
        const auto c = static_cast<size_t>(o.communicator);
        p.way = ordered_[c] ? Way::kQueued : Way::kStaged;
        backend = keys_[c].backend;
        if (o.turn >= 0) p.turns = o.communicator;
        if (p.way == Way::kStaged && stagers_[s] == nullptr) {
          stagers_[s] = std::make_unique<Stager>(gpu_, host_[s], device_[s]);
        }
        break;
      }
    }
    if (on_device(p.way) || p.way == Way::kStaged) {
      p.lane = lanes_.find(step.stream, backend, program.streams[s].size());
    }
  }
  for (const auto& stream : program.streams) {
    for (size_t i = 1; i < stream.size(); ++i) planned[static_cast<size_t>(stream[i])].before = stream[i - 1];
  }
  return planned;
}

int64_t DeviceExecutor::run(const Program& program, int64_t start, const Place& place, Check* check) {
  program_ = &program;
  planned_ = &plans_[static_cast<size_t>(&program - programs_.data())];
  check_ = check;
  place_ = place;
  start_ = start + program.start_offset;
  sampled_ = check == nullptr && place.iteration < options_.samples;
  left_ = program.steps.size();
  std::fill(states_.begin(), states_.end(), State::kNotBegun);
  std::fill(turns_.begin(), turns_.end(), 0);
  cursors_.assign(program.streams.size(), {});
  for (Lane& lane : lanes_) {
    lane.queued.clear();
    lane.ended = 0;
  }
  try {
    if (sampled_) read_clock();
    sleep_until_exactly(start_);
    run_tasks();
    if (sampled_) read_times();
  } catch (const std::exception& error) {
    fail(error.what(), place_);
  }
  int64_t end = start_;
  for (const auto& stream : program.streams) {
    if (!stream.empty()) end = std::max(end, times_[static_cast<size_t>(stream.back())].end);
  }
  return end;
}

void DeviceExecutor::run_tasks() {
  while (left_ > 0) {
    bool moved = false;
    for (int task; (task = next_task()) >= 0;) {
      place_.task = task;
      begin(task);
      moved = true;
    }
    place_.task = -1;
    moved = look() || moved;
    if (!moved) idle();
  }
}

// The first task of the plan that can begin, -1 when there is none.
int DeviceExecutor::next_task() const {
  int first = -1;
  for (size_t s = 0; s < cursors_.size(); ++s) {
    const auto& stream = program_->streams[s];
    if (cursors_[s].next == stream.size()) continue;
    const int task = stream[cursors_[s].next];
    if ((first < 0 || task < first) && can_begin(task)) first = task;
  }
  return first;
}

// Whether a task need not wait for another any more, or the device will.
bool DeviceExecutor::satisfied(int task, int dependency) const {
  const State state = states_[static_cast<size_t>(dependency)];
  const Way way = (*planned_)[static_cast<size_t>(task)].way;
  const bool host = way == Way::kHostSpan || way == Way::kHostWait;
  if (host || !on_device((*planned_)[static_cast<size_t>(dependency)].way)) return state == State::kEnded;
  return state != State::kNotBegun;
}

bool DeviceExecutor::can_begin(int task) const {
  const Planned& p = (*planned_)[static_cast<size_t>(task)];
  const Step& step = program_->steps[static_cast<size_t>(task)];
  if (p.before >= 0 && !satisfied(task, p.before)) return false;
  for (const int dep : step.deps) {
    if (!satisfied(task, dep)) return false;
  }
  if (step.kind != Step::Kind::kCommunication) return p.lane < 0 || lanes_[p.lane].open() < kMaxOpen;
  // One set of buffers on the host to fill and read.
  if (check_ != nullptr && p.before >= 0 && states_[static_cast<size_t>(p.before)] != State::kEnded) return false;
  const Operation& o = program_->operations[static_cast<size_t>(step.operation)];
  return (p.turns < 0 || turns_[static_cast<size_t>(p.turns)] == o.turn) && lanes_[p.lane].open() < kMaxOpen;
}

void DeviceExecutor::queue_waits(int task, const Lane& lane) const {
  const auto wait = [&](int dependency) {
    const Planned& d = (*planned_)[static_cast<size_t>(dependency)];
    if (on_device(d.way) && &lanes_[d.lane] != &lane && states_[static_cast<size_t>(dependency)] != State::kEnded) {
      lane.stream.wait(ends_[static_cast<size_t>(dependency)].handle());
    }
  };
  if ((*planned_)[static_cast<size_t>(task)].before >= 0) wait((*planned_)[static_cast<size_t>(task)].before);
  for (const int dep : program_->steps[static_cast<size_t>(task)].deps) wait(dep);
}

void DeviceExecutor::begin(int task) {
  const Step& step = program_->steps[static_cast<size_t>(task)];
  const Planned& p = (*planned_)[static_cast<size_t>(task)];
  Times& times = times_[static_cast<size_t>(task)];
  states_[static_cast<size_t>(task)] = State::kBegun;
  ++cursors_[static_cast<size_t>(step.stream)].next;
  times.start = now_ns();
  switch (p.way) {
    case Way::kHostSpan:
    case Way::kHostWait: {
      int64_t ready = start_;
      if (p.before >= 0) ready = std::max(ready, times_[static_cast<size_t>(p.before)].end);
      for (const int dep : step.deps) ready = std::max(ready, times_[static_cast<size_t>(dep)].end);
      times = {ready, ready + (check_ == nullptr ? step.duration : 0)};
      if (times.end <= now_ns()) {
        end(task, times.end);
      } else {
        host_spans_.push_back(task);
      }
      break;
    }
    case Way::kStaged: {
      Lane& lane = lanes_[p.lane];
      queue_waits(task, lane);
      Stager::Job job;
      job.operation = &program_->operations[static_cast<size_t>(step.operation)];
      job.communicator = communicators_[static_cast<size_t>(job.operation->communicator)].get();
      job.stream = &lane.stream;
      job.check = check_;
      if (check_ != nullptr) job.expectation = &program_->expectations[static_cast<size_t>(step.operation)];
      if (sampled_) job.start = &starts_[static_cast<size_t>(task)];
      job.place = place_;
      stagers_[static_cast<size_t>(step.stream)]->begin(job);
      break;
    }
    default: {
      Lane& lane = lanes_[p.lane];
      queue_waits(task, lane);
      if (sampled_) starts_[static_cast<size_t>(task)].record(lane.stream);
      begin_queued(step, lane);
      ends_[static_cast<size_t>(task)].record(lane.stream);
      lane.queued.push_back(task);
      if (p.turns >= 0) ++turns_[static_cast<size_t>(p.turns)];
    }
  }
  show(step.stream);
}

void DeviceExecutor::begin_queued(const Step& step, const Lane& lane) {
  if (step.kind == Step::Kind::kSpan) {
    if (check_ == nullptr) spans_->launch(lane.stream, step.duration);
    return;
  }
  if (step.kind != Step::Kind::kCommunication) return;
  const Operation& o = program_->operations[static_cast<size_t>(step.operation)];
  StreamBuffers& host = host_[static_cast<size_t>(step.stream)];
  const DeviceStreamBuffers& device = device_[static_cast<size_t>(step.stream)];
  if (check_ != nullptr) {
    check_->prepare(o, program_->expectations[static_cast<size_t>(step.operation)], host.in.data(), host.out.data());
    all_to_device(o, host, device, lane.stream);
  }
  Communicator& communicator = *communicators_[static_cast<size_t>(o.communicator)];
  communicator.use_stream(lane.stream.handle());
  execute(o, communicator, device.in.data(), device.out.data());
  if (check_ != nullptr) all_to_host(o, host, device, lane.stream);
}

// Looks for what has ended; whether anything has.
bool DeviceExecutor::look() {
  bool moved = false;
  const int64_t now = now_ns();
  for (size_t i = 0; i < host_spans_.size();) {
    const int task = host_spans_[i];
    if (times_[static_cast<size_t>(task)].end > now) {
      ++i;
      continue;
    }
    host_spans_[i] = host_spans_.back();
    host_spans_.pop_back();
    end(task, times_[static_cast<size_t>(task)].end);
    moved = true;
  }
  for (size_t s = 0; s < cursors_.size(); ++s) {
    if (stagers_[s] == nullptr || cursors_[s].next == 0) continue;
    const int task = program_->streams[s][cursors_[s].next - 1];
    const Planned& p = (*planned_)[static_cast<size_t>(task)];
    if (p.way != Way::kStaged || states_[static_cast<size_t>(task)] != State::kBegun) continue;
    const int64_t ended = stagers_[s]->ended();
    if (ended == 0) continue;
    if (p.turns >= 0) ++turns_[static_cast<size_t>(p.turns)];
    end(task, ended);
    moved = true;
  }
  for (Lane& lane : lanes_) moved = look_at_lane(lane) || moved;
  return moved;
}

bool DeviceExecutor::look_at_lane(Lane& lane) {
  bool moved = false;
  while (lane.open() > 0) {
    const int task = lane.queued[lane.ended];
    if (!ends_[static_cast<size_t>(task)].come()) return moved;
    ++lane.ended;
    const Step& step = program_->steps[static_cast<size_t>(task)];
    if (check_ != nullptr && step.kind == Step::Kind::kCommunication) {
      const StreamBuffers& host = host_[static_cast<size_t>(step.stream)];
      check_->inspect(task, program_->operations[static_cast<size_t>(step.operation)],
                      program_->expectations[static_cast<size_t>(step.operation)], host.in.data(), host.out.data());
    }
    end(task, now_ns());
    moved = true;
  }
  return moved;
}

void DeviceExecutor::end(int task, int64_t when) {
  const Step& step = program_->steps[static_cast<size_t>(task)];
  states_[static_cast<size_t>(task)] = State::kEnded;
  times_[static_cast<size_t>(task)].end = when;
  --left_;
  control_.count_task(true);
  Cursor& cursor = cursors_[static_cast<size_t>(step.stream)];
  const auto& stream = program_->streams[static_cast<size_t>(step.stream)];
  while (cursor.oldest < stream.size() && states_[static_cast<size_t>(stream[cursor.oldest])] == State::kEnded) {
    ++cursor.oldest;
  }
  show(step.stream);
}

// Shows the oldest task of the stream that has not ended.
void DeviceExecutor::show(int stream) const {
  const auto& tasks = program_->streams[static_cast<size_t>(stream)];
  const size_t oldest = cursors_[static_cast<size_t>(stream)].oldest;
  if (oldest == tasks.size()) return control_.set_stream(stream, -1, StreamState::kIdle, now_ns());
  const int task = tasks[oldest];
  StreamState state = StreamState::kWaiting;
  int64_t since = now_ns();
  if (states_[static_cast<size_t>(task)] == State::kBegun) {
    since = times_[static_cast<size_t>(task)].start;
    const Step::Kind kind = program_->steps[static_cast<size_t>(task)].kind;
    if (kind == Step::Kind::kSpan) state = StreamState::kSpan;
    if (kind == Step::Kind::kCommunication) state = StreamState::kCommunication;
  }
  control_.set_stream(stream, task, state, since);
}

// Which time of the host the device's clock shows. The device is idle, so an event
// comes between its call and the return of the wait for it.
void DeviceExecutor::read_clock() {
  if (lanes_.size() == 0) return;
  int64_t shortest = INT64_MAX;
  for (size_t i = 0; i < zeros_.size(); ++i) {
    const int64_t before = now_ns();
    zeros_[i].record(lanes_[0].stream);
    zeros_[i].synchronize();
    const int64_t took = now_ns() - before;
    if (took >= shortest) continue;
    shortest = took;
    zero_ = i;
    zero_time_ = before + took / 2;
  }
}

// The device's own times of what it did.
void DeviceExecutor::read_times() {
  for (size_t t = 0; t < program_->steps.size(); ++t) {
    const Way way = (*planned_)[t].way;
    if (on_device(way)) times_[t].end = zero_time_ + ends_[t].since(zeros_[zero_]);
    if (on_device(way) || way == Way::kStaged) times_[t].start = zero_time_ + starts_[t].since(zeros_[zero_]);
    times_[t].start = std::min(times_[t].start, times_[t].end);
  }
}

void DeviceExecutor::idle() const {
  if (options_.spin) return;
  int64_t until = now_ns() + kNap;
  for (const int task : host_spans_) until = std::min(until, times_[static_cast<size_t>(task)].end);
  sleep_until(until);
}

}  // namespace mixdown
