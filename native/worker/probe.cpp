#include "worker/probe.h"

#include <cstdio>
#include <exception>

#include "codec/codec.h"
#include "device/gpu.h"
#include "worker/exit.h"
#include "worker/modules.h"
#include "worker/ops.h"

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

// The operations in the order of the plan's enum, each with how the backend does
// it.
std::string operations(const Backend& backend) {
  const std::vector<Support> overridden = backend.support();
  std::string json;
  for (int number = pb::Op_MIN; number <= pb::Op_MAX; ++number) {
    if (number == pb::OP_UNSPECIFIED || !pb::Op_IsValid(number)) continue;
    const std::string op = name_of(static_cast<pb::Op>(number));
    const bool message = point_to_point(static_cast<pb::Op>(number));
    // What a communicator does that overrides nothing but batch.
    Support support{"", message, "point-to-point messages"};
    for (const Support& s : overridden) {
      if (op == s.op) support = s;
    }
    json += std::string(json.empty() ? "" : ",") + "{\"op\":" + quoted(op) +
            ",\"native\":" + (support.native ? "true" : "false");
    if (!support.native) json += ",\"composed_of\":" + quoted(support.how);
    json += "}";
  }
  return json;
}

std::string switches(const Backend& backend) {
  std::string json;
  const auto list = [](const auto& names, auto name) {
    std::string text;
    for (const auto& n : names) text += (text.empty() ? "" : ",") + quoted(name(n));
    return "[" + text + "]";
  };
  for (const Switch& s : backend.switches()) {
    json += std::string(json.empty() ? "" : ",") + "{\"name\":" + quoted(s.name) +
            ",\"operations\":" + list(s.operations, [](const std::string& op) { return op; }) +
            ",\"except\":" + list(s.except, [](DType d) { return std::string(name_of(static_cast<pb::DType>(d))); }) + "}";
  }
  return json;
}

}  // namespace

int probe(const Arguments& arguments) {
  try {
    Modules modules(arguments.modules);
    Backend& backend = modules.load(arguments.probe);
    std::string notes;
    for (const auto& note : backend.notes()) notes += (notes.empty() ? "" : ",") + quoted(note);
    std::printf("{\"name\":%s,\"version\":%s,\"notes\":[%s],\"switches\":[%s],\"operations\":[%s]}\n",
                quoted(backend.name()).c_str(), quoted(backend.version()).c_str(), notes.c_str(), switches(backend).c_str(),
                operations(backend).c_str());
    return kDone;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mixdown-worker: %s\n", error.what());
    return kUsage;
  }
}

int probe_device(const std::string& kind) {
  try {
    const Gpu gpu(device::platform_of(kind), 0);
    int count = 0;
    gpu.check(gpu.api().device_count(&count), "counting devices");
    std::printf("{\"count\":%d,\"name\":%s,\"driver\":%s,\"emulated\":%s}\n", count, quoted(gpu.name()).c_str(),
                quoted(gpu.driver_version()).c_str(), gpu.emulated() ? "true" : "false");
    return kDone;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mixdown-worker: %s\n", error.what());
    return kUsage;
  }
}

int probe_codec() {
  try {
    std::printf("{\"version\":%s}\n", quoted(zfp_version()).c_str());
    return kDone;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mixdown-worker: %s\n", error.what());
    return kUsage;
  }
}

}  // namespace mixdown
