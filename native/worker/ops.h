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
  return op == pb::OP_REDUCE || op == pb::OP_BROADCAST || op == pb::OP_GATHER || op == pb::OP_SCATTER;
}

inline DType dtype_of(pb::DType dtype) { return static_cast<DType>(dtype); }
inline ReduceOp reduce_op_of(pb::ReduceOp op) { return static_cast<ReduceOp>(op); }

static_assert(static_cast<int>(DType::kFloat32) == pb::DTYPE_FLOAT32);
static_assert(static_cast<int>(DType::kBFloat16) == pb::DTYPE_BFLOAT16);
static_assert(static_cast<int>(DType::kBool) == pb::DTYPE_BOOL);
static_assert(static_cast<int>(ReduceOp::kSum) == pb::REDUCE_OP_SUM);
static_assert(static_cast<int>(ReduceOp::kProd) == pb::REDUCE_OP_PROD);

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
