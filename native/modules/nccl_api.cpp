#include "modules/nccl_api.h"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>

namespace mixdown::nccl {
namespace {

Api the_api;
bool loaded = false;

template <typename F>
void find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string(kTitle) + " has no " + name + ": 2.14 or later is needed");
}

}  // namespace

const Api& load() {
  if (loaded) return the_api;
  const char* path = std::getenv(kVariable);
  if (path == nullptr || *path == '\0') path = kFile;
  // Connections are made with the communicator, not when an algorithm is first
  // used, which would be a collective wait inside a call that only queues.
  setenv("NCCL_RUNTIME_CONNECT", "0", 0);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw std::runtime_error(std::string("no ") + kTitle + ": " + dlerror() + " (" + kVariable + " names another file)");
  }
  Api a;
  find(library, "ncclGetVersion", a.get_version);
  find(library, "ncclGetErrorString", a.error_string);
  find(library, "ncclGetLastError", a.last_error);
  find(library, "ncclGetUniqueId", a.get_unique_id);
  find(library, "ncclCommInitRankConfig", a.comm_init);
  find(library, "ncclCommDestroy", a.comm_destroy);
  find(library, "ncclAllReduce", a.all_reduce);
  find(library, "ncclReduce", a.reduce);
  find(library, "ncclBroadcast", a.broadcast);
  find(library, "ncclAllGather", a.all_gather);
  find(library, "ncclReduceScatter", a.reduce_scatter);
  find(library, "ncclSend", a.send);
  find(library, "ncclRecv", a.recv);
  find(library, "ncclGroupStart", a.group_start);
  find(library, "ncclGroupEnd", a.group_end);
  find(library, "ncclRedOpCreatePreMulSum", a.premul_sum);
  find(library, "ncclRedOpDestroy", a.op_destroy);
  the_api = a;
  loaded = true;
  return the_api;
}

void check(Result result, const char* call) {
  if (result == kSuccess) return;
  std::string text = std::string(call) + ": " + the_api.error_string(result);
  const char* detail = the_api.last_error(nullptr);
  if (detail != nullptr && *detail != '\0') text += std::string(": ") + detail;
  throw std::runtime_error(text);
}

std::string version() {
  int code = 0;
  check(load().get_version(&code), "ncclGetVersion");
  // Since 2.9 there are two digits for the minor version.
  const int major = code >= 10000 ? code / 10000 : code / 1000;
  const int minor = code >= 10000 ? code % 10000 / 100 : code % 1000 / 100;
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(code % 100);
}

}  // namespace mixdown::nccl
