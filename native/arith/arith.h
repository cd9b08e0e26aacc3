// The element-wise arithmetic that the worker lends to backends.
#pragma once

#include "mixdown/backend.h"

namespace mixdown {

/// Arithmetic on host memory; see Arithmetic for what it promises.
const Arithmetic& host_arithmetic();

}  // namespace mixdown
