// What MPI calls our dtypes and reduce ops.
#pragma once

#include <mpi.h>

#include <string>

#include "mixdown/backend.h"

namespace mixdown {

/// Throws a std::runtime_error with MPI's text unless `code` is MPI_SUCCESS.
void mpi_check(int code, const char* call);

/// Datatypes and operations, among them those for the 16-bit floats that MPI
/// lacks. Made after MPI_Init, freed before MPI_Finalize.
class MpiTypes {
 public:
  void create();
  void free();
  MPI_Datatype datatype(DType dtype) const;
  MPI_Op op(DType dtype, ReduceOp op) const;

 private:
  MPI_Datatype half_ = MPI_DATATYPE_NULL;
  MPI_Datatype bfloat_ = MPI_DATATYPE_NULL;
  MPI_Op half_ops_[4] = {MPI_OP_NULL, MPI_OP_NULL, MPI_OP_NULL, MPI_OP_NULL};
  MPI_Op byte_ops_[4] = {MPI_OP_NULL, MPI_OP_NULL, MPI_OP_NULL, MPI_OP_NULL};  // only where the library's are wrong
  MPI_Op bfloat_ops_[4] = {MPI_OP_NULL, MPI_OP_NULL, MPI_OP_NULL, MPI_OP_NULL};
};

}  // namespace mixdown
