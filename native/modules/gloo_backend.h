// The Gloo backend, also wrapped by the test-only module.
#pragma once

#include "mixdown/backend.h"

namespace mixdown {

/// A Gloo backend that is not yet connected; the caller owns it.
Backend* make_gloo_backend();

}  // namespace mixdown
