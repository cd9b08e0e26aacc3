#include <cstdio>
#include <exception>

#include "worker/arguments.h"
#include "worker/exit.h"
#include "worker/probe.h"
#include "worker/run.h"

int main(int argc, char** argv) {
  mixdown::Arguments arguments;
  try {
    arguments = mixdown::parse_arguments(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mixdown-worker: %s\n%s", error.what(), mixdown::usage());
    return mixdown::kUsage;
  }
  if (!arguments.probe_device.empty()) return mixdown::probe_device(arguments.probe_device);
  if (!arguments.probe_codec.empty()) return mixdown::probe_codec();
  return arguments.probe.empty() ? mixdown::run(arguments) : mixdown::probe(arguments);
}
