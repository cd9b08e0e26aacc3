#include "testing/fake_cuda_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace mixdown::fake {
namespace {

constexpr uintptr_t kPage = 4096;

// The entry that holds [address, address + bytes), end() when none does.
template <typename Map, typename SizeOf>
auto holding(const Map& map, uintptr_t address, size_t bytes, SizeOf size_of) {
  auto entry = map.upper_bound(address);
  if (entry == map.begin()) return map.end();
  --entry;
  return address + bytes <= entry->first + size_of(entry->second) ? entry : map.end();
}

}  // namespace

uintptr_t Memory::allocate(size_t bytes) {
  std::lock_guard lock(mutex_);
  const int32_t number = made_++;
  const std::string path = std::string(std::getenv("MIXDOWN_FAKE_GPU")) + "/mem." + std::to_string(getpid()) + "." +
                           std::to_string(number);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return 0;
  void* memory = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  if (memory == MAP_FAILED) return 0;
  const auto address = reinterpret_cast<uintptr_t>(memory);
  device_[address] = {bytes, number, path};
  return address;
}

bool Memory::free(uintptr_t address) {
  std::lock_guard lock(mutex_);
  const auto entry = device_.find(address);
  if (entry == device_.end()) return false;
  munmap(reinterpret_cast<void*>(address), entry->second.bytes);
  unlink(entry->second.path.c_str());
  device_.erase(entry);
  return true;
}

bool Memory::locate(uintptr_t address, size_t bytes, int32_t* number, int64_t* offset) const {
  std::lock_guard lock(mutex_);
  const auto entry = holding(device_, address, bytes, [](const Allocation& a) { return a.bytes; });
  if (entry == device_.end()) return false;
  if (number != nullptr) *number = entry->second.number;
  if (offset != nullptr) *offset = static_cast<int64_t>(address - entry->first);
  return true;
}

bool Memory::pin(uintptr_t address, size_t bytes) {
  std::lock_guard lock(mutex_);
  // As the driver, a page at a time, each once.
  const uintptr_t first = address / kPage;
  const uintptr_t last = (address + bytes - 1) / kPage;
  for (const auto& [other, size] : host_) {
    if (first <= (other + size - 1) / kPage && other / kPage <= last) return false;
  }
  return host_.emplace(address, bytes).second;
}

bool Memory::unpin(uintptr_t address) {
  std::lock_guard lock(mutex_);
  return host_.erase(address) == 1;
}

bool Memory::pinned(uintptr_t address, size_t bytes) const {
  std::lock_guard lock(mutex_);
  return holding(host_, address, bytes, [](size_t size) { return size; }) != host_.end();
}

}  // namespace mixdown::fake
