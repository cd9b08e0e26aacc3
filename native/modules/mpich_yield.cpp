// MPICH waits by polling and, in common builds, never gives up the processor.
// With more ranks than cores a rank then spins through its whole time slice
// while the rank it waits for cannot run: a small all_reduce of 8 ranks on 2
// cores takes about 50 ms instead of 50 us.
//
// MPICH's ch4:ucx device calls ucp_worker_progress each time round its polling
// loop. A module comes before the libraries it needs in the dynamic linker's
// search, so this definition is found first: it calls UCX and, when there was
// nothing to do, lets another process run. The library's own blocking
// collectives, with the algorithms it selects, stay what is measured. A build
// of MPICH on another device does not call it and is as it was.
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace {

// MIXDOWN_YIELD=0 or 1; else yes where the launcher says that there are more
// ranks than cores, or does not say.
bool wanted() {
  if (const char* choice = std::getenv("MIXDOWN_YIELD")) return std::strcmp(choice, "0") != 0;
  const char* ranks = std::getenv("MPI_LOCALNRANKS");
  return ranks == nullptr || std::atol(ranks) > sysconf(_SC_NPROCESSORS_ONLN);
}

using Progress = unsigned (*)(void*);

}  // namespace

extern "C" __attribute__((visibility("default"))) unsigned ucp_worker_progress(void* worker) {
  static const auto progress = reinterpret_cast<Progress>(dlsym(RTLD_NEXT, "ucp_worker_progress"));
  static const bool yields = wanted();
  const unsigned events = progress(worker);
  if (events == 0 && yields) sched_yield();
  return events;
}
