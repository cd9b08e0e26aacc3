// Preloaded into a worker, it shows whether a module gives up the core as ranks do that
// share cores: in the first hundred polls that found nothing. The file that
// MIXDOWN_YIELDED names is made when it does.
//
// Built twice: MPICH's module defines ucp_worker_progress itself and only yields where
// cores are shared, so there it must not be defined here, and any yield counts.
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace {

constexpr int kAtOnce = 100;

thread_local int fruitless = 1;  // polls in a row

}  // namespace

extern "C" {

#ifdef MIXDOWN_WATCH_POLLS
__attribute__((visibility("default"))) unsigned ucp_worker_progress(void* worker) {
  using Progress = unsigned (*)(void*);
  // Of the library itself: what loaded it keeps its symbols from all others.
  static const auto progress =
      reinterpret_cast<Progress>(dlsym(dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD), "ucp_worker_progress"));
  const unsigned events = progress(worker);
  fruitless = events == 0 ? fruitless + 1 : 0;
  return events;
}
#endif

__attribute__((visibility("default"))) int sched_yield() noexcept {
  Dl_info caller = {};
  const char* file = std::getenv("MIXDOWN_YIELDED");
  if (file != nullptr && fruitless <= kAtOnce && dladdr(__builtin_return_address(0), &caller) != 0 &&
      std::strstr(caller.dli_fname, "libmixdown_") != nullptr) {
    close(open(file, O_WRONLY | O_CREAT, 0600));
  }
  return static_cast<int>(syscall(SYS_sched_yield));
}
}
