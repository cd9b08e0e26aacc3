// What MPI calls our dtypes and reduce ops.
#pragma once

#include <mpi.h>

#include <string>

#include "mixdown/backend.h"

namespace mixdown {

/// Throws a std::runtime_error with MPI's text unless `code` is MPI_SUCCESS.
void mpi_check(int code, const char* call);

/// Datatypes and operations, among them those for the 16-bit floats that MPI
/// lacks. Made after MPI_Init, freed before MPI_Finalize. One in a process.
class MpiTypes {
 public:
  void create(const Arithmetic& arithmetic);
  void free();
  MPI_Datatype datatype(DType dtype) const;
  /// Whether the datatype is one that was made here.
  static bool own(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }
  MPI_Op op(DType dtype, ReduceOp op) const;

 private:
  struct Ops {
    MPI_Op sum = MPI_OP_NULL;
    MPI_Op min = MPI_OP_NULL;
    MPI_Op max = MPI_OP_NULL;
    MPI_Op prod = MPI_OP_NULL;
  };
  template <DType dtype>
  static void create_ops(Ops& ops);
  template <DType dtype, typename T>
  void create_unsigned(MPI_Datatype type);
  static void free_ops(Ops& ops);
  static MPI_Op of(const Ops& ops, ReduceOp op);

  MPI_Datatype half_ = MPI_DATATYPE_NULL;
  MPI_Datatype bfloat_ = MPI_DATATYPE_NULL;
  Ops half_ops_;
  Ops bfloat_ops_;
  Ops unsigned_ops_[4];  // by the logarithm of the size, only where the library's are wrong
};

}  // namespace mixdown
