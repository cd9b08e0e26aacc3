// UCX alone, in a tight loop of its own API. It has messages only: collectives are not
// its own, so there is nothing to compare them with. Waits as the module does.
#include <sched.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <vector>

#include "bench/loop.h"

namespace {

namespace fs = std::filesystem;

void check(ucs_status_t status, const char* call) {
  if (status != UCS_OK) throw std::runtime_error(std::string(call) + ": " + ucs_status_string(status));
}

class Ucx {
 public:
  explicit Ucx(const alone::Options& options)
      : rank_(options.rank), yields_(options.size > sysconf(_SC_NPROCESSORS_ONLN)), peers_(static_cast<size_t>(options.size)) {
    ucp_config_t* config = nullptr;
    check(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    ucp_context_h context = nullptr;
    check(ucp_init(&params, config, &context), "ucp_init");
    ucp_config_release(config);
    ucp_worker_params_t worker = {};
    worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker.thread_mode = UCS_THREAD_MODE_SINGLE;
    check(ucp_worker_create(context, &worker, &worker_), "ucp_worker_create");
    connect(options.dir);
  }

  void send(const void* data, size_t bytes, int peer) {
    wait(ucp_tag_send_nbx(peers_[static_cast<size_t>(peer)], data, bytes, static_cast<ucp_tag_t>(rank_), &plain_));
  }

  void receive(void* data, size_t bytes, int peer) {
    wait(ucp_tag_recv_nbx(worker_, data, bytes, static_cast<ucp_tag_t>(peer), ~ucp_tag_t{0}, &plain_));
  }

  void barrier() {
    char token = 0;
    const int size = static_cast<int>(peers_.size());
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank_) send(&token, 1, peer);
    }
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank_) receive(&token, 1, peer);
    }
  }

 private:
  void connect(const std::string& dir) {
    ucp_address_t* address = nullptr;
    size_t bytes = 0;
    check(ucp_worker_get_address(worker_, &address, &bytes), "ucp_worker_get_address");
    const auto path = [&](int rank) { return fs::path(dir) / ("ucx." + std::to_string(rank)); };
    std::ofstream(path(rank_).string() + ".part").write(reinterpret_cast<const char*>(address), static_cast<long>(bytes));
    fs::rename(path(rank_).string() + ".part", path(rank_));
    for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
      while (!fs::exists(path(rank))) usleep(1000);
      std::ifstream file(path(rank), std::ios::binary);
      const std::string theirs{std::istreambuf_iterator<char>(file), {}};
      ucp_ep_params_t params = {};
      params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
      params.address = reinterpret_cast<const ucp_address_t*>(theirs.data());
      check(ucp_ep_create(worker_, &params, &peers_[static_cast<size_t>(rank)]), "ucp_ep_create");
    }
  }

  void wait(ucs_status_ptr_t request) const {
    if (UCS_PTR_IS_ERR(request)) check(UCS_PTR_STATUS(request), "a message");
    if (request == nullptr) return;
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
      if (ucp_worker_progress(worker_) == 0 && yields_) sched_yield();
    }
    ucp_request_free(request);
  }

  const int rank_;
  const bool yields_;
  ucp_worker_h worker_ = nullptr;
  std::vector<ucp_ep_h> peers_;
  const ucp_request_param_t plain_ = {};
};

std::function<void()> make(Ucx& ucx, int rank, const alone::Case& c, char* in, char* out) {
  if (c.op != "send_recv") throw std::runtime_error("UCX has no " + c.op);
  const auto bytes = static_cast<size_t>(c.bytes);
  const int peer = rank ^ 1;
  if (rank % 2 == 0) {
    return [=, &ucx] {
      ucx.send(in, bytes, peer);
      ucx.receive(out, bytes, peer);
    };
  }
  return [=, &ucx] {
    ucx.receive(out, bytes, peer);
    ucx.send(in, bytes, peer);
  };
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const alone::Options options = alone::parse(argc, argv);
    Ucx ucx(options);
    alone::Library library;
    library.rank = options.rank;
    library.size = options.size;
    library.barrier = [&] { ucx.barrier(); };
    library.make = [&](const alone::Case& c, char* in, char* out) { return make(ucx, options.rank, c, in, out); };
    alone::run(options, library);
    library.barrier();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "UCX alone: %s\n", error.what());
    return 1;
  }
}
