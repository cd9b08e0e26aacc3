// One worker's run of an experiment, from the control file to the footer.
#pragma once

#include "worker/arguments.h"

namespace mixdown {

/// Returns the exit code. Failures after the control file is mapped end the
/// process by fail().
int run(const Arguments& arguments);

}  // namespace mixdown
