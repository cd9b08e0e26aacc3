// The control file shared with the launcher and the other workers; its layout
// is documented in replay/plan/control.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace mixdown {

/// What a worker is doing, as the control file numbers it.
enum class WorkerState : uint32_t {
  kNone = 0,
  kStarting = 1,
  kConnecting = 2,
  kVerifying = 3,
  kWarmingUp = 4,
  kTimed = 5,
  kFinished = 6,
  kFailed = 7,
  kTerminated = 8,
  kLeft = 9,
};

/// What a stream is doing.
enum class StreamState : uint32_t { kIdle = 0, kWaiting = 1, kTurn = 2, kSpan = 3, kCommunication = 4 };

/// A mapped control file and this worker's slot in it.
class Control {
 public:
  /// Maps the file and registers this process as worker `index`. Throws
  /// std::runtime_error when the file is not a control file or has no such slot.
  Control(const std::string& path, int index);

  int workers() const;
  int64_t launcher() const;

  /// True when the launcher or a failed worker wants all to leave.
  bool stopping() const;
  void request_stop();

  void set_state(WorkerState state, int plan, int iteration);
  void set_streams(int streams);

  /// Shows what a stream does; streams beyond the 62 of the file show nothing.
  void set_stream(int stream, int task, StreamState state, int64_t since);

  /// One more task has ended. `alone`: no other thread calls this now, so that no bus
  /// need be locked.
  void count_task(bool alone);

  /// Leaves the message and state 7. Async-signal-safe.
  void set_failed(const char* message);

  /// State 8. Async-signal-safe.
  void set_terminated();

  /// State 9: told to stop, or the launcher is gone.
  void set_left();

  /// Waits for all workers. Returns the same start time to all: `margin_ns` after
  /// the last has arrived. Ends the process when told to stop.
  int64_t barrier(int64_t margin_ns);

 private:
  struct Header;
  struct Slot;
  Header* header_;
  Slot* slot_;
  bool first_;
};

}  // namespace mixdown
