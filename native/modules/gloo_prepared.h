// What Gloo needs for an operation, made once and kept for when it comes again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace mixdown {

/// Options and buffers of operations, by what the operations are. Gloo's buffers wait,
/// in their destructor, until the transport's thread has let go of them: it yields, and
/// Linux then takes a time slice for each yield. Made anew for each operation, as PyTorch
/// does, that costs 60 to 100 us where ranks share cores.
class Prepared {
 public:
  /// Everything that an operation's options and buffers are made from.
  using Key = std::vector<int64_t>;

  /// What `make` returned, as a std::shared_ptr, when the key first came. One key stands
  /// for one type. May be called by several threads; what it returns is for one at a time.
  template <typename Make>
  auto get(const Key& key, const Make& make) -> decltype(make()) {
    using T = typename decltype(make())::element_type;
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(key);
    if (entry != entries_.end()) return std::static_pointer_cast<T>(entry->second);
    const auto made = make();
    // Plans whose operations never repeat would fill the memory.
    if (entries_.size() < kMost) entries_.emplace(key, made);
    return made;
  }

  void clear() { entries_.clear(); }

 private:
  static constexpr size_t kMost = 4096;

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<void>> entries_;
};

}  // namespace mixdown
