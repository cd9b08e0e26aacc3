// UCX alone: tagged messages of UCP, and collectives that the worker composes of them.
#include <ucp/api/ucp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "modules/ucx_communicator.h"
#include "modules/ucx_worker.h"

namespace mixdown {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostGroups = 1 << 16;  // that tags tell apart
constexpr size_t kMostMembers = 1 << 16;

class UcxBackend final : public Backend {
 public:
  std::string name() const override { return "ucx"; }

  std::string version() const override { return ucp_get_version_string(); }

  std::vector<std::string> notes() const override {
    const bool chosen = !settings_.transports.empty() || std::getenv("UCX_TLS") != nullptr;
    std::vector<std::string> notes = {
        "transports: " + UcxWorker::transports(settings_, "") +
            (chosen ? "" : ", or UCX's choice on several hosts") + "; UCX_TLS or settings as ucx:tcp choose others",
        "messages are UCP's (ucp_tag_send_nbx, ucp_tag_recv_nbx); collectives are composed of them: every member "
        "exchanges with every other, reductions are computed by mixdown's own functions",
        "gives up the processor while it polls when the host has more ranks than cores; MIXDOWN_YIELD=0 or 1 overrides",
    };
    if (!settings_.rendezvous.empty()) notes.push_back("rendezvous from " + settings_.rendezvous + " bytes on");
    return notes;
  }

  std::vector<Support> support() const override { return {}; }

  void configure(const std::string& settings) override { settings_ = UcxSettings::parse(settings); }

  void init(const World& world) override {
    world_ = world;
    worker_ = std::make_unique<UcxWorker>(settings_, world);
  }

  std::unique_ptr<Communicator> group(const std::string& id, const std::vector<int>& members) override {
    const auto self = std::find(members.begin(), members.end(), world_.rank);
    if (self == members.end()) throw std::runtime_error("ucx: this worker is not a member of group " + id);
    if (groups_ == kMostGroups || members.size() > kMostMembers) throw std::runtime_error("ucx: too many groups or members");
    const auto number = static_cast<uint16_t>(groups_++);
    const auto path = [&](int position) {
      return fs::path(world_.rendezvous) / ("ucx-" + id + "-" + std::to_string(position));
    };
    write(path(world_.rank), number);
    std::vector<UcxPeer> peers;
    for (const int position : members) peers.push_back(read(path(position), position));
    return make_ucx_communicator(*worker_, std::move(peers), static_cast<int>(self - members.begin()), *world_.arithmetic);
  }

  void finalize() override { worker_.reset(); }

 private:
  // Under another name until it is whole.
  void write(const fs::path& path, uint16_t number) const {
    const fs::path part = path.string() + ".tmp";
    std::ofstream file(part, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&number), sizeof number);
    file.write(worker_->address().data(), static_cast<std::streamsize>(worker_->address().size()));
    file.close();
    if (!file) throw std::runtime_error("ucx: cannot write " + part.string());
    fs::rename(part, path);
  }

  // No time-out: when a member is gone, the worker ends this process.
  UcxPeer read(const fs::path& path, int position) const {
    while (!fs::exists(path)) std::this_thread::sleep_for(std::chrono::microseconds(100));
    std::ifstream file(path, std::ios::binary);
    UcxPeer peer;
    file.read(reinterpret_cast<char*>(&peer.number), sizeof peer.number);
    const std::string address{std::istreambuf_iterator<char>(file), {}};
    if (!file || address.empty()) throw std::runtime_error("ucx: cannot read " + path.string());
    peer.endpoint = worker_->endpoint(position, address);
    return peer;
  }

  UcxSettings settings_;
  World world_;
  size_t groups_ = 0;
  std::unique_ptr<UcxWorker> worker_;
};

Backend* create() { return new UcxBackend; }

}  // namespace
}  // namespace mixdown

extern "C" const mixdown::Module* mixdown_module() {
  static const mixdown::Module module{mixdown::kBackendAbi, "ucx", "", false, &mixdown::create};
  return &module;
}
