// Describing a backend without using it.
#pragma once

#include <string>

#include "worker/arguments.h"

namespace mixdown {

/// Prints one line of JSON on stdout. Returns the exit code.
int probe(const Arguments& arguments);

/// Prints what GPUs of a kind ("cuda", "hip") there are, as JSON: their number, the first one's
/// name, the driver's version, whether they are the stand-in of the tests. Returns
/// the exit code.
int probe_device(const std::string& kind);

/// Prints the version of zfp's library, as JSON. Returns the exit code.
int probe_codec();

}  // namespace mixdown
