// The device's streams: for each stream of the plan one for its spans, and one for
// each backend that it uses.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "device/gpu.h"

namespace mixdown {

/// One stream of the device, with what was queued on it in this run.
struct Lane {
  DeviceStream stream;
  std::vector<int> queued;  ///< tasks, in their order
  size_t ended = 0;         ///< of these
  size_t open() const { return queued.size() - ended; }
};

/// All lanes. Those of one plan are those of all.
class Lanes {
 public:
  explicit Lanes(const Gpu& gpu) : gpu_(gpu) {}

  /// The lane of a stream of the plan for a backend, "" for its spans; makes it
  /// when there is none. Room for `tasks` is made.
  int find(int stream, const std::string& backend, size_t tasks) {
    const auto [entry, fresh] = indexes_.try_emplace({stream, backend}, static_cast<int>(all_.size()));
    if (fresh) all_.push_back({DeviceStream(gpu_), {}, 0});
    all_[static_cast<size_t>(entry->second)].queued.reserve(tasks);
    return entry->second;
  }

  Lane& operator[](int index) { return all_[static_cast<size_t>(index)]; }
  const Lane& operator[](int index) const { return all_[static_cast<size_t>(index)]; }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  size_t size() const { return all_.size(); }

 private:
  const Gpu& gpu_;
  std::map<std::pair<int, std::string>, int> indexes_;
  std::vector<Lane> all_;
};

}  // namespace mixdown
