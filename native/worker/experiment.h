// Reading the experiment file.
#pragma once

#include <string>

#include "plan.pb.h"

namespace mixdown {

namespace pb = ::mixdown::plan::v1;

/// Version of plan.proto that this worker reads and writes.
inline constexpr uint32_t kSchemaVersion = 1;

/// Reads and parses the file. Throws std::runtime_error. The content is not yet
/// to be trusted: see validate.h.
pb::Experiment load_experiment(const std::string& path);

}  // namespace mixdown
