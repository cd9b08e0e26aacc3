#include "modules/gloo_communicator.h"

#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "arith/arith.h"
#include "modules/mailbox.h"

namespace mixdown {
namespace {

// Gloo tells point-to-point messages and the parts of collectives apart by a
// 64-bit slot; its collectives never set the highest bit.
constexpr uint64_t kPointToPoint = uint64_t{1} << 63;

template <typename T>
T* mutable_of(const void* p) {
  return const_cast<T*>(static_cast<const T*>(p));
}

// Gloo's options only want the size of the element type: calls f with a pointer
// to a type of that size.
template <typename F>
void with_element(DType dtype, F f) {
  switch (size_of(dtype)) {
    case 8:
      return f(static_cast<uint64_t*>(nullptr));
    case 4:
      return f(static_cast<uint32_t*>(nullptr));
    case 2:
      return f(static_cast<uint16_t*>(nullptr));
    default:
      return f(static_cast<uint8_t*>(nullptr));
  }
}

class GlooCommunicator final : public Communicator {
 public:
  explicit GlooCommunicator(std::shared_ptr<gloo::Context> context)
      : context_(std::move(context)), rank_(context_->rank), size_(context_->size), counts_(size_) {}

  ~GlooCommunicator() override { context_->closeConnections(); }

  void reserve(int64_t bytes) override {
    if (static_cast<int64_t>(scratch_.size()) < bytes) scratch_.resize(bytes);
  }

  void all_reduce(const void* in, void* out, int64_t count, DType dtype, ReduceOp op) override {
    if (count == 0) return;
    if (size_ == 1) return copy(in, out, count, dtype);
    with_element(dtype, [&]<typename T>(T*) {
      gloo::AllreduceOptions options(context_);
      options.setInput(mutable_of<T>(in), count);
      options.setOutput(static_cast<T*>(out), count);
      options.setReduceFunction(function(dtype, op));
      options.setTag(next_tag());
      gloo::allreduce(options);
    });
    if (op == ReduceOp::kAvg) divide(dtype, out, count, size_);
  }

  void reduce(const void* in, void* out, int64_t count, DType dtype, ReduceOp op, int root) override {
    if (count == 0) return;
    if (size_ == 1) return copy(in, out, count, dtype);
    // The ring passes through every member's output.
    if (rank_ != root) out = scratch(count * size_of(dtype));
    with_element(dtype, [&]<typename T>(T*) {
      gloo::ReduceOptions options(context_);
      options.setInput(mutable_of<T>(in), count);
      options.setOutput(static_cast<T*>(out), count);
      options.setRoot(root);
      options.setReduceFunction(function(dtype, op));
      options.setTag(next_tag());
      gloo::reduce(options);
    });
    if (op == ReduceOp::kAvg && rank_ == root) divide(dtype, out, count, size_);
  }

  void broadcast(void* buffer, int64_t count, DType dtype, int root) override {
    if (count == 0 || size_ == 1) return;
    with_element(dtype, [&]<typename T>(T*) {
      gloo::BroadcastOptions options(context_);
      options.setOutput(static_cast<T*>(buffer), count);
      options.setRoot(root);
      options.setTag(next_tag());
      gloo::broadcast(options);
    });
  }

  void all_gather(const void* in, void* out, int64_t count, DType dtype) override {
    if (count == 0) return;
    if (size_ == 1) return copy(in, out, count, dtype);
    with_element(dtype, [&]<typename T>(T*) {
      gloo::AllgatherOptions options(context_);
      options.setInput(mutable_of<T>(in), count);
      options.setOutput(static_cast<T*>(out), count * size_);
      options.setTag(next_tag());
      gloo::allgather(options);
    });
  }

  void all_gatherv(const void* in, void* out, const int64_t* counts, DType dtype) override {
    if (std::all_of(counts, counts + size_, [](int64_t n) { return n == 0; })) return;
    if (size_ == 1) return copy(in, out, counts[0], dtype);
    with_element(dtype, [&]<typename T>(T*) {
      gloo::AllgathervOptions options(context_);
      options.setInput(mutable_of<T>(in), counts[rank_]);
      options.setOutput(static_cast<T*>(out), std::vector<size_t>(counts, counts + size_));
      options.setTag(next_tag());
      gloo::allgatherv(options);
    });
  }

  void reduce_scatter(const void* in, void* out, int64_t count, DType dtype, ReduceOp op) override {
    if (count == 0) return;
    if (size_ == 1) return copy(in, out, count, dtype);
    char* blocks = scratch(count * size_of(dtype) * size_);
    all_to_all(in, blocks, count, dtype);
    fold(blocks, out, count, dtype, op);
  }

  void reduce_scatterv(const void* in, void* out, const int64_t* counts, DType dtype, ReduceOp op) override {
    if (size_ == 1) return copy(in, out, counts[0], dtype);
    const int64_t count = counts[rank_];
    char* blocks = scratch(count * size_of(dtype) * size_);
    std::fill(counts_.begin(), counts_.end(), count);
    all_to_allv(in, counts, blocks, counts_.data(), dtype);
    if (count > 0) fold(blocks, out, count, dtype, op);
  }

  void all_to_all(const void* in, void* out, int64_t count, DType dtype) override {
    if (count == 0) return;
    if (size_ == 1) return copy(in, out, count, dtype);
    with_element(dtype, [&]<typename T>(T*) {
      gloo::AlltoallOptions options(context_);
      options.setInput(mutable_of<T>(in), count * size_);
      options.setOutput(static_cast<T*>(out), count * size_);
      options.setTag(next_tag());
      gloo::alltoall(options);
    });
  }

  void all_to_allv(const void* in, const int64_t* in_counts, void* out, const int64_t* out_counts,
                   DType dtype) override {
    if (size_ == 1) return copy(in, out, in_counts[0], dtype);
    with_element(dtype, [&]<typename T>(T*) {
      gloo::AlltoallvOptions options(context_);
      options.setInput(mutable_of<T>(in), std::vector<int64_t>(in_counts, in_counts + size_));
      options.setOutput(static_cast<T*>(out), std::vector<int64_t>(out_counts, out_counts + size_));
      options.setTag(next_tag());
      gloo::alltoallv(options);
    });
  }

  void gather(const void* in, void* out, int64_t count, DType dtype, int root) override {
    if (count == 0) return;
    if (size_ == 1) return copy(in, out, count, dtype);
    with_element(dtype, [&]<typename T>(T*) {
      gloo::GatherOptions options(context_);
      options.setInput(mutable_of<T>(in), count);
      if (rank_ == root) options.setOutput(static_cast<T*>(out), count * size_);
      options.setRoot(root);
      options.setTag(next_tag());
      gloo::gather(options);
    });
  }

  void scatter(const void* in, void* out, int64_t count, DType dtype, int root) override {
    if (count == 0) return;
    if (size_ == 1) return copy(in, out, count, dtype);
    with_element(dtype, [&]<typename T>(T*) {
      gloo::ScatterOptions options(context_);
      if (rank_ == root) {
        std::vector<T*> blocks(size_);
        for (int m = 0; m < size_; ++m) blocks[m] = mutable_of<T>(in) + m * count;
        options.setInputs(blocks, count);
      }
      options.setOutput(static_cast<T*>(out), count);
      options.setRoot(root);
      options.setTag(next_tag());
      gloo::scatter(options);
    });
  }

  void barrier() override {
    if (size_ == 1) return;
    gloo::BarrierOptions options(context_);
    options.setTag(next_tag());
    gloo::barrier(options);
  }

  void batch(const Transfer* transfers, size_t n, DType dtype) override {
    const size_t element = size_of(dtype);
    std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> buffers(n);
    // Receives first: what arrives then goes straight to its place.
    for (const bool sends : {false, true}) {
      for (size_t i = 0; i < n; ++i) {
        const Transfer& t = transfers[i];
        if (t.send != sends || t.peer == rank_) continue;
        buffers[i] = context_->createUnboundBuffer(t.buffer, t.count * element);
        const uint64_t slot = kPointToPoint | static_cast<uint64_t>(t.match);
        if (t.send) {
          buffers[i]->send(t.peer, slot);
        } else {
          buffers[i]->recv(t.peer, slot);
        }
      }
    }
    for (size_t i = 0; i < n; ++i) {
      const Transfer& t = transfers[i];
      if (t.peer == rank_ && t.send) self_.put(t.match, t.buffer, t.count * element);
    }
    for (size_t i = 0; i < n; ++i) {
      const Transfer& t = transfers[i];
      if (t.peer == rank_) {
        if (!t.send) self_.take(t.match, t.buffer, t.count * element);
      } else if (t.send) {
        buffers[i]->waitSend();
      } else {
        buffers[i]->waitRecv();
      }
    }
  }

 private:
  static void copy(const void* in, void* out, int64_t count, DType dtype) {
    if (count > 0) std::memcpy(out, in, count * size_of(dtype));
  }

  static gloo::AllreduceOptions::Func function(DType dtype, ReduceOp op) {
    return [dtype, op](void* out, const void* a, const void* b, size_t n) { combine(dtype, op, out, a, b, n); };
  }

  // Reduces the blocks that the members sent, in group order.
  void fold(const char* blocks, void* out, int64_t count, DType dtype, ReduceOp op) const {
    const int64_t bytes = count * size_of(dtype);
    combine(dtype, op, out, blocks, blocks + bytes, count);
    for (int m = 2; m < size_; ++m) combine(dtype, op, out, out, blocks + m * bytes, count);
    if (op == ReduceOp::kAvg) divide(dtype, out, count, size_);
  }

  char* scratch(int64_t bytes) {
    reserve(bytes);
    return scratch_.data();
  }

  uint32_t next_tag() { return tag_++; }

  std::shared_ptr<gloo::Context> context_;
  const int rank_;
  const int size_;
  uint32_t tag_ = 0;
  std::vector<int64_t> counts_;
  std::vector<char> scratch_;
  Mailbox self_;
};

}  // namespace

std::unique_ptr<Communicator> make_gloo_communicator(std::shared_ptr<gloo::Context> context) {
  return std::make_unique<GlooCommunicator>(std::move(context));
}

}  // namespace mixdown
