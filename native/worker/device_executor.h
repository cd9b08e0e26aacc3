// Running programs on a GPU: one thread that queues work, in the order of the
// plan, and never waits for it but where the plan does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/gpu.h"
#include "device/span_kernel.h"
#include "worker/buffers.h"
#include "worker/check.h"
#include "worker/compile.h"
#include "worker/control.h"
#include "worker/device_buffers.h"
#include "worker/lanes.h"
#include "worker/runner.h"
#include "worker/staging.h"

namespace mixdown {

/// Runs programs on a GPU.
///
/// Each stream of the plan has lanes (lanes.h): streams of the device, one for its
/// spans and one for each backend. What a task waits for on another lane it waits
/// for by an event, on the device. The one thread that queues takes, of the tasks
/// that can begin, always the first of the plan. A task can begin when
///  - what it waits for on the device has been queued,
///  - what it waits for on the host has ended: host spans, waits of the host, and
///    what libraries for host memory do (staging.h);
///  - of a host's span or wait, everything that it waits for has ended.
/// A wait is the host's on streams that have host spans, or have nothing for the
/// device; else it is the device's. Host spans are kept on a virtual clock, as the
/// executor on host threads does.
///
/// No stream can thereby hold up another, just as if each had a thread of its own,
/// which is what the deadlock check takes for granted.
class DeviceExecutor final : public Runner {
 public:
  struct Options {
    double sm_share = 1;  ///< of the SMs, for device spans
    int64_t samples = 0;  ///< iterations in which the times of tasks are wanted
    bool spin = true;     ///< keep a core busy while there is nothing to queue
  };

  /// `keys` tells which backend a communicator is of, `ordered` by communicator
  /// whether that is stream-ordered.
  DeviceExecutor(const Gpu& gpu, Control& control, const std::vector<std::unique_ptr<Communicator>>& communicators,
                 const std::vector<CommunicatorKey>& keys, const std::vector<bool>& ordered,
                 std::vector<StreamBuffers>& host, std::vector<DeviceStreamBuffers>& device,
                 const std::vector<Program>& programs, const Options& options);
  ~DeviceExecutor() override;

  int64_t run(const Program& program, int64_t start, const Place& place, Check* check) override;
  const std::vector<Times>& times() const override { return times_; }

 private:
  // How a task of a program is carried out.
  enum class Way : uint8_t { kHostSpan, kHostWait, kDeviceSpan, kDeviceWait, kQueued, kStaged };
  struct Planned {
    Way way = Way::kHostWait;
    int lane = -1;      // of what the device does
    int before = -1;    // the task before it on its stream
    int turns = -1;     // its communicator, of collectives
  };
  struct Cursor {
    size_t next = 0;    // of the stream's tasks, to begin
    size_t oldest = 0;  // not known to have ended
  };
  enum class State : uint8_t { kNotBegun, kBegun, kEnded };

  static bool on_device(Way way) { return way == Way::kDeviceSpan || way == Way::kDeviceWait || way == Way::kQueued; }
  std::vector<Planned> plan(const Program& program);
  void run_tasks();
  bool can_begin(int task) const;
  bool satisfied(int task, int dependency) const;
  int next_task() const;
  void begin(int task);
  void begin_queued(const Step& step, const Lane& lane);
  void queue_waits(int task, const Lane& lane) const;
  bool look();
  bool look_at_lane(Lane& lane);
  void end(int task, int64_t when);
  void show(int stream) const;
  void read_clock();
  void read_times();
  void idle() const;

  const Gpu& gpu_;
  Control& control_;
  const std::vector<std::unique_ptr<Communicator>>& communicators_;
  const std::vector<CommunicatorKey>& keys_;
  const std::vector<bool>& ordered_;
  std::vector<StreamBuffers>& host_;
  std::vector<DeviceStreamBuffers>& device_;
  const Options options_;
  const std::vector<Program>& programs_;

  Lanes lanes_;
  std::vector<PinnedRange> pinned_;
  std::unique_ptr<SpanKernel> spans_;
  std::vector<std::vector<Planned>> plans_;  // by program and task
  std::vector<std::unique_ptr<Stager>> stagers_;  // by stream, null where nothing is staged
  std::vector<DeviceEvent> starts_;  // by task
  std::vector<DeviceEvent> ends_;
  std::vector<DeviceEvent> zeros_;
  size_t zero_ = 0;        // of these the one from which times of the device count
  int64_t zero_time_ = 0;  // ns on the host's clock

  // The run in progress.
  const Program* program_ = nullptr;
  const std::vector<Planned>* planned_ = nullptr;
  Check* check_ = nullptr;
  Place place_;
  int64_t start_ = 0;
  bool sampled_ = false;
  size_t left_ = 0;
  std::vector<State> states_;
  std::vector<Times> times_;
  std::vector<Cursor> cursors_;   // by stream
  std::vector<int64_t> turns_;    // by communicator: the collective whose turn it is
  std::vector<int> host_spans_;   // begun and not ended
};

}  // namespace mixdown
