#include "worker/lower.h"

#include "worker/ops.h"

namespace mixdown {
namespace {

bool is_float(pb::DType dtype) {
  return dtype == pb::DTYPE_FLOAT32 || dtype == pb::DTYPE_FLOAT64 || dtype == pb::DTYPE_FLOAT16 ||
         dtype == pb::DTYPE_BFLOAT16;
}

bool is_complex(pb::DType dtype) { return dtype == pb::DTYPE_COMPLEX64 || dtype == pb::DTYPE_COMPLEX128; }

bool is_float8(pb::DType dtype) { return dtype == pb::DTYPE_FLOAT8_E4M3FN || dtype == pb::DTYPE_FLOAT8_E5M2; }

void double_counts(pb::Communication& c) {
  c.set_in_count(2 * c.in_count());
  c.set_out_count(2 * c.out_count());
  for (auto* splits : {c.mutable_in_splits(), c.mutable_out_splits()}) {
    for (int64_t& split : *splits) split *= 2;
  }
  for (auto& t : *c.mutable_transfers()) t.set_count(2 * t.count());
  for (auto& p : *c.mutable_parts()) {
    p.set_in_count(2 * p.in_count());
    p.set_out_count(2 * p.out_count());
  }
}

void lower(pb::Communication& c) {
  const pb::DType dtype = c.dtype();
  if (is_complex(dtype)) {
    c.set_dtype(dtype == pb::DTYPE_COMPLEX64 ? pb::DTYPE_FLOAT32 : pb::DTYPE_FLOAT64);
    double_counts(c);
  } else if (is_float8(dtype)) {
    c.set_dtype(pb::DTYPE_UINT8);
  } else if (dtype == pb::DTYPE_BOOL) {
    c.set_dtype(pb::DTYPE_UINT8);
    if (c.reduce_op() == pb::REDUCE_OP_SUM) c.set_reduce_op(pb::REDUCE_OP_MAX);
    if (c.reduce_op() == pb::REDUCE_OP_PROD) c.set_reduce_op(pb::REDUCE_OP_MIN);
  }
}

}  // namespace

const char* refusal(pb::DType dtype, pb::ReduceOp op) {
  if (is_float8(dtype)) return "8-bit floats can only be moved: no library reduces them";
  switch (op) {
    case pb::REDUCE_OP_SUM:
      return "";
    case pb::REDUCE_OP_AVG:
      return dtype == pb::DTYPE_BOOL ? "bool has no average" : "";
    case pb::REDUCE_OP_PREMUL_SUM:
      return is_float(dtype) || is_complex(dtype) ? "" : "premul_sum is for floats";
    case pb::REDUCE_OP_BAND:
    case pb::REDUCE_OP_BOR:
    case pb::REDUCE_OP_BXOR:
      return is_float(dtype) || is_complex(dtype) ? "bitwise reductions are for integers and bool" : "";
    default:
      return is_complex(dtype) ? "complex numbers only have sum, avg and premul_sum" : "";
  }
}

int compressible_bits(pb::DType dtype) {
  switch (dtype) {
    case pb::DTYPE_FLOAT64:
    case pb::DTYPE_COMPLEX128:
      return 64;
    case pb::DTYPE_FLOAT32:
    case pb::DTYPE_COMPLEX64:
      return 32;
    default:
      return is_float(dtype) ? 16 : 0;
  }
}

void lower(pb::Plan& plan) {
  for (auto& program : *plan.mutable_workload()->mutable_programs()) {
    for (auto& task : *program.mutable_tasks()) {
      if (task.has_communication()) lower(*task.mutable_communication());
    }
  }
}

}  // namespace mixdown
