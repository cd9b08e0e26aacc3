// rebind: the calls of one library go elsewhere, and those of nobody else. Prints
// what is wrong, and nothing else.
#include "modules/rebind.h"

#include <unistd.h>

#include <cstdio>

extern "C" int called();
extern "C" int pointed();
extern "C" int kept();

namespace {

constexpr int kElsewhere = -17;
int elsewhere() { return kElsewhere; }

int wrong = 0;

void expect(const char* what, int got, int want) {
  if (got == want) return;
  std::printf("%s: %d, want %d\n", what, got, want);
  wrong = 1;
}

}  // namespace

int main() {
  const int parent = getppid();
  expect("before", called(), parent);
  expect("a pointer taken before", kept(), parent);
  expect("of a library that is not there", mixdown::rebind("libnone.so", "getppid", reinterpret_cast<void*>(elsewhere)), 0);
  expect("of a function that it does not call", mixdown::rebind("librebound.so", "getpgrp", reinterpret_cast<void*>(elsewhere)), 0);
  expect("still before", called(), parent);
  for (int i = 0; i < 2; ++i) {
    const int places = mixdown::rebind("librebound.so", "getppid", reinterpret_cast<void*>(elsewhere));
    expect("some places", places > 0, 1);
    expect("after", called(), kElsewhere);
  }
  expect("a pointer of its data", pointed(), kElsewhere);
  expect("a pointer taken before, after", kept(), parent);
  expect("others", getppid(), parent);
  return wrong;
}
