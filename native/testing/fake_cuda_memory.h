// Memory of the emulated GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace mixdown::fake {

/// What stands for device memory: files that the other ranks' processes can map.
/// Also knows which host memory is pinned.
class Memory {
 public:
  /// 0 when there is no room.
  uintptr_t allocate(size_t bytes);
  bool free(uintptr_t address);
  bool locate(uintptr_t address, size_t bytes, int32_t* number, int64_t* offset) const;
  bool on_device(uintptr_t address, size_t bytes) const { return locate(address, bytes, nullptr, nullptr); }

  bool pin(uintptr_t address, size_t bytes);
  bool unpin(uintptr_t address);
  bool pinned(uintptr_t address, size_t bytes) const;

 private:
  struct Allocation {
    size_t bytes;
    int32_t number;
    std::string path;
  };
  mutable std::mutex mutex_;
  std::map<uintptr_t, Allocation> device_;
  std::map<uintptr_t, size_t> host_;
  int32_t made_ = 0;
};

}  // namespace mixdown::fake
