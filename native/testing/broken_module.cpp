// A backend that is wrong on purpose: what the base class composes of Gloo's
// messages, but the last rank of a group finds one wrong element at the end of
// what it receives; after an all_gather one byte too many is written, after an
// all_to_all its input. It shows that the data check sees each of them. Messages
// are right.
#include <algorithm>
#include <numeric>

#include "modules/gloo_backend.h"

namespace mixdown {
namespace {

// Right, and composed of messages alone.
class ComposedCommunicator final : public Communicator {
 public:
  ComposedCommunicator(std::unique_ptr<Communicator> messages, int rank, int size, const Arithmetic& arithmetic)
      : Communicator(rank, size, arithmetic), messages_(std::move(messages)) {}

  void batch(const Transfer* transfers, size_t n, DType dtype) override { messages_->batch(transfers, n, dtype); }

 private:
  std::unique_ptr<Communicator> messages_;
};

class BrokenCommunicator final : public Communicator {
 public:
  BrokenCommunicator(std::unique_ptr<Communicator> messages, int rank, int size, const Arithmetic& arithmetic)
      : Communicator(rank, size, arithmetic), right_(std::move(messages), rank, size, arithmetic) {}

  void batch(const Transfer* transfers, size_t n, DType dtype) override { right_.batch(transfers, n, dtype); }

  void all_reduce(const void* in, void* out, int64_t count, DType dtype, Reduction reduction) override {
    right_.all_reduce(in, out, count, dtype, reduction);
    spoil(out, count, dtype);
  }
  void reduce(const void* in, void* out, int64_t count, DType dtype, Reduction reduction, int root) override {
    right_.reduce(in, out, count, dtype, reduction, root);
    if (rank() == root) spoil(out, count, dtype);
  }
  void broadcast(void* buffer, int64_t count, DType dtype, int root) override {
    right_.broadcast(buffer, count, dtype, root);
    if (rank() != root) spoil(buffer, count, dtype);
  }
  void all_gather(const void* in, void* out, int64_t count, DType dtype) override {
    right_.all_gather(in, out, count, dtype);
    if (last()) flip(out, count * size() * size_of(dtype));
  }
  void all_gatherv(const void* in, void* out, const int64_t* counts, DType dtype) override {
    right_.all_gatherv(in, out, counts, dtype);
    spoil(out, std::accumulate(counts, counts + size(), int64_t{0}), dtype);
  }
  void reduce_scatter(const void* in, void* out, int64_t count, DType dtype, Reduction reduction) override {
    right_.reduce_scatter(in, out, count, dtype, reduction);
    spoil(out, count, dtype);
  }
  void reduce_scatterv(const void* in, void* out, const int64_t* counts, DType dtype, Reduction reduction) override {
    right_.reduce_scatterv(in, out, counts, dtype, reduction);
    spoil(out, counts[rank()], dtype);
  }
  void all_to_all(const void* in, void* out, int64_t count, DType dtype) override {
    right_.all_to_all(in, out, count, dtype);
    if (last() && count > 0) flip(const_cast<void*>(in), size_of(dtype) - 1);
  }
  void all_to_allv(const void* in, const int64_t* in_counts, void* out, const int64_t* out_counts,
                   DType dtype) override {
    right_.all_to_allv(in, in_counts, out, out_counts, dtype);
    spoil(out, std::accumulate(out_counts, out_counts + size(), int64_t{0}), dtype);
  }
  void gather(const void* in, void* out, int64_t count, DType dtype, int root) override {
    right_.gather(in, out, count, dtype, root);
    if (rank() == root) spoil(out, count * size(), dtype);
  }
  void gatherv(const void* in, void* out, const int64_t* counts, DType dtype, int root) override {
    right_.gatherv(in, out, counts, dtype, root);
    if (rank() == root) spoil(out, std::accumulate(counts, counts + size(), int64_t{0}), dtype);
  }
  void scatter(const void* in, void* out, int64_t count, DType dtype, int root) override {
    right_.scatter(in, out, count, dtype, root);
    spoil(out, count, dtype);
  }
  void scatterv(const void* in, void* out, const int64_t* counts, DType dtype, int root) override {
    right_.scatterv(in, out, counts, dtype, root);
    spoil(out, counts[rank()], dtype);
  }
  void barrier() override { right_.barrier(); }

 private:
  bool last() const { return rank() == size() - 1; }

  // The highest but one bit of the last element: no rounding explains it.
  void spoil(void* buffer, int64_t count, DType dtype) const {
    if (last() && count > 0) flip(buffer, count * size_of(dtype) - 1);
  }
  static void flip(void* buffer, int64_t offset) { static_cast<unsigned char*>(buffer)[offset] ^= 0x40; }

  ComposedCommunicator right_;
};

class BrokenBackend final : public Backend {
 public:
  std::string name() const override { return "broken"; }
  std::string version() const override { return right_->version(); }
  std::vector<std::string> notes() const override { return {"corrupts data on purpose"}; }
  std::vector<Support> support() const override { return {}; }
  void init(const World& world) override {
    world_ = world;
    right_->init(world);
  }
  std::unique_ptr<Communicator> group(const std::string& id, const std::vector<int>& members) override {
    const auto self = std::find(members.begin(), members.end(), world_.rank);
    return std::make_unique<BrokenCommunicator>(right_->group(id, members), static_cast<int>(self - members.begin()),
                                                static_cast<int>(members.size()), *world_.arithmetic);
  }
  void finalize() override { right_->finalize(); }

 private:
  std::unique_ptr<Backend> right_{make_gloo_backend()};
  World world_;
};

Backend* create() { return new BrokenBackend; }

}  // namespace
}  // namespace mixdown

extern "C" const mixdown::Module* mixdown_module() {
  static const mixdown::Module module{mixdown::kBackendAbi, "broken", "", false, &mixdown::create};
  return &module;
}
