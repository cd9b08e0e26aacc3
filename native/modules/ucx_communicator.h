// One process group on UCX.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mixdown/backend.h"
#include "modules/ucx_worker.h"

namespace mixdown {

/// How one member of a group reaches another.
struct UcxPeer {
  ucp_ep_h endpoint = nullptr;
  uint16_t number = 0;  ///< what the other calls the group: the first part of the tags of what it receives
};

/// A communicator among `peers`, in group order; the one at `rank` is this process.
std::unique_ptr<Communicator> make_ucx_communicator(UcxWorker& worker, std::vector<UcxPeer> peers, int rank,
                                                    const Arithmetic& arithmetic);

}  // namespace mixdown
