// The worker's command line.
#pragma once

#include <string>

namespace mixdown {

struct Arguments {
  std::string experiment;
  std::string control;
  std::string out;
  std::string modules;    ///< folder of the backend modules; by default that of the executable
  std::string interface;  ///< network interface for backends without a launcher of their own
  std::string probe;      ///< name of a backend to describe; nothing else is done then
  std::string probe_device;  ///< kind of device to describe: "cuda" or "hip"; nothing else is done then
  std::string probe_codec;  ///< name of a codec to describe: "zfp"; nothing else is done then
  int index = -1;         ///< this worker's position
  int local_index = -1;   ///< its position among those of this host, whose GPUs they share; by default index
  int local_size = 0;     ///< workers on this host, 0 when all are
};

/// Reads the command line and, for the index, the environment that mpirun
/// sets. Throws std::invalid_argument.
Arguments parse_arguments(int argc, char** argv);

/// One screen of help.
const char* usage();

}  // namespace mixdown
