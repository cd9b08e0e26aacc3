// An operation whose payload is compressed on its way.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "codec/codec.h"
#include "mixdown/backend.h"
#include "plan.pb.h"

namespace mixdown {

namespace pb = ::mixdown::plan::v1;

struct Operation;

/// What a codec is called in messages: "zfp:rate=8".
std::string name_of(const pb::Compression& compression);

/// Bits of a compressed element, blocks' headers aside; 0 for a codec that is not
/// known or a rate that it can't have.
double bits_of(const pb::Compression& compression);

/// Carries out one operation on compressed data: compresses what this rank sends,
/// has the library move that as bytes, decompresses what came. bfloat16 the library
/// moves and reduces as such.
///
/// Reductions of what a library can't reduce are done here: every member gets, by
/// an all_to_all(v), its part of all inputs, adds those up in float32 (float64 where
/// the operation has it), and of all_reduce and reduce the sums are compressed again
/// and gathered. That is as many bytes as a ring moves. All members decompress the
/// same sums, so that they end with the same numbers.
///
/// What a rank sends to itself is not compressed, but where others get the same.
class Compressed {
 public:
  /// `operation` is compiled, but for its transfers' buffers; `position` is this
  /// rank's in its group of `size`. Throws std::runtime_error where the codec is
  /// not to be had.
  Compressed(const pb::Compression& compression, const Operation& operation, int position, int size);
  ~Compressed();

  /// Bytes of work space that it needs, and where they are: a multiple of 64.
  int64_t work() const { return work_bytes_; }
  void bind(char* work) { work_ = work; }

  /// The largest input or output, in bytes, of a collective that it makes.
  int64_t largest() const { return largest_; }

  /// Runs it; `in` and `out` are the operation's own data. One at a time.
  void execute(const Operation& operation, Communicator& communicator, char* in, char* out);

  /// Time of the last run that was not the library's: compressing, decompressing,
  /// and the arithmetic between.
  int64_t codec_ns() const { return codec_ns_; }

  /// What this rank compresses in a run, and what becomes of it.
  int64_t bytes() const { return bytes_; }
  int64_t compressed_bytes() const { return compressed_bytes_; }

  /// How far results may be off, as a share of the sum of the magnitudes that went
  /// into them: in the square mean, and each; where `near` is set, each as a share of
  /// the largest such sum. More is a fault.
  double bound() const { return bound_; }
  bool near() const { return !codec_->of_itself(); }

 private:
  // Elements that are compressed together. Blocks lie one after the other.
  struct Block {
    int64_t count;
    int64_t raw;    // offset of the elements in the operation's data, bytes
    int64_t at;     // offset of the compressed ones
    int64_t bytes;  // of the compressed ones
  };
  using Blocks = std::vector<Block>;

  Blocks lay(const std::vector<int64_t>& counts) const;
  void plan_cast(const Operation& o);
  void plan_transfers(const Operation& o);
  void plan_reduction(const Operation& o);
  void plan_moves(const Operation& o);
  void reserve(int64_t sent, int64_t received, int64_t own, int64_t longest);
  void count_sent(const Block& block);

  void cast(const Operation& o, Communicator& c, const char* in, char* out);
  void transfer(const Operation& o, Communicator& c);
  void reduce(const Operation& o, Communicator& c, const char* in, char* out);
  void move(const Operation& o, Communicator& c, const char* in, char* out);
  void exchange(Communicator& c);
  void gather_all(Communicator& c);
  void gather(Communicator& c, int root);

  void encode(const char* raw, const Block& block, char* base);
  void decode(const char* base, const Block& block, char* raw);
  void add_up(const Operation& o, const char* in);
  void encode_sums();

  std::unique_ptr<Codec> codec_;
  bool native_ = false;  // libraries know the compressed type
  DType dtype_;
  DType wide_;  // in which it is reduced
  int position_;
  int size_;
  Blocks sent_;      // of exchanges, transfers, scatters and broadcasts; the parts of a reduction
  Blocks received_;
  Blocks gathered_;  // of gathers: by member
  std::vector<int64_t> sent_bytes_;
  std::vector<int64_t> received_bytes_;
  std::vector<int64_t> gathered_bytes_;
  std::unique_ptr<Operation> inner_;  // of bfloat16: the same operation on that
  std::vector<Transfer> transfers_;

  char* work_ = nullptr;
  int64_t work_bytes_ = 0;
  int64_t received_at_ = 0;  // offsets in the work space; what is sent is at 0
  int64_t sums_at_ = 0;
  int64_t scratch_at_ = 0;
  int64_t largest_ = 0;
  int64_t bytes_ = 0;
  int64_t compressed_bytes_ = 0;
  int64_t codec_ns_ = 0;
  double bound_ = 0;
};

}  // namespace mixdown
