#include "worker/modules.h"

#include <dlfcn.h>

#include <stdexcept>

namespace mixdown {

Backend& Modules::load(const std::string& instance) {
  const size_t colon = instance.find(':');
  const std::string name = instance.substr(0, colon);
  const std::string path = folder_ + "/libmixdown_" + name + ".so";
  const auto fail = [&](const std::string& why) { throw std::runtime_error("backend " + name + ": " + why); };
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(dlerror());
  using Entry = const Module* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "mixdown_module"));
  if (entry == nullptr) fail(path + " is not a mixdown module");
  const Module* module = entry();
  if (module == nullptr) fail(path + " describes no module");
  if (module->abi != kBackendAbi) {
    fail(path + " was built for interface version " + std::to_string(module->abi) + ", this worker has " +
         std::to_string(kBackendAbi));
  }
  if (name != module->name) fail(path + " calls itself " + module->name);
  if (const std::string family = module->family; !family.empty()) {
    const auto [entry, first] = families_.emplace(family, instance);
    if (!first) {
      fail("cannot be in one experiment with " + entry->second + ": a process can hold only one library of the family " +
           family);
    }
  }
  // Opening again without loading makes the symbols global, also those of the
  // libraries that the module needs.
  if (module->global && dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL) == nullptr) fail(dlerror());
  auto& backend = backends_[instance];
  backend.reset(module->create());
  if (colon != std::string::npos) backend->configure(instance.substr(colon + 1));
  return *backend;
}

}  // namespace mixdown
