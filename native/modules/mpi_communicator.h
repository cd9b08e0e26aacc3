// One process group on MPI.
#pragma once

#include <memory>

#include "modules/mpi_types.h"

namespace mixdown {

/// A communicator that owns `comm`. `types` and `arithmetic` outlive it. With
/// `persistent` collectives that repeat are persistent requests.
std::unique_ptr<Communicator> make_mpi_communicator(MPI_Comm comm, const MpiTypes& types,
                                                    const Arithmetic& arithmetic, bool persistent);

}  // namespace mixdown
