// Describing a backend without using it.
#pragma once

#include "worker/arguments.h"

namespace mixdown {

/// Prints one line of JSON on stdout. Returns the exit code.
int probe(const Arguments& arguments);

}  // namespace mixdown
