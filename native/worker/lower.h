// What torch.distributed does to tensors before it calls a library.
#pragma once

#include "plan.pb.h"

namespace mixdown {

namespace pb = ::mixdown::plan::v1;

/// Why no library reduces this dtype with this op, "" where some does. The reasons
/// are torch.distributed's own, or arithmetic's.
const char* refusal(pb::DType dtype, pb::ReduceOp op);

/// Bits of the floats that a number of this dtype is made of, 0 where those can't be
/// compressed: of 8-bit floats, and of what is no float.
int compressible_bits(pb::DType dtype);

/// Rewrites the communications of a valid plan to dtypes that backends know:
/// complex numbers become twice as many floats, 8-bit floats and bool become
/// bytes. Of bytes that are 0 or 1 a maximum is the logical or, a minimum the
/// logical and.
void lower(pb::Plan& plan);

}  // namespace mixdown
