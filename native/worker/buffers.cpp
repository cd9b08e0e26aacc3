#include "worker/buffers.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace mixdown {
namespace {

constexpr size_t kPage = 4096;

}  // namespace

Buffer::Buffer(int64_t bytes) : bytes_(bytes) {
  // Whole pages: a page can be pinned once only.
  const size_t whole = (static_cast<size_t>(bytes) + 2 * kGuard + kPage - 1) / kPage * kPage;
  memory_ = static_cast<char*>(std::aligned_alloc(kPage, whole));
  if (memory_ == nullptr) throw std::runtime_error("no memory for a buffer of " + std::to_string(bytes) + " bytes");
  std::memset(memory_, 0, whole);
}

Buffer::~Buffer() { std::free(memory_); }

Buffer::Buffer(Buffer&& other) noexcept : bytes_(other.bytes_), memory_(std::exchange(other.memory_, nullptr)) {}

void Buffer::clear() { std::memset(memory_, 0, bytes_ + 2 * kGuard); }

void BufferSizes::need(size_t stream, int64_t in_bytes, int64_t out_bytes, int64_t work_bytes) {
  if (in.size() <= stream) {
    in.resize(stream + 1);
    out.resize(stream + 1);
    work.resize(stream + 1);
  }
  in[stream] = std::max(in[stream], in_bytes);
  out[stream] = std::max(out[stream], out_bytes);
  work[stream] = std::max(work[stream], work_bytes);
}

int64_t BufferSizes::total() const {
  // Counts and streams are bounded by validation, their product is not.
  double sum = 0;
  for (const auto* sizes : {&in, &out, &work}) {
    for (const int64_t bytes : *sizes) sum += static_cast<double>(bytes);
  }
  return sum < 9e18 ? static_cast<int64_t>(sum) : INT64_MAX;
}

std::vector<StreamBuffers> allocate(const BufferSizes& sizes, int64_t workers_total) {
  const int64_t memory = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  if (workers_total > memory / 10 * 8) {
    throw std::runtime_error("the workers need " + std::to_string(workers_total >> 20) + " MiB for their buffers, this machine has " +
                             std::to_string(memory >> 20) + "; replay fewer ranks or scale the sizes down");
  }
  std::vector<StreamBuffers> buffers;
  buffers.reserve(sizes.in.size());
  for (size_t s = 0; s < sizes.in.size(); ++s) {
    buffers.push_back({Buffer(sizes.in[s]), Buffer(sizes.out[s]), Buffer(sizes.work[s])});
  }
  return buffers;
}

}  // namespace mixdown
