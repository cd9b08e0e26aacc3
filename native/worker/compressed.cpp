#include "worker/compressed.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "arith/arith.h"
#include "arith/half.h"
#include "worker/clock.h"
#include "worker/operation.h"
#include "worker/ops.h"
#include "worker/values.h"

namespace mixdown {
namespace {

constexpr int64_t kAlign = 64;
constexpr int64_t kPart = 4;  // elements: parts of a reduction are multiples, which zfp's blocks are

int64_t aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

bool alike(const std::vector<int64_t>& list) {
  return std::all_of(list.begin(), list.end(), [&](int64_t n) { return n == list[0]; });
}

int64_t total(const std::vector<int64_t>& list) { return std::accumulate(list.begin(), list.end(), int64_t{0}); }

bool half_size(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

void floats_of(DType dtype, const char* raw, int64_t count, float* out) {
  const auto* in = reinterpret_cast<const uint16_t*>(raw);
  if (dtype == DType::kFloat16) {
    for (int64_t i = 0; i < count; ++i) out[i] = float_of_half(in[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = float_of_bfloat(in[i]);
  }
}

void of_floats(DType dtype, const float* in, int64_t count, char* raw) {
  auto* out = reinterpret_cast<uint16_t*>(raw);
  if (dtype == DType::kFloat16) {
    for (int64_t i = 0; i < count; ++i) out[i] = half_of_float(in[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = bfloat_of_float(in[i]);
  }
}

// Adds the time that it lives.
class Watch {
 public:
  explicit Watch(int64_t& total) : total_(total), start_(now_ns()) {}
  ~Watch() { total_ += now_ns() - start_; }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  int64_t& total_;
  int64_t start_;
};

std::unique_ptr<Codec> make(const pb::Compression& c, DType dtype) {
  switch (c.codec()) {
    case pb::Compression::BFLOAT16:
      return make_bfloat16_codec();
    case pb::Compression::FLOAT8_E4M3FN:
      return make_float8_codec(Float8::kE4M3);
    case pb::Compression::FLOAT8_E5M2:
      return make_float8_codec(Float8::kE5M2);
    default:
      return make_zfp_codec(c.rate(), dtype == DType::kFloat64);
  }
}

}  // namespace

std::string name_of(const pb::Compression& c) {
  switch (c.codec()) {
    case pb::Compression::BFLOAT16:
      return "bf16";
    case pb::Compression::FLOAT8_E4M3FN:
      return "fp8:e4m3";
    case pb::Compression::FLOAT8_E5M2:
      return "fp8:e5m2";
    default: {
      char text[40];
      std::snprintf(text, sizeof text, "zfp:rate=%g", c.rate());
      return text;
    }
  }
}

double bits_of(const pb::Compression& c) {
  switch (c.codec()) {
    case pb::Compression::BFLOAT16:
      return 16;
    case pb::Compression::FLOAT8_E4M3FN:
    case pb::Compression::FLOAT8_E5M2:
      return 8;
    case pb::Compression::ZFP:
      return c.rate() >= 3 && c.rate() < 64 && c.rate() * 4 == std::floor(c.rate() * 4) ? c.rate() : 0;
    default:
      return 0;
  }
}

Compressed::Compressed(const pb::Compression& compression, const Operation& o, int position, int size)
    : codec_(make(compression, o.dtype)),
      native_(compression.codec() == pb::Compression::BFLOAT16),
      dtype_(o.dtype),
      wide_(o.dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32),
      position_(position),
      size_(size) {
  if (native_) {
    plan_cast(o);
  } else if (point_to_point(o.op)) {
    plan_transfers(o);
  } else if (reduces(o.op)) {
    plan_reduction(o);
  } else {
    plan_moves(o);
  }
  // Once on the way there and once back; a library that reduces what is compressed
  // rounds every partial result, a product has the error of every factor. And the
  // result is rounded to its own type.
  double roundings = 2;
  if (reduces(o.op) && (native_ || o.reduction.op == ReduceOp::kProd)) roundings += 2.0 * size;
  bound_ = std::min(1.0, roundings * codec_->roundoff() + epsilon(dtype_));
}

Compressed::~Compressed() = default;

Compressed::Blocks Compressed::lay(const std::vector<int64_t>& counts) const {
  Blocks blocks;
  int64_t raw = 0;
  int64_t at = 0;
  for (const int64_t count : counts) {
    blocks.push_back({count, raw, at, codec_->size(count)});
    raw += count * size_of(dtype_);
    at += blocks.back().bytes;
  }
  return blocks;
}

void Compressed::count_sent(const Block& block) {
  bytes_ += block.count * size_of(dtype_);
  compressed_bytes_ += block.bytes;
}

// Work space for so many bytes sent and received, a part of `own` elements that is
// added up, and blocks of `longest` elements in another type.
void Compressed::reserve(int64_t sent, int64_t received, int64_t own, int64_t longest) {
  received_at_ = aligned(sent);
  sums_at_ = received_at_ + aligned(received);
  scratch_at_ = sums_at_ + aligned(own * size_of(wide_));
  work_bytes_ = scratch_at_ + aligned(longest * size_of(wide_));
  largest_ = std::max(sent, received);
}

void Compressed::plan_cast(const Operation& o) {
  const int64_t shrink = size_of(dtype_) / size_of(DType::kBFloat16);
  inner_ = std::make_unique<Operation>(o);
  inner_->dtype = DType::kBFloat16;
  inner_->overlap = Overlap::kNone;
  inner_->in_bytes = o.in_bytes / shrink;
  inner_->out_bytes = o.out_bytes / shrink;
  bytes_ = o.in_bytes;
  compressed_bytes_ = inner_->in_bytes;
  reserve(inner_->in_bytes, inner_->out_bytes, 0, 0);
}

void Compressed::plan_transfers(const Operation& o) {
  std::vector<int64_t> sends;
  std::vector<int64_t> receives;
  for (const Transfer& t : o.transfers) (t.send ? sends : receives).push_back(t.count);
  sent_ = lay(sends);
  received_ = lay(receives);
  transfers_ = o.transfers;
  int64_t longest = 0;
  size_t s = 0;
  size_t r = 0;
  for (Transfer& t : transfers_) {
    longest = std::max(longest, t.count);
    t.count = (t.send ? sent_[s++] : received_[r++]).bytes;
  }
  const auto end = [](const Blocks& blocks) { return blocks.empty() ? 0 : blocks.back().at + blocks.back().bytes; };
  for (const Block& block : sent_) count_sent(block);
  reserve(end(sent_), end(received_), 0, half_size(dtype_) ? longest : 0);
}

void Compressed::plan_reduction(const Operation& o) {
  std::vector<int64_t> parts = o.in_counts;  // of reduce_scatterv
  if (o.op == pb::OP_REDUCE_SCATTER) parts.assign(static_cast<size_t>(size_), o.count);
  if (o.op == pb::OP_ALL_REDUCE || o.op == pb::OP_REDUCE) {
    const int64_t even = ((o.count + size_ - 1) / size_ + kPart - 1) / kPart * kPart;
    for (int m = 0; m < size_; ++m) parts.push_back(std::clamp<int64_t>(o.count - m * even, 0, even));
  }
  const bool gathers = o.op == pb::OP_ALL_REDUCE || o.op == pb::OP_REDUCE;
  const int64_t own = parts[static_cast<size_t>(position_)];
  sent_ = lay(parts);
  received_ = lay(std::vector<int64_t>(static_cast<size_t>(size_), own));
  for (int m = 0; m < size_; ++m) {
    sent_bytes_.push_back(sent_[m].bytes);
    received_bytes_.push_back(received_[m].bytes);
    if (m != position_ || gathers) count_sent(sent_[m]);
  }
  if (gathers) {
    gathered_ = sent_;
    gathered_bytes_ = sent_bytes_;
  }
  const int64_t longest = *std::max_element(parts.begin(), parts.end());
  const int64_t sent = total(sent_bytes_);
  reserve(sent, std::max(total(received_bytes_), gathers ? sent : 0), own, longest);
}

void Compressed::plan_moves(const Operation& o) {
  const auto n = static_cast<size_t>(size_);
  std::vector<int64_t> sent;
  std::vector<int64_t> received;
  std::vector<int64_t> gathered;
  bool own = true;  // its own block is compressed too
  switch (o.op) {
    case pb::OP_BROADCAST:
      sent = {o.count};
      break;
    case pb::OP_ALL_GATHER:
    case pb::OP_GATHER:
      gathered.assign(n, o.count);
      own = o.op == pb::OP_ALL_GATHER || position_ != o.root;
      break;
    case pb::OP_ALL_GATHERV:
    case pb::OP_GATHERV:
      gathered = o.out_counts;
      own = o.op == pb::OP_ALL_GATHERV || position_ != o.root;
      break;
    case pb::OP_SCATTER:
      sent.assign(n, o.count);
      received = {o.count};
      break;
    case pb::OP_SCATTERV:
      sent = o.in_counts;
      received = {o.in_counts[static_cast<size_t>(position_)]};
      break;
    case pb::OP_ALL_TO_ALL:
      sent.assign(n, o.count);
      received = sent;
      break;
    default:  // all_to_allv
      sent = o.in_counts;
      received = o.out_counts;
  }
  sent_ = lay(sent);
  received_ = lay(received);
  gathered_ = lay(gathered);
  for (const Block& b : sent_) sent_bytes_.push_back(b.bytes);
  for (const Block& b : received_) received_bytes_.push_back(b.bytes);
  for (const Block& b : gathered_) gathered_bytes_.push_back(b.bytes);
  const bool is_root = !rooted(o.op) || position_ == o.root;
  if (!gathered_.empty() && own) count_sent(gathered_[static_cast<size_t>(position_)]);
  for (int m = 0; m < static_cast<int>(sent_.size()); ++m) {
    if (is_root && (o.op == pb::OP_BROADCAST || m != position_)) count_sent(sent_[m]);
  }
  int64_t longest = 0;
  for (const Blocks* blocks : {&sent_, &received_, &gathered_}) {
    for (const Block& b : *blocks) longest = std::max(longest, b.count);
  }
  const int64_t one = gathered_.empty() ? 0 : gathered_bytes_[static_cast<size_t>(position_)];
  reserve(std::max(total(sent_bytes_), one), std::max(total(received_bytes_), total(gathered_bytes_)), 0,
          half_size(dtype_) ? longest : 0);
}

void Compressed::execute(const Operation& o, Communicator& c, char* in, char* out) {
  codec_ns_ = 0;
  if (native_) return cast(o, c, in, out);
  if (point_to_point(o.op)) return transfer(o, c);
  if (reduces(o.op)) return reduce(o, c, in, out);
  move(o, c, in, out);
}

void Compressed::encode(const char* raw, const Block& b, char* base) {
  if (half_size(dtype_)) {
    auto* floats = reinterpret_cast<float*>(work_ + scratch_at_);
    floats_of(dtype_, raw, b.count, floats);
    codec_->encode(floats, b.count, base + b.at);
  } else if (dtype_ == DType::kFloat64) {
    codec_->encode(reinterpret_cast<const double*>(raw), b.count, base + b.at);
  } else {
    codec_->encode(reinterpret_cast<const float*>(raw), b.count, base + b.at);
  }
}

void Compressed::decode(const char* base, const Block& b, char* raw) {
  if (half_size(dtype_)) {
    auto* floats = reinterpret_cast<float*>(work_ + scratch_at_);
    codec_->decode(base + b.at, b.count, floats);
    of_floats(dtype_, floats, b.count, raw);
  } else if (dtype_ == DType::kFloat64) {
    codec_->decode(base + b.at, b.count, reinterpret_cast<double*>(raw));
  } else {
    codec_->decode(base + b.at, b.count, reinterpret_cast<float*>(raw));
  }
}

void Compressed::cast(const Operation& o, Communicator& c, const char* in, char* out) {
  const int64_t element = size_of(dtype_);
  char* received = work_ + received_at_;
  {
    const Watch watch(codec_ns_);
    encode(in, {o.in_bytes / element, 0, 0, 0}, work_);
  }
  if (point_to_point(o.op)) mixdown::bind(*inner_, work_, received);
  mixdown::execute(*inner_, c, work_, received);
  const Watch watch(codec_ns_);
  decode(received, {o.out_bytes / element, 0, 0, 0}, out);
}

void Compressed::transfer(const Operation& o, Communicator& c) {
  char* received = work_ + received_at_;
  {
    const Watch watch(codec_ns_);
    size_t s = 0;
    size_t r = 0;
    for (size_t i = 0; i < transfers_.size(); ++i) {
      Transfer& t = transfers_[i];
      if (t.send) {
        encode(static_cast<const char*>(o.transfers[i].buffer), sent_[s], work_);
        t.buffer = work_ + sent_[s++].at;
      } else {
        t.buffer = received + received_[r++].at;
      }
    }
  }
  c.batch(transfers_.data(), transfers_.size(), DType::kUInt8);
  const Watch watch(codec_ns_);
  size_t r = 0;
  for (const Transfer& t : o.transfers) {
    if (!t.send) decode(received, received_[r++], static_cast<char*>(t.buffer));
  }
}

// Of a reduction. Whether all blocks are of one size is the same on all members: they
// all send blocks of the sizes of the parts.
void Compressed::exchange(Communicator& c) {
  char* received = work_ + received_at_;
  if (alike(sent_bytes_)) {
    c.all_to_all(work_, received, sent_bytes_[0], DType::kUInt8);
  } else {
    c.all_to_allv(work_, sent_bytes_.data(), received, received_bytes_.data(), DType::kUInt8);
  }
}

void Compressed::gather_all(Communicator& c) {
  char* received = work_ + received_at_;
  if (alike(gathered_bytes_)) return c.all_gather(work_, received, gathered_bytes_[0], DType::kUInt8);
  c.all_gatherv(work_, received, gathered_bytes_.data(), DType::kUInt8);
}

void Compressed::gather(Communicator& c, int root) {
  char* received = position_ == root ? work_ + received_at_ : nullptr;
  if (alike(gathered_bytes_)) return c.gather(work_, received, gathered_bytes_[0], DType::kUInt8, root);
  c.gatherv(work_, received, gathered_bytes_.data(), DType::kUInt8, root);
}

// Adds up what came for this member and its own part.
void Compressed::add_up(const Operation& o, const char* in) {
  const Block& own = sent_[static_cast<size_t>(position_)];
  char* sums = work_ + sums_at_;
  char* scratch = work_ + scratch_at_;
  if (half_size(dtype_)) {
    floats_of(dtype_, in + own.raw, own.count, reinterpret_cast<float*>(sums));
  } else if (own.count > 0) {
    std::memcpy(sums, in + own.raw, static_cast<size_t>(own.count * size_of(dtype_)));
  }
  const Arithmetic& arithmetic = host_arithmetic();
  for (int m = 0; m < size_; ++m) {
    if (m == position_) continue;
    const char* from = work_ + received_at_ + received_[m].at;
    if (wide_ == DType::kFloat64) {
      codec_->decode(from, own.count, reinterpret_cast<double*>(scratch));
    } else {
      codec_->decode(from, own.count, reinterpret_cast<float*>(scratch));
    }
    arithmetic.combine(wide_, o.reduction.op, sums, sums, scratch, own.count);
  }
  if (o.reduction.op == ReduceOp::kAvg) arithmetic.divide(wide_, sums, own.count, size_);
  if (o.reduction.op == ReduceOp::kPremulSum) arithmetic.scale(wide_, sums, sums, own.count, o.reduction.factor);
}

// To the beginning of the work space: a gather's input.
void Compressed::encode_sums() {
  const int64_t count = sent_[static_cast<size_t>(position_)].count;
  const char* sums = work_ + sums_at_;
  if (wide_ == DType::kFloat64) {
    codec_->encode(reinterpret_cast<const double*>(sums), count, work_);
  } else {
    codec_->encode(reinterpret_cast<const float*>(sums), count, work_);
  }
}

void Compressed::reduce(const Operation& o, Communicator& c, const char* in, char* out) {
  const bool gathers = !gathered_.empty();
  {
    const Watch watch(codec_ns_);
    for (int m = 0; m < size_; ++m) {
      if (m != position_) encode(in + sent_[m].raw, sent_[m], work_);
    }
  }
  exchange(c);
  {
    const Watch watch(codec_ns_);
    add_up(o, in);
    if (gathers) encode_sums();
  }
  if (o.op == pb::OP_ALL_REDUCE) gather_all(c);
  if (o.op == pb::OP_REDUCE) gather(c, o.root);
  const Watch watch(codec_ns_);
  const char* received = work_ + received_at_;
  if (gathers) {
    if (o.op == pb::OP_REDUCE && position_ != o.root) return;
    for (const Block& b : gathered_) decode(received, b, out + b.raw);
  } else if (half_size(dtype_)) {
    of_floats(dtype_, reinterpret_cast<const float*>(work_ + sums_at_), received_[0].count, out);
  } else if (received_[0].count > 0) {
    std::memcpy(out, work_ + sums_at_, static_cast<size_t>(received_[0].count * size_of(dtype_)));
  }
}

void Compressed::move(const Operation& o, Communicator& c, const char* in, char* out) {
  const auto self = static_cast<size_t>(position_);
  char* received = work_ + received_at_;
  const bool is_root = !rooted(o.op) || position_ == o.root;
  const auto copy_own = [&](const char* from, char* to, int64_t count) {
    if (count > 0 && from != to) std::memmove(to, from, static_cast<size_t>(count * size_of(dtype_)));
  };
  const auto encode_sent = [&] {
    const Watch watch(codec_ns_);
    for (size_t m = 0; m < sent_.size(); ++m) {
      if (m != self || o.op == pb::OP_BROADCAST) encode(in + sent_[m].raw, sent_[m], work_);
    }
  };
  const auto decode_all = [&](const Blocks& blocks, bool own) {
    const Watch watch(codec_ns_);
    for (size_t m = 0; m < blocks.size(); ++m) {
      if (m != self || own) decode(received, blocks[m], out + blocks[m].raw);
    }
  };
  switch (o.op) {
    case pb::OP_BROADCAST: {
      if (is_root) {
        const Watch watch(codec_ns_);
        encode(in, sent_[0], work_);
      }
      c.broadcast(work_, sent_[0].bytes, DType::kUInt8, o.root);
      if (is_root) return;
      const Watch watch(codec_ns_);
      return decode(work_, sent_[0], out);
    }
    case pb::OP_ALL_GATHER:
    case pb::OP_ALL_GATHERV:
    case pb::OP_GATHER:
    case pb::OP_GATHERV: {
      const bool all = !rooted(o.op);
      if (all || !is_root) {
        const Watch watch(codec_ns_);
        encode(in, {gathered_[self].count, 0, 0, gathered_[self].bytes}, work_);
      }
      all ? gather_all(c) : gather(c, o.root);
      if (!is_root) return;
      if (!all) copy_own(in, out + gathered_[self].raw, gathered_[self].count);
      return decode_all(gathered_, all);
    }
    case pb::OP_SCATTER:
    case pb::OP_SCATTERV: {
      if (is_root) encode_sent();
      char* from = is_root ? work_ : nullptr;
      if (o.op == pb::OP_SCATTER) {
        c.scatter(from, received, sent_bytes_[0], DType::kUInt8, o.root);
      } else {
        c.scatterv(from, received, sent_bytes_.data(), DType::kUInt8, o.root);
      }
      if (is_root) return copy_own(in + sent_[self].raw, out, sent_[self].count);
      const Watch watch(codec_ns_);
      return decode(received, received_[0], out);
    }
    default:
      encode_sent();
      if (o.op == pb::OP_ALL_TO_ALL) {
        c.all_to_all(work_, received, sent_bytes_[0], DType::kUInt8);
      } else {
        c.all_to_allv(work_, sent_bytes_.data(), received, received_bytes_.data(), DType::kUInt8);
      }
      copy_own(in + sent_[self].raw, out + received_[self].raw, sent_[self].count);
      return decode_all(received_, false);
  }
}

}  // namespace mixdown
