// One process group on Gloo.
#pragma once

#include <gloo/context.h>

#include <memory>

#include "mixdown/backend.h"

namespace mixdown {

/// A communicator on a connected context. `arithmetic` outlives it.
std::unique_ptr<Communicator> make_gloo_communicator(std::shared_ptr<gloo::Context> context,
                                                     const Arithmetic& arithmetic);

}  // namespace mixdown
