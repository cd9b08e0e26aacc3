// One process group on NCCL.
#pragma once

#include <memory>

#include "mixdown/backend.h"
#include "modules/nccl_api.h"

namespace mixdown {

/// Takes the communicator over.
std::unique_ptr<Communicator> make_nccl_communicator(nccl::Comm comm, int rank, int size, const Arithmetic& arithmetic);

}  // namespace mixdown
