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

#include "modules/gloo_prepared.h"
#include "modules/mailbox.h"

namespace mixdown {
namespace {

// Gloo tells point-to-point messages and the parts of collectives apart by a
// 64-bit slot; its collectives never set the highest bit.
constexpr uint64_t kPointToPoint = uint64_t{1} << 63;

// What a kept object is for: the first word of its key.
enum Kind : int64_t {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kAllGatherv,
  kAllToAll,
  kAllToAllv,
  kGather,
  kScatter,
  kTransfer,
};

int64_t word(const void* p) { return reinterpret_cast<int64_t>(p); }

int64_t word(ReduceOp op) { return static_cast<int64_t>(op); }

int64_t word(DType dtype) { return static_cast<int64_t>(dtype); }

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
  GlooCommunicator(std::shared_ptr<gloo::Context> context, const Arithmetic& arithmetic)
      : Communicator(context->rank, context->size, arithmetic), context_(std::move(context)) {}

  ~GlooCommunicator() override {
    prepared_.clear();
    context_->closeConnections();
  }

  void all_reduce(const void* in, void* out, int64_t count, DType dtype, Reduction reduction) override {
    if (count == 0) return;
    if (reduction.op == ReduceOp::kPremulSum) {
      arithmetic().scale(dtype, out, in, count, reduction.factor);
      in = out;
    }
    if (size() == 1) return copy(in, out, count, dtype);
    with_element(dtype, [&]<typename T>(T*) {
      const Prepared::Key key = {kAllReduce, word(in), word(out), count, word(dtype), word(reduction.op)};
      const auto options = prepared_.get(key, [&] {
        auto options = std::make_shared<gloo::AllreduceOptions>(context_);
        // Without an input Gloo reduces the output in place.
        if (in != out) options->setInput(mutable_of<T>(in), count);
        options->setOutput(static_cast<T*>(out), count);
        options->setReduceFunction(function(dtype, reduction.op));
        return options;
      });
      options->setTag(next_tag());
      gloo::allreduce(*options);
    });
    if (reduction.op == ReduceOp::kAvg) arithmetic().divide(dtype, out, count, size());
  }

  void reduce(const void* in, void* out, int64_t count, DType dtype, Reduction reduction, int root) override {
    if (count == 0) return;
    // The ring passes through every member's output.
    if (rank() != root) out = scratch(count * size_of(dtype));
    if (reduction.op == ReduceOp::kPremulSum) {
      arithmetic().scale(dtype, out, in, count, reduction.factor);
      in = out;
    }
    if (size() == 1) return copy(in, out, count, dtype);
    with_element(dtype, [&]<typename T>(T*) {
      const Prepared::Key key = {kReduce, word(in), word(out), count, word(dtype), word(reduction.op), root};
      const auto options = prepared_.get(key, [&] {
        auto options = std::make_shared<gloo::ReduceOptions>(context_);
        if (in != out) options->setInput(mutable_of<T>(in), count);
        options->setOutput(static_cast<T*>(out), count);
        options->setRoot(root);
        options->setReduceFunction(function(dtype, reduction.op));
        return options;
      });
      options->setTag(next_tag());
      gloo::reduce(*options);
    });
    if (reduction.op == ReduceOp::kAvg && rank() == root) arithmetic().divide(dtype, out, count, size());
  }

  void broadcast(void* buffer, int64_t count, DType dtype, int root) override {
    if (count == 0 || size() == 1) return;
    with_element(dtype, [&]<typename T>(T*) {
      const auto options = prepared_.get({kBroadcast, word(buffer), count, word(dtype), root}, [&] {
        auto options = std::make_shared<gloo::BroadcastOptions>(context_);
        options->setOutput(static_cast<T*>(buffer), count);
        options->setRoot(root);
        return options;
      });
      options->setTag(next_tag());
      gloo::broadcast(*options);
    });
  }

  void all_gather(const void* in, void* out, int64_t count, DType dtype) override {
    if (count == 0) return;
    if (size() == 1) return copy(in, out, count, dtype);
    with_element(dtype, [&]<typename T>(T*) {
      const auto options = prepared_.get({kAllGather, word(in), word(out), count, word(dtype)}, [&] {
        auto options = std::make_shared<gloo::AllgatherOptions>(context_);
        // Without an input Gloo takes this rank's block of the output.
        if (in != static_cast<T*>(out) + rank() * count) options->setInput(mutable_of<T>(in), count);
        options->setOutput(static_cast<T*>(out), count * size());
        return options;
      });
      options->setTag(next_tag());
      gloo::allgather(*options);
    });
  }

  void all_gatherv(const void* in, void* out, const int64_t* counts, DType dtype) override {
    if (std::all_of(counts, counts + size(), [](int64_t n) { return n == 0; })) return;
    if (size() == 1) return copy(in, out, counts[0], dtype);
    with_element(dtype, [&]<typename T>(T*) {
      const auto options = prepared_.get(with_counts({kAllGatherv, word(in), word(out), word(dtype)}, counts), [&] {
        auto options = std::make_shared<gloo::AllgathervOptions>(context_);
        const int64_t before = std::accumulate(counts, counts + rank(), int64_t{0});
        if (in != static_cast<T*>(out) + before) options->setInput(mutable_of<T>(in), counts[rank()]);
        options->setOutput(static_cast<T*>(out), std::vector<size_t>(counts, counts + size()));
        return options;
      });
      options->setTag(next_tag());
      gloo::allgatherv(*options);
    });
  }

  void all_to_all(const void* in, void* out, int64_t count, DType dtype) override {
    if (count == 0) return;
    if (size() == 1) return copy(in, out, count, dtype);
    if (in == out) in = aside(in, count * size(), dtype);
    with_element(dtype, [&]<typename T>(T*) {
      const auto options = prepared_.get({kAllToAll, word(in), word(out), count, word(dtype)}, [&] {
        auto options = std::make_shared<gloo::AlltoallOptions>(context_);
        options->setInput(mutable_of<T>(in), count * size());
        options->setOutput(static_cast<T*>(out), count * size());
        return options;
      });
      options->setTag(next_tag());
      gloo::alltoall(*options);
    });
  }

  void all_to_allv(const void* in, const int64_t* in_counts, void* out, const int64_t* out_counts,
                   DType dtype) override {
    if (size() == 1) return copy(in, out, in_counts[0], dtype);
    if (in == out) in = aside(in, std::accumulate(in_counts, in_counts + size(), int64_t{0}), dtype);
    with_element(dtype, [&]<typename T>(T*) {
      const Prepared::Key inputs = with_counts({kAllToAllv, word(in), word(out), word(dtype)}, in_counts);
      const auto options = prepared_.get(with_counts(inputs, out_counts), [&] {
        auto options = std::make_shared<gloo::AlltoallvOptions>(context_);
        options->setInput(mutable_of<T>(in), std::vector<int64_t>(in_counts, in_counts + size()));
        options->setOutput(static_cast<T*>(out), std::vector<int64_t>(out_counts, out_counts + size()));
        return options;
      });
      options->setTag(next_tag());
      gloo::alltoallv(*options);
    });
  }

  void gather(const void* in, void* out, int64_t count, DType dtype, int root) override {
    if (count == 0) return;
    if (size() == 1) return copy(in, out, count, dtype);
    // In place Gloo's own copy to the root's block would be of a block onto itself.
    const char* block = static_cast<char*>(out) + rank() * count * size_of(dtype);
    if (rank() == root && in == block) in = aside(in, count, dtype);
    with_element(dtype, [&]<typename T>(T*) {
      const auto options = prepared_.get({kGather, word(in), word(out), count, word(dtype), root}, [&] {
        auto options = std::make_shared<gloo::GatherOptions>(context_);
        options->setInput(mutable_of<T>(in), count);
        if (rank() == root) options->setOutput(static_cast<T*>(out), count * size());
        options->setRoot(root);
        return options;
      });
      options->setTag(next_tag());
      gloo::gather(*options);
    });
  }

  void scatter(const void* in, void* out, int64_t count, DType dtype, int root) override {
    if (count == 0) return;
    if (size() == 1) return copy(in, out, count, dtype);
    char* block = rank() == root ? mutable_of<char>(in) + rank() * count * size_of(dtype) : nullptr;
    void* received = out == block ? scratch(count * size_of(dtype)) : out;
    with_element(dtype, [&]<typename T>(T*) {
      const auto options = prepared_.get({kScatter, word(in), word(received), count, word(dtype), root}, [&] {
        auto options = std::make_shared<gloo::ScatterOptions>(context_);
        if (rank() == root) {
          std::vector<T*> blocks(size());
          for (int m = 0; m < size(); ++m) blocks[m] = mutable_of<T>(in) + m * count;
          options->setInputs(blocks, count);
        }
        options->setOutput(static_cast<T*>(received), count);
        options->setRoot(root);
        return options;
      });
      options->setTag(next_tag());
      gloo::scatter(*options);
    });
  }

  void barrier() override {
    if (size() == 1) return;
    gloo::BarrierOptions options(context_);
    options.setTag(next_tag());
    gloo::barrier(options);
  }

  void batch(const Transfer* transfers, size_t n, DType dtype) override {
    const size_t element = size_of(dtype);
    std::vector<std::shared_ptr<gloo::transport::UnboundBuffer>> buffers(n);
    // Receives first: what arrives then goes straight to its place.
    for (const bool sends : {false, true}) {
      for (size_t i = 0; i < n; ++i) {
        const Transfer& t = transfers[i];
        if (t.send != sends || t.peer == rank()) continue;
        const auto bytes = static_cast<size_t>(t.count) * element;
        const Prepared::Key key = {kTransfer, word(t.buffer), t.count, word(dtype), static_cast<int64_t>(i)};
        buffers[i] = prepared_.get(key, [&] {
          return std::shared_ptr<gloo::transport::UnboundBuffer>(context_->createUnboundBuffer(t.buffer, bytes));
        });
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
      if (t.peer == rank() && t.send) self_.put(t.match, t.buffer, t.count * element);
    }
    for (size_t i = 0; i < n; ++i) {
      const Transfer& t = transfers[i];
      if (t.peer == rank()) {
        if (!t.send) self_.take(t.match, t.buffer, t.count * element);
      } else if (t.send) {
        buffers[i]->waitSend();
      } else {
        buffers[i]->waitRecv();
      }
    }
  }

 private:
  gloo::AllreduceOptions::Func function(DType dtype, ReduceOp op) const {
    const auto combine = arithmetic().combine;
    return [=](void* out, const void* a, const void* b, size_t n) {
      combine(dtype, op, out, a, b, static_cast<int64_t>(n));
    };
  }

  Prepared::Key with_counts(Prepared::Key key, const int64_t* counts) const {
    key.insert(key.end(), counts, counts + size());
    return key;
  }

  // A copy of an input that the operation would overwrite.
  const void* aside(const void* in, int64_t count, DType dtype) {
    char* input = scratch(count * size_of(dtype));
    copy(in, input, count, dtype);
    return input;
  }

  uint32_t next_tag() { return tag_++; }

  std::shared_ptr<gloo::Context> context_;
  uint32_t tag_ = 0;
  Prepared prepared_;
  Mailbox self_;
};

}  // namespace

std::unique_ptr<Communicator> make_gloo_communicator(std::shared_ptr<gloo::Context> context,
                                                     const Arithmetic& arithmetic) {
  return std::make_unique<GlooCommunicator>(std::move(context), arithmetic);
}

}  // namespace mixdown
