// Memory that communications read and write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mixdown {

/// Bytes kept before and after an output buffer, to see what must not be written.
inline constexpr int64_t kGuard = 64;

/// Zeroed memory, 64-byte aligned, with kGuard bytes of its own before and after, on
/// pages that it shares with nothing.
class Buffer {
 public:
  explicit Buffer(int64_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer& operator=(Buffer&&) = delete;

  char* data() const { return memory_ + kGuard; }
  int64_t size() const { return bytes_; }
  void clear();

 private:
  int64_t bytes_;
  char* memory_;
};

/// What a stream's communications share: they run one after the other.
struct StreamBuffers {
  Buffer in;
  Buffer out;
  Buffer work;  ///< of codecs
};

/// Largest input, output and work space, in bytes, of each stream over all plans.
struct BufferSizes {
  std::vector<int64_t> in;
  std::vector<int64_t> out;
  std::vector<int64_t> work;
  void need(size_t stream, int64_t in_bytes, int64_t out_bytes, int64_t work_bytes);
  int64_t total() const;
};

/// Allocates and touches the buffers. Throws std::runtime_error when the machine
/// has not that much memory; `workers_total` is what all workers of this machine
/// need together.
std::vector<StreamBuffers> allocate(const BufferSizes& sizes, int64_t workers_total);

}  // namespace mixdown
