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
//
// Where several threads call MPICH, it calls UCX with a lock held that each of them
// needs. Whoever gave up the processor there would keep the others of its own rank
// out: they wake when the lock is free, and find it taken again. So it is given up
// when the lock is free, in what MPICH calls to free it.
#include "modules/mpich_wait.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>

#include "modules/patience.h"
#include "modules/rebind.h"

namespace {

std::atomic<bool> locks{false};  // MPICH does, and tells when it has freed one

thread_local mixdown::Patience patience;
thread_local bool waits = false;  // for when the lock is free

// Whether ranks that poll should let others run: with one thread each, and with two,
// where several threads call: more seldom do at once.
struct Wanted {
  std::atomic<bool> alone, together;

  // Ranks on this host: as the launcher says, else as is known here.
  void find(long here) {
    const char* text = std::getenv("MPI_LOCALNRANKS");
    const long ranks = text == nullptr ? here : std::atol(text);
    alone = mixdown::shares_cores(ranks);
    together = mixdown::shares_cores(2 * ranks);
  }
  Wanted() { find(1L << 20); }  // more than there are cores, until somebody knows
};
Wanted wants;

bool wanted() {
  return (locks.load(std::memory_order_relaxed) ? wants.together : wants.alone).load(std::memory_order_relaxed);
}

int unlock(pthread_mutex_t* mutex) {
  const int result = pthread_mutex_unlock(mutex);
  if (waits) {
    waits = false;
    patience.wait();
  }
  return result;
}

using Progress = unsigned (*)(void*);

}  // namespace

namespace mixdown {

void mpich_ranks(int here) { wants.find(here); }

void mpich_locks() { locks = rebind("libmpich.so", "pthread_mutex_unlock", reinterpret_cast<void*>(unlock)) > 0; }

}  // namespace mixdown

extern "C" __attribute__((visibility("default"))) unsigned ucp_worker_progress(void* worker) {
  static const auto progress = reinterpret_cast<Progress>(dlsym(RTLD_NEXT, "ucp_worker_progress"));
  const unsigned events = progress(worker);
  if (events != 0) {
    patience.over();
  } else if (wanted()) {
    if (locks.load(std::memory_order_relaxed)) {
      waits = true;
    } else {
      patience.wait();
    }
  }
  return events;
}
