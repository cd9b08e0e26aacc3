/// How MPICH waits.
#pragma once

namespace mixdown {

/// Tells that several threads may call MPICH from now on, which then locks.
void mpich_locks();

}  // namespace mixdown
