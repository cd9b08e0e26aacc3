#include "worker/probe.h"

#include <cstdio>
#include <exception>

#include "worker/exit.h"
#include "worker/modules.h"

namespace mixdown {
namespace {

std::string quoted(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", c);
      json += escape;
    } else {
      json += c;
    }
  }
  return json + '"';
}

}  // namespace

int probe(const Arguments& arguments) {
  try {
    Modules modules(arguments.modules);
    Backend& backend = modules.load(arguments.probe);
    std::string notes;
    for (const auto& note : backend.notes()) notes += (notes.empty() ? "" : ",") + quoted(note);
    std::printf("{\"name\":%s,\"version\":%s,\"notes\":[%s]}\n", quoted(backend.name()).c_str(),
                quoted(backend.version()).c_str(), notes.c_str());
    return kDone;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mixdown-worker: %s\n", error.what());
    return kUsage;
  }
}

}  // namespace mixdown
