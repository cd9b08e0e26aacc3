// Loading backends.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "mixdown/backend.h"

namespace mixdown {

/// The backends of this process. They are never unloaded: libraries leave threads
/// and exit handlers behind.
class Modules {
 public:
  explicit Modules(std::string folder) : folder_(std::move(folder)) {}

  /// Makes the backend that a plan calls NAME or NAME:SETTINGS, of
  /// libmixdown_NAME.so. Throws std::runtime_error
  /// when it is missing, was built for another version, or cannot be together with
  /// one that is loaded already.
  Backend& load(const std::string& instance);

  Backend& operator[](const std::string& instance) { return *backends_.at(instance); }
  auto begin() { return backends_.begin(); }
  auto end() { return backends_.end(); }
  void clear() { backends_.clear(); }

 private:
  std::string folder_;
  std::map<std::string, std::unique_ptr<Backend>> backends_;
  std::map<std::string, std::string> families_;  // family -> name of its loaded member
};

}  // namespace mixdown
