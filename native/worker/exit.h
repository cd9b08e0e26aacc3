// All ways in which a worker ends before its work is done.
#pragma once

#include <string>

namespace mixdown {

class Control;
class Results;

/// Exit codes of the worker.
enum ExitCode : int {
  kDone = 0,
  kUsage = 1,       ///< wrong arguments, or a module that cannot be probed
  kFailed = 2,      ///< invalid experiment or failed operation; the message is in the results and the control file
  kStopped = 3,     ///< told to stop, or the launcher is gone
  kTerminated = 143 ///< SIGTERM
};

/// Where an error happened; -1 for "nowhere in particular".
struct Place {
  int plan = 0;
  int iteration = 0;
  int task = -1;
};

/// Tells this file where failures are recorded. Handles signals and uncaught
/// exceptions from now on, and leaves no core dumps. Call it again after loading
/// libraries that install handlers of their own.
void handle_exits(Control* control, Results* results);

/// Records the failure, tells the others to stop and ends the process.
[[noreturn]] void fail(const std::string& message, const Place& place);

/// Ends the process without a message of its own: someone else has one.
[[noreturn]] void leave();

}  // namespace mixdown
