// Properties of operations that several files need.
#pragma once

#include <string>

#include "mixdown/backend.h"
#include "plan.pb.h"

namespace mixdown {

namespace pb = ::mixdown::plan::v1;

inline bool point_to_point(pb::Op op) { return op == pb::OP_SEND || op == pb::OP_RECV || op == pb::OP_BATCH; }

inline bool reduces(pb::Op op) {
  return op == pb::OP_ALL_REDUCE || op == pb::OP_REDUCE || op == pb::OP_REDUCE_SCATTER ||
         op == pb::OP_REDUCE_SCATTERV;
}

inline bool rooted(pb::Op op) {
  return op == pb::OP_REDUCE || op == pb::OP_BROADCAST || op == pb::OP_GATHER || op == pb::OP_SCATTER ||
         op == pb::OP_GATHERV || op == pb::OP_SCATTERV;
}

/// Whether several tensors are as good as one that is as long as all of them.
inline bool element_wise(pb::Op op) {
  return op == pb::OP_ALL_REDUCE || op == pb::OP_REDUCE || op == pb::OP_BROADCAST;
}

/// Whether it may have parts: all blocks are of one size.
inline bool coalesces(pb::Op op) {
  return element_wise(op) || op == pb::OP_ALL_GATHER || op == pb::OP_REDUCE_SCATTER || op == pb::OP_ALL_TO_ALL ||
         op == pb::OP_GATHER || op == pb::OP_SCATTER;
}

/// The operation on one tensor of a coalesced collective.
inline pb::Communication part_of(const pb::Communication& c, int part) {
  pb::Communication one;  // not a copy: that would be of all parts
  one.set_group(c.group());
  one.set_seq(c.seq());
  one.set_op(c.op());
  one.set_dtype(c.dtype());
  one.set_root(c.root());
  one.set_reduce_op(c.reduce_op());
  one.set_factor(c.factor());
  one.set_in_place(c.in_place());
  if (c.has_compression()) *one.mutable_compression() = c.compression();
  one.set_in_count(c.parts(part).in_count());
  one.set_out_count(c.parts(part).out_count());
  return one;
}

/// Only of what `lower` leaves.
inline DType dtype_of(pb::DType dtype) { return static_cast<DType>(dtype); }
inline ReduceOp reduce_op_of(pb::ReduceOp op) { return static_cast<ReduceOp>(op); }

static_assert(static_cast<int>(DType::kFloat32) == pb::DTYPE_FLOAT32);
static_assert(static_cast<int>(DType::kBFloat16) == pb::DTYPE_BFLOAT16);
static_assert(static_cast<int>(DType::kUInt64) == pb::DTYPE_UINT64);
static_assert(static_cast<int>(ReduceOp::kSum) == pb::REDUCE_OP_SUM);
static_assert(static_cast<int>(ReduceOp::kPremulSum) == pb::REDUCE_OP_PREMUL_SUM);

/// "all_reduce": the enum's name as torch.distributed and our reports write it.
inline std::string short_name(const std::string& enum_name, size_t prefix) {
  std::string name = enum_name.substr(std::min(prefix, enum_name.size()));
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return name;
}
inline std::string name_of(pb::Op op) { return short_name(pb::Op_Name(op), 3); }
inline std::string name_of(pb::DType dtype) { return short_name(pb::DType_Name(dtype), 6); }
inline std::string name_of(pb::ReduceOp op) { return short_name(pb::ReduceOp_Name(op), 10); }

}  // namespace mixdown
