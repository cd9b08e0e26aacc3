/// How MPICH waits.
#pragma once

namespace mixdown {

/// Tells how many ranks are on this host, where MPICH's launcher does not say.
void mpich_ranks(int here);

/// Tells that several threads may call MPICH from now on, which then locks.
void mpich_locks();

}  // namespace mixdown
