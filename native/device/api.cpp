#include "device/api.h"

#include <dlfcn.h>

#include <stdexcept>

namespace mixdown::device {
namespace {

struct Loaded {
  Api api;
  bool ready = false;
};
Loaded loaded[2];  // by platform

}  // namespace

void* look_up(void* library, const char* file, const char* name) {
  void* found = dlsym(library, name);
  if (found == nullptr) throw std::runtime_error(std::string(file) + " has no " + name + ": it is too old");
  return found;
}

const Api& load(Platform platform) {
  Loaded& l = loaded[static_cast<int>(platform)];
  if (l.ready) return l.api;
  l.api = {};
  l.api.platform = platform;
  if (platform == Platform::kCuda) {
    find_cuda(l.api);
  } else {
    find_hip(l.api);
  }
  l.api.check(l.api.init(0), "initialising");
  int count = 0;
  l.api.check(l.api.device_count(&count), "counting devices");
  if (count == 0) throw std::runtime_error(std::string(l.api.name) + " finds no GPU");
  l.ready = true;
  return l.api;
}

Platform platform_of(const std::string& kind) {
  if (kind == "cuda") return Platform::kCuda;
  if (kind == "hip") return Platform::kHip;
  throw std::runtime_error("unknown kind of device \"" + kind + "\": known are cuda and hip");
}

void Api::check(Result result, const char* what) const {
  if (result == kSuccess) return;
  throw std::runtime_error(std::string(name) + ": " + what + ": " + error_text(result));
}

}  // namespace mixdown::device
