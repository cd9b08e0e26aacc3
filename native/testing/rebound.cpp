// A library that calls another one's function: from its code, through a pointer in its
// data, and through one that it takes when it first runs.
#include <unistd.h>

static int (*volatile in_data)() = getppid;
static int (*volatile taken)() = nullptr;

extern "C" int called() { return getppid(); }
extern "C" int pointed() { return in_data(); }
extern "C" int kept() {
  if (taken == nullptr) taken = getppid;
  return taken();
}
