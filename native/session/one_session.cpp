// Loaded before other libraries into MPICH's mpirun (LD_PRELOAD), whose programs start
// each rank in a session of its own. Linux (sched_autogroup_enabled) shares a core
// evenly among sessions and lets a thread that gives it up, as waiting ranks do that
// share cores, give it to its own session only: a rank that waits then runs on through
// its time slice while the rank that it waits for does not, and the same library is
// another one than under the launchers of others. With this ranks have process groups
// of their own, as mpirun wants it to end them, but stay in the session.
#include <unistd.h>

extern "C" __attribute__((visibility("default"))) pid_t setsid() noexcept {
  if (setpgid(0, 0) != 0) return -1;
  return getpid();
}
