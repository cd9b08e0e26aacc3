#include "worker/experiment.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace mixdown {

pb::Experiment load_experiment(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw std::runtime_error("experiment " + path + ": " + std::strerror(errno));
  // Says on stderr, among others, which limit a file exceeds; we have our own
  // words for it.
  google::protobuf::LogSilencer silence;
  pb::Experiment experiment;
  const bool parsed = experiment.ParseFromFileDescriptor(file);
  close(file);
  if (!parsed) throw std::runtime_error("experiment " + path + ": not a protobuf of this version, or cut off");
  return experiment;
}

}  // namespace mixdown
