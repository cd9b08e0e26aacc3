#include "modules/gloo_backend.h"

extern "C" const mixdown::Module* mixdown_module() {
  static const mixdown::Module module{mixdown::kBackendAbi, "gloo", "", false, &mixdown::make_gloo_backend};
  return &module;
}
