// NCCL, or RCCL (nccl_api.h). The members of a group find each other by a file in the rendezvous folder.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "device/api.h"
#include "modules/nccl_api.h"
#include "modules/nccl_communicator.h"
#include "modules/nccl_settings.h"

namespace mixdown {
namespace {

// The id of a communicator: member 0 leaves it in a file, whole or not at all.
nccl::UniqueId exchange(const std::string& path, bool first) {
  nccl::UniqueId id = {};
  if (first) {
    nccl::check(nccl::load().get_unique_id(&id), "ncclGetUniqueId");
    std::ofstream file(path + ".tmp", std::ios::binary);
    file.write(id.internal, sizeof id.internal);
    file.close();
    if (!file) throw std::runtime_error(std::string(nccl::kName) + ": cannot write " + path);
    std::filesystem::rename(path + ".tmp", path);
    return id;
  }
  // A member that never comes is the launcher's business, which sees all ranks.
  while (!std::filesystem::exists(path)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::ifstream file(path, std::ios::binary);
  if (!file.read(id.internal, sizeof id.internal)) throw std::runtime_error(std::string(nccl::kName) + ": cannot read " + path);
  return id;
}

class NcclBackend final : public Backend {
 public:
  // A driver and a library must be there even to say the version: a backend that
  // cannot run here has a reason, not a version.
  NcclBackend() {
    device::load(nccl::kPlatform);
    nccl::load();
  }

  std::string name() const override { return nccl::kName; }
  std::string version() const override { return nccl::version(); }
  bool stream_ordered() const override { return true; }
  std::string device() const override { return device::load(nccl::kPlatform).kind; }

  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = {
        std::string("messages pair up in the order of their calls: ") + nccl::kTitle + " knows no tags",
        "16-bit integers are moved as bytes and not reduced; there are no bitwise reductions",
        "all_to_all(v) in place copies its input aside, on the device",
    };
    if (!settings_.algorithm.empty()) notes.push_back("NCCL_ALGO=" + settings_.algorithm);
    if (!settings_.protocol.empty()) notes.push_back("NCCL_PROTO=" + settings_.protocol);
    if (settings_.channels > 0) notes.push_back("minCTAs = maxCTAs = " + std::to_string(settings_.channels));
    return notes;
  }

  std::vector<Support> support() const override {
    return {
        {"all_reduce", true, ""},
        {"reduce", true, ""},
        {"broadcast", true, ""},
        {"all_gather", true, ""},
        {"reduce_scatter", true, ""},
        {"send", true, ""},
        {"recv", true, ""},
        {"batch", true, ""},
        {"all_gatherv", false, "grouped broadcasts"},
        {"reduce_scatterv", false, "grouped reduces"},
        {"all_to_all", false, "grouped sends and receives"},
        {"all_to_allv", false, "grouped sends and receives"},
        {"gather", false, "grouped sends and receives"},
        {"gatherv", false, "grouped sends and receives"},
        {"scatter", false, "grouped sends and receives"},
        {"scatterv", false, "grouped sends and receives"},
        {"barrier", false, "all_reduce of one element"},
    };
  }

  void configure(const std::string& settings) override { settings_ = NcclSettings::parse(settings, name()); }

  void init(const World& world) override { world_ = world; }

  std::unique_ptr<Communicator> group(const std::string& id, const std::vector<int>& members) override {
    const auto self = std::find(members.begin(), members.end(), world_.rank);
    if (self == members.end()) throw std::runtime_error(name() + ": this worker is not a member of group " + id);
    const int rank = static_cast<int>(self - members.begin());
    const nccl::UniqueId unique = exchange(world_.rendezvous + "/" + name() + "-" + id, rank == 0);
    nccl::Config config;
    if (settings_.channels > 0) config.min_ctas = config.max_ctas = settings_.channels;
    const NcclEnvironment environment(settings_);
    nccl::Comm comm = nullptr;
    nccl::check(nccl::load().comm_init(&comm, static_cast<int>(members.size()), unique, rank, &config),
                "ncclCommInitRankConfig");
    return make_nccl_communicator(comm, rank, static_cast<int>(members.size()), *world_.arithmetic);
  }

  void finalize() override {}

 private:
  World world_;
  NcclSettings settings_;
};

Backend* create() { return new NcclBackend; }

}  // namespace
}  // namespace mixdown

extern "C" const mixdown::Module* mixdown_module() {
  static const mixdown::Module module{mixdown::kBackendAbi, mixdown::nccl::kName, "", false, &mixdown::create};
  return &module;
}
