// Element-wise arithmetic that backends share where their library has none.
#pragma once

#include "mixdown/backend.h"

namespace mixdown {

/// out[i] = a[i] op b[i] for i < count; kAvg adds. `out` may be `a` or `b`.
void combine(DType dtype, ReduceOp op, void* out, const void* a, const void* b, int64_t count);

/// data[i] = data[i] / divisor: the second half of kAvg. Integers are cut towards
/// zero.
void divide(DType dtype, void* data, int64_t count, int64_t divisor);

}  // namespace mixdown
