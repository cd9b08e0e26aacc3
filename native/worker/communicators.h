// The communicators that this worker is a member of.
#pragma once

#include <memory>
#include <vector>

#include "worker/compile.h"
#include "worker/control.h"
#include "worker/modules.h"

namespace mixdown {

/// Connects the backends and makes the communicators of all keys in order, then
/// sends something over each of them and between each pair that has
/// point-to-point transfers, so that nothing is set up lazily later. Entries of
/// groups without this worker are null.
std::vector<std::unique_ptr<Communicator>> connect(Modules& modules, const World& world,
                                                   const std::vector<CommunicatorKey>& keys, const Groups& groups,
                                                   const std::vector<Program>& programs, Control& control);

}  // namespace mixdown
