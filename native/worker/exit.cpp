#include "worker/exit.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <exception>

#include "worker/control.h"
#include "worker/results.h"

namespace mixdown {
namespace {

// Signal handlers and the watchdog's thread read them.
std::atomic<Control*> current_control{nullptr};
std::atomic<Results*> current_results{nullptr};
std::atomic<bool> ending{false};

// The first thread to get here ends the process, the others wait for that.
void claim_end() {
  if (!ending.exchange(true)) return;
  for (;;) pause();
}

void on_terminate(int) {
  Control* control = current_control.load();
  if (control != nullptr) control->set_terminated();
  _exit(kTerminated);
}

#ifndef MIXDOWN_SANITIZED
// A library crashed. Nothing can be trusted any more but the mapped page.
void on_crash(int signal) {
  const char* message = signal == SIGABRT  ? "aborted inside a library, see the worker's stderr"
                        : signal == SIGFPE ? "crashed with SIGFPE"
                        : signal == SIGBUS ? "crashed with SIGBUS"
                                           : "crashed with SIGSEGV";
  Control* control = current_control.load();
  if (control != nullptr) {
    control->set_failed(message);
    control->request_stop();
  }
  _exit(kFailed);
}
#endif

// An exception left a thread that is not ours, for example a library's own.
void on_uncaught() {
  std::string message = "uncaught exception in a library's thread";
  try {
    if (const auto exception = std::current_exception()) std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    message += std::string(": ") + error.what();
  } catch (...) {
  }
  fail(message, Place{});
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigaction(signal, &action, nullptr);
}

}  // namespace

void handle_exits(Control* control, Results* results) {
  current_control.store(control);
  current_results.store(results);
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  handle(SIGTERM, on_terminate);
  handle(SIGPIPE, SIG_IGN);
  handle(SIGXFSZ, SIG_IGN);  // the write then fails with a reason
#ifndef MIXDOWN_SANITIZED  // sanitizers report crashes themselves
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) handle(signal, on_crash);
#endif
  std::set_terminate(on_uncaught);
}

void fail(const std::string& message, const Place& place) {
  Control* control = current_control.load();
  Results* results = current_results.load();
  // A peer that ended breaks our connections: the peer's message is the one to
  // read.
  if (control != nullptr && control->stopping()) leave();
  claim_end();
  if (results != nullptr) results->write_failure(message, place);
  if (control != nullptr) {
    control->set_failed(message.c_str());
    control->request_stop();
  }
  std::fprintf(stderr, "mixdown-worker: %s\n", message.c_str());
  _exit(kFailed);
}

void leave() {
  claim_end();
  if (Control* control = current_control.load()) control->set_left();
  _exit(kStopped);
}

}  // namespace mixdown
