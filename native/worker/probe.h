// Describing a backend without using it.
#pragma once

#include "worker/arguments.h"

namespace mixdown {

/// Prints one line of JSON on stdout. Returns the exit code.
int probe(const Arguments& arguments);

/// Prints what GPUs the CUDA driver has, as JSON: their number, the first one's
/// name, the driver's version, whether they are the stand-in of the tests. Returns
/// the exit code.
int probe_device();

}  // namespace mixdown
