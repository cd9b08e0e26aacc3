#include "modules/mpi_types.h"

#include <limits>
#include <stdexcept>

namespace mixdown {
namespace {

// MPI hands its operations nothing of ours.
const Arithmetic* the_arithmetic = nullptr;

template <DType dtype, ReduceOp op>
void user_function(void* in, void* inout, int* count, MPI_Datatype*) {
  the_arithmetic->combine(dtype, op, inout, in, inout, *count);
}

// MPICH 4.0 takes unsigned integers for signed ones in MPI_MIN and MPI_MAX.
template <typename T>
bool compares_right(MPI_Datatype type) {
  const T in = std::numeric_limits<T>::max();
  T inout = 1;
  mpi_check(MPI_Reduce_local(&in, &inout, 1, type, MPI_MAX), "MPI_Reduce_local");
  return inout == in;
}

// Position in unsigned_ops_, -1 for other types.
int unsigned_slot(DType dtype) {
  switch (dtype) {
    case DType::kUInt8:
      return 0;
    case DType::kUInt16:
      return 1;
    case DType::kUInt32:
      return 2;
    case DType::kUInt64:
      return 3;
    default:
      return -1;
  }
}

}  // namespace

void mpi_check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string(call) + ": " + std::string(text, length));
}

template <DType dtype>
void MpiTypes::create_ops(Ops& ops) {
  constexpr int commutes = 1;
  mpi_check(MPI_Op_create(&user_function<dtype, ReduceOp::kSum>, commutes, &ops.sum), "MPI_Op_create");
  mpi_check(MPI_Op_create(&user_function<dtype, ReduceOp::kMin>, commutes, &ops.min), "MPI_Op_create");
  mpi_check(MPI_Op_create(&user_function<dtype, ReduceOp::kMax>, commutes, &ops.max), "MPI_Op_create");
  mpi_check(MPI_Op_create(&user_function<dtype, ReduceOp::kProd>, commutes, &ops.prod), "MPI_Op_create");
}

void MpiTypes::free_ops(Ops& ops) {
  for (MPI_Op* op : {&ops.sum, &ops.min, &ops.max, &ops.prod}) {
    if (*op != MPI_OP_NULL) MPI_Op_free(op);
  }
}

// Only the four that are made: averages and scaled sums are sums that the caller
// divides or multiplies.
MPI_Op MpiTypes::of(const Ops& ops, ReduceOp op) {
  switch (op) {
    case ReduceOp::kMin:
      return ops.min;
    case ReduceOp::kMax:
      return ops.max;
    case ReduceOp::kProd:
      return ops.prod;
    default:
      return ops.sum;
  }
}

template <DType dtype, typename T>
void MpiTypes::create_unsigned(MPI_Datatype type) {
  if (!compares_right<T>(type)) create_ops<dtype>(unsigned_ops_[unsigned_slot(dtype)]);
}

void MpiTypes::create(const Arithmetic& arithmetic) {
  the_arithmetic = &arithmetic;
  for (MPI_Datatype* type : {&half_, &bfloat_}) {
    mpi_check(MPI_Type_contiguous(2, MPI_BYTE, type), "MPI_Type_contiguous");
    mpi_check(MPI_Type_commit(type), "MPI_Type_commit");
  }
  create_ops<DType::kFloat16>(half_ops_);
  create_ops<DType::kBFloat16>(bfloat_ops_);
  create_unsigned<DType::kUInt8, uint8_t>(MPI_UINT8_T);
  create_unsigned<DType::kUInt16, uint16_t>(MPI_UINT16_T);
  create_unsigned<DType::kUInt32, uint32_t>(MPI_UINT32_T);
  create_unsigned<DType::kUInt64, uint64_t>(MPI_UINT64_T);
}

void MpiTypes::free() {
  free_ops(half_ops_);
  free_ops(bfloat_ops_);
  for (Ops& ops : unsigned_ops_) free_ops(ops);
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
      return MPI_UINT8_T;
    case DType::kInt16:
      return MPI_INT16_T;
    case DType::kInt32:
      return MPI_INT32_T;
    case DType::kInt64:
      return MPI_INT64_T;
    case DType::kUInt16:
      return MPI_UINT16_T;
    case DType::kUInt32:
      return MPI_UINT32_T;
    case DType::kUInt64:
      return MPI_UINT64_T;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op MpiTypes::op(DType dtype, ReduceOp op) const {
  if (dtype == DType::kFloat16) return of(half_ops_, op);
  if (dtype == DType::kBFloat16) return of(bfloat_ops_, op);
  const bool compares = op == ReduceOp::kMin || op == ReduceOp::kMax;
  const int slot = unsigned_slot(dtype);
  if (slot >= 0 && compares && unsigned_ops_[slot].sum != MPI_OP_NULL) return of(unsigned_ops_[slot], op);
  switch (op) {
    case ReduceOp::kBitAnd:
      return MPI_BAND;
    case ReduceOp::kBitOr:
      return MPI_BOR;
    case ReduceOp::kBitXor:
      return MPI_BXOR;
    default:
      return of({MPI_SUM, MPI_MIN, MPI_MAX, MPI_PROD}, op);
  }
}

}  // namespace mixdown
