#include "worker/arguments.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace mixdown {
namespace {

int int_of(const std::string& text, const std::string& what) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw std::invalid_argument(what + " must be a number from 0, not \"" + text + "\"");
  }
  return value;
}

int index_from_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (const char* value = std::getenv(name)) return int_of(value, name);
  }
  throw std::invalid_argument("no --index, and the environment has none of OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK");
}

}  // namespace

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name.rfind("--", 0) != 0) throw std::invalid_argument("unexpected argument \"" + name + "\"");
    if (i + 1 == argc) throw std::invalid_argument(name + " needs a value, or is unknown");
    const std::string value = argv[++i];
    if (name == "--experiment") {
      arguments.experiment = value;
    } else if (name == "--control") {
      arguments.control = value;
    } else if (name == "--out") {
      arguments.out = value;
    } else if (name == "--modules") {
      arguments.modules = value;
    } else if (name == "--interface") {
      arguments.interface = value;
    } else if (name == "--probe") {
      arguments.probe = value;
    } else if (name == "--probe-device") {
      if (value != "cuda" && value != "hip") throw std::invalid_argument("--probe-device " + value + ": known are cuda, hip");
      arguments.probe_device = value;
    } else if (name == "--probe-codec") {
      if (value != "zfp") throw std::invalid_argument("--probe-codec " + value + ": known is zfp");
      arguments.probe_codec = value;
    } else if (name == "--index") {
      arguments.index = int_of(value, name);
    } else if (name == "--local-index") {
      arguments.local_index = int_of(value, name);
    } else if (name == "--local-size") {
      arguments.local_size = int_of(value, name);
    } else {
      throw std::invalid_argument("unknown option " + name);
    }
  }
  if (arguments.modules.empty()) {
    arguments.modules = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  }
  if (!arguments.probe.empty() || !arguments.probe_device.empty() || !arguments.probe_codec.empty()) return arguments;
  if (arguments.experiment.empty()) throw std::invalid_argument("--experiment is missing");
  if (arguments.control.empty()) throw std::invalid_argument("--control is missing");
  if (arguments.out.empty()) throw std::invalid_argument("--out is missing");
  if (arguments.index < 0) arguments.index = index_from_environment();
  if (arguments.local_index < 0) arguments.local_index = arguments.index;
  return arguments;
}

const char* usage() {
  return "usage: mixdown-worker --experiment FILE --control FILE --out DIR\n"
         "                      [--index N] [--local-index N] [--local-size N]\n"
         "                      [--modules DIR] [--interface NAME]\n"
         "       mixdown-worker --probe BACKEND [--modules DIR]\n"
         "       mixdown-worker --probe-device cuda|hip\n"
         "       mixdown-worker --probe-codec zfp\n"
         "\n"
         "Runs one rank of an experiment. Started by mixdown, one process for each rank.\n";
}

}  // namespace mixdown
