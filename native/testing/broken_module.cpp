// A backend that is wrong on purpose: Gloo, but the last rank of a group finds
// one wrong element after every all_reduce, and one element too many written
// after every all_gather. It shows that the data check sees both.
#include <cstring>

#include "modules/gloo_backend.h"

namespace mixdown {
namespace {

class BrokenCommunicator final : public Communicator {
 public:
  BrokenCommunicator(std::unique_ptr<Communicator> right, bool last, int size)
      : right_(std::move(right)), last_(last), size_(size) {}

  void reserve(int64_t bytes) override { right_->reserve(bytes); }

  void all_reduce(const void* in, void* out, int64_t count, DType dtype, ReduceOp op) override {
    right_->all_reduce(in, out, count, dtype, op);
    if (last_ && count > 0) flip(out, (count - 1) * size_of(dtype));
  }
  void reduce(const void* in, void* out, int64_t count, DType dtype, ReduceOp op, int root) override {
    right_->reduce(in, out, count, dtype, op, root);
  }
  void broadcast(void* buffer, int64_t count, DType dtype, int root) override {
    right_->broadcast(buffer, count, dtype, root);
  }
  void all_gather(const void* in, void* out, int64_t count, DType dtype) override {
    right_->all_gather(in, out, count, dtype);
    if (last_) flip(out, count * size_ * size_of(dtype));
  }
  void all_gatherv(const void* in, void* out, const int64_t* counts, DType dtype) override {
    right_->all_gatherv(in, out, counts, dtype);
  }
  void reduce_scatter(const void* in, void* out, int64_t count, DType dtype, ReduceOp op) override {
    right_->reduce_scatter(in, out, count, dtype, op);
  }
  void reduce_scatterv(const void* in, void* out, const int64_t* counts, DType dtype, ReduceOp op) override {
    right_->reduce_scatterv(in, out, counts, dtype, op);
  }
  void all_to_all(const void* in, void* out, int64_t count, DType dtype) override {
    right_->all_to_all(in, out, count, dtype);
  }
  void all_to_allv(const void* in, const int64_t* in_counts, void* out, const int64_t* out_counts,
                   DType dtype) override {
    right_->all_to_allv(in, in_counts, out, out_counts, dtype);
  }
  void gather(const void* in, void* out, int64_t count, DType dtype, int root) override {
    right_->gather(in, out, count, dtype, root);
  }
  void scatter(const void* in, void* out, int64_t count, DType dtype, int root) override {
    right_->scatter(in, out, count, dtype, root);
  }
  void barrier() override { right_->barrier(); }
  void batch(const Transfer* transfers, size_t n, DType dtype) override { right_->batch(transfers, n, dtype); }

 private:
  static void flip(void* buffer, int64_t offset) { static_cast<unsigned char*>(buffer)[offset] ^= 1; }

  std::unique_ptr<Communicator> right_;
  bool last_;
  int size_;
};

class BrokenBackend final : public Backend {
 public:
  std::string name() const override { return "broken"; }
  std::string version() const override { return right_->version(); }
  std::vector<std::string> notes() const override { return {"corrupts data on purpose"}; }
  void init(const World& world) override {
    rank_ = world.rank;
    right_->init(world);
  }
  std::unique_ptr<Communicator> group(const std::string& id, const std::vector<int>& members) override {
    return std::make_unique<BrokenCommunicator>(right_->group(id, members), members.back() == rank_,
                                                static_cast<int>(members.size()));
  }
  void finalize() override { right_->finalize(); }

 private:
  std::unique_ptr<Backend> right_{make_gloo_backend()};
  int rank_ = 0;
};

Backend* create() { return new BrokenBackend; }

}  // namespace
}  // namespace mixdown

extern "C" const mixdown::Module* mixdown_module() {
  static const mixdown::Module module{mixdown::kBackendAbi, "broken", "", false, &mixdown::create};
  return &module;
}
