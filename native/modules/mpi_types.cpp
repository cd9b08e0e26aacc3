#include "modules/mpi_types.h"

#include <stdexcept>

#include "arith/arith.h"

namespace mixdown {
namespace {

template <DType dtype, ReduceOp op>
void user_function(void* in, void* inout, int* count, MPI_Datatype*) {
  combine(dtype, op, inout, in, inout, *count);
}

// Position in the arrays of operations; avg is a sum that is divided later.
int slot(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMin:
      return 1;
    case ReduceOp::kMax:
      return 2;
    case ReduceOp::kProd:
      return 3;
    default:
      return 0;
  }
}

template <DType dtype>
void create_ops(MPI_Op (&ops)[4]) {
  constexpr int commutes = 1;
  mpi_check(MPI_Op_create(&user_function<dtype, ReduceOp::kSum>, commutes, &ops[0]), "MPI_Op_create");
  mpi_check(MPI_Op_create(&user_function<dtype, ReduceOp::kMin>, commutes, &ops[1]), "MPI_Op_create");
  mpi_check(MPI_Op_create(&user_function<dtype, ReduceOp::kMax>, commutes, &ops[2]), "MPI_Op_create");
  mpi_check(MPI_Op_create(&user_function<dtype, ReduceOp::kProd>, commutes, &ops[3]), "MPI_Op_create");
}

// MPICH 4.0 takes unsigned bytes for signed ones in MPI_MIN and MPI_MAX.
bool compares_bytes_right() {
  const uint8_t in = 200;
  uint8_t inout = 100;
  mpi_check(MPI_Reduce_local(&in, &inout, 1, MPI_UINT8_T, MPI_MAX), "MPI_Reduce_local");
  return inout == 200;
}

}  // namespace

void mpi_check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string(call) + ": " + std::string(text, length));
}

void MpiTypes::create() {
  for (MPI_Datatype* type : {&half_, &bfloat_}) {
    mpi_check(MPI_Type_contiguous(2, MPI_BYTE, type), "MPI_Type_contiguous");
    mpi_check(MPI_Type_commit(type), "MPI_Type_commit");
  }
  create_ops<DType::kFloat16>(half_ops_);
  create_ops<DType::kBFloat16>(bfloat_ops_);
  if (!compares_bytes_right()) create_ops<DType::kUInt8>(byte_ops_);
}

void MpiTypes::free() {
  for (auto* ops : {&half_ops_, &bfloat_ops_, &byte_ops_}) {
    for (MPI_Op& op : *ops) {
      if (op != MPI_OP_NULL) MPI_Op_free(&op);
    }
  }
  MPI_Type_free(&half_);
  MPI_Type_free(&bfloat_);
}

MPI_Datatype MpiTypes::datatype(DType dtype) const {
  switch (dtype) {
    case DType::kFloat32:
      return MPI_FLOAT;
    case DType::kFloat64:
      return MPI_DOUBLE;
    case DType::kFloat16:
      return half_;
    case DType::kBFloat16:
      return bfloat_;
    case DType::kInt8:
      return MPI_INT8_T;
    case DType::kUInt8:
    case DType::kBool:
      return MPI_UINT8_T;
    case DType::kInt16:
      return MPI_INT16_T;
    case DType::kInt32:
      return MPI_INT32_T;
    case DType::kInt64:
      return MPI_INT64_T;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op MpiTypes::op(DType dtype, ReduceOp op) const {
  if (dtype == DType::kFloat16) return half_ops_[slot(op)];
  if (dtype == DType::kBFloat16) return bfloat_ops_[slot(op)];
  const bool bytes = dtype == DType::kUInt8 || dtype == DType::kBool;
  const bool compares = op == ReduceOp::kMin || op == ReduceOp::kMax;
  if (bytes && compares && byte_ops_[0] != MPI_OP_NULL) return byte_ops_[slot(op)];
  const MPI_Op builtin[] = {MPI_SUM, MPI_MIN, MPI_MAX, MPI_PROD};
  return builtin[slot(op)];
}

}  // namespace mixdown
