// UCX's end of this process: its memory, its connections, and the waiting.
#pragma once

#include <ucp/api/ucp.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "mixdown/backend.h"
#include "modules/ucx_settings.h"

namespace mixdown {

/// One UCP context with one UCP worker, which all communicators of an instance of the
/// backend share.
///
/// Who waits for a message drives the library, by polling; one thread at a time.
/// Polling gives up the processor when there was nothing to do and this host has more
/// ranks than cores, or when there has been nothing to do for long.
///
/// UCX ends a send when the buffer is free again, and a receive when the data is there.
/// What it still has to tell the other side then (a full queue, a socket that takes no
/// more) would stay with this process until its next message, which may never come. A
/// thread of its own sees to that; it sleeps while there is nothing of the kind.
class UcxWorker {
 public:
  UcxWorker(const UcxSettings& settings, const World& world);
  /// Closes the connections. Only when nothing is under way on any rank.
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  /// How others reach this process, in bytes that are for UCX alone.
  const std::string& address() const { return address_; }

  /// The connection to the worker at a position in the job; made the first time that it
  /// is asked for.
  ucp_ep_h endpoint(int position, const std::string& address);

  struct Message {
    bool send;
    ucp_ep_h peer;
    void* buffer;
    size_t bytes;
    ucp_tag_t tag;
  };

  /// Starts all of them together, receives first, and returns when all have ended. May
  /// be called by several threads.
  void exchange(const std::vector<Message>& messages);

  /// The value of UCX_TLS for an instance with these settings: theirs, the
  /// environment's, or, of workers that are all on this host and are not told to use an
  /// interface, memory alone. "" leaves it to UCX.
  static std::string transports(const UcxSettings& settings, const std::string& interface);

 private:
  void flush(const std::vector<Message>& messages);
  void settle();
  void tend();

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::string address_;
  std::map<int, ucp_ep_h> endpoints_;
  const bool crowded_;  // more ranks than cores

  std::mutex mutex_;  // around every call of UCX on the worker
  std::vector<void*> leftovers_;
  std::string error_;  // of one of them
  std::condition_variable changed_;
  bool quit_ = false;
  std::thread tender_;
};

}  // namespace mixdown
