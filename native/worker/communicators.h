// The communicators that this worker is a member of.
#pragma once

#include <memory>
#include <vector>

#include "device/gpu.h"
#include "worker/compile.h"
#include "worker/control.h"
#include "worker/modules.h"

namespace mixdown {

/// Connects the backends and makes the communicators of all keys in order, then
/// sends something over each of them and between each pair that has
/// point-to-point transfers, so that nothing is set up lazily later. Entries of
/// groups without this worker are null.
///
/// `gpu` is null when buffers are in host memory; stream-ordered backends need one.
std::vector<std::unique_ptr<Communicator>> connect(Modules& modules, const World& world,
                                                   const std::vector<CommunicatorKey>& keys, const Groups& groups,
                                                   const std::vector<Program>& programs, Control& control,
                                                   const Gpu* gpu);

}  // namespace mixdown
