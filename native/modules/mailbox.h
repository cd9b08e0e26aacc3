// Messages of a rank to itself, for libraries that have no connection to self.
#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "mixdown/backend.h"

namespace mixdown {

/// Pairs sends and receives by their match number, across threads and batches.
class Mailbox {
 public:
  /// Keeps a copy of `bytes` bytes until the receive comes.
  void put(int64_t match, const void* data, size_t bytes) {
    const auto* begin = static_cast<const char*>(data);
    {
      std::lock_guard lock(mutex_);
      messages_[match].emplace_back(begin, begin + bytes);
    }
    arrived_.notify_all();
  }

  /// Waits for the message and copies it out.
  void take(int64_t match, void* data, size_t bytes) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return messages_.count(match) > 0; });
    auto entry = messages_.find(match);
    const std::vector<char> message = std::move(entry->second.front());
    entry->second.pop_front();
    if (entry->second.empty()) messages_.erase(entry);
    if (bytes > 0) std::memcpy(data, message.data(), std::min(bytes, message.size()));
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<int64_t, std::deque<std::vector<char>>> messages_;
};

}  // namespace mixdown
