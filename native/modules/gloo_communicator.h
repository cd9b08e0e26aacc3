// One process group on Gloo.
#pragma once

#include <gloo/context.h>

#include <memory>

#include "mixdown/backend.h"

namespace mixdown {

/// A communicator on a connected context.
std::unique_ptr<Communicator> make_gloo_communicator(std::shared_ptr<gloo::Context> context);

}  // namespace mixdown
