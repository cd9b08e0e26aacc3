// Gloo over TCP: one context, and so one full mesh of sockets, for each group.
#include "modules/gloo_backend.h"

#include <gloo/config.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "modules/gloo_communicator.h"

namespace mixdown {
namespace {

// A hang is the launcher's business, which sees all ranks: Gloo's own time-out
// must never come first.
constexpr auto kForever = std::chrono::hours(24 * 7);

class GlooBackend final : public Backend {
 public:
  std::string name() const override { return "gloo"; }

  std::string version() const override {
    return std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) + "." +
           std::to_string(GLOO_VERSION_PATCH);
  }

  std::vector<std::string> notes() const override {
    return {
        "transport: tcp; Gloo has none for shared memory, and what it has for InfiniBand lacks the messages that its "
        "newer collectives are made of",
        "elements are reduced by mixdown's own functions, between Gloo's messages",
        "avg is a sum and a local division, premul_sum a local multiplication and a sum",
        "all_to_all(v), gather and scatter in place copy what would be overwritten aside",
        "operations without elements return at once",
    };
  }

  std::vector<Support> support() const override {
    std::vector<Support> all;
    for (const char* op : {"all_reduce", "reduce", "broadcast", "all_gather", "all_gatherv", "all_to_all",
                           "all_to_allv", "gather", "scatter", "barrier", "send", "recv", "batch"}) {
      all.push_back({op, true, ""});
    }
    // PyTorch's Gloo has an all_reduce of the whole input here, which is slower.
    all.push_back({"reduce_scatter", false, "all_to_all and a local reduction"});
    all.push_back({"reduce_scatterv", false, "all_to_allv and a local reduction"});
    return all;
  }

  void init(const World& world) override {
    world_ = world;
    gloo::transport::tcp::attr attr;
    if (world.interface.empty()) {
      attr.hostname = "127.0.0.1";
    } else {
      attr.iface = world.interface;
    }
    device_ = gloo::transport::tcp::CreateDevice(attr);
    store_ = std::make_unique<gloo::rendezvous::FileStore>(world.rendezvous);
  }

  std::unique_ptr<Communicator> group(const std::string& id, const std::vector<int>& members) override {
    const auto self = std::find(members.begin(), members.end(), world_.rank);
    if (self == members.end()) throw std::runtime_error("gloo: this worker is not a member of group " + id);
    auto context = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(self - members.begin()),
                                                               static_cast<int>(members.size()));
    context->setTimeout(kForever);
    gloo::rendezvous::PrefixStore store("gloo-" + id, *store_);
    context->connectFullMesh(store, device_);
    return make_gloo_communicator(std::move(context), *world_.arithmetic);
  }

  void finalize() override {
    store_.reset();
    device_.reset();
  }

 private:
  World world_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::unique_ptr<gloo::rendezvous::FileStore> store_;
};

}  // namespace

Backend* make_gloo_backend() { return new GlooBackend; }

}  // namespace mixdown
