#include "modules/ucx_worker.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "modules/patience.h"

namespace mixdown {
namespace {

constexpr int kPatience = 100;                        // fruitless polls before the processor is given up
constexpr auto kNap = std::chrono::milliseconds(1);   // of the thread that sees things through
constexpr ucp_tag_t kAllBits = ~ucp_tag_t{0};

void check(ucs_status_t status, const char* call) {
  if (status != UCS_OK) throw std::runtime_error(std::string("ucx: ") + call + ": " + ucs_status_string(status));
}

// Adds what a call began to the requests, unless it has ended at once.
void keep(ucs_status_ptr_t began, const char* call, std::vector<void*>& requests) {
  if (UCS_PTR_IS_ERR(began)) check(UCS_PTR_STATUS(began), call);
  if (began != nullptr) requests.push_back(began);
}

// Removes those that have ended from the end of the list; the first of them that failed,
// UCS_OK if none.
ucs_status_t remove_ended(std::vector<void*>& requests) {
  while (!requests.empty()) {
    const ucs_status_t status = ucp_request_check_status(requests.back());
    if (status == UCS_INPROGRESS) return UCS_OK;
    ucp_request_free(requests.back());
    requests.pop_back();
    if (status != UCS_OK) return status;
  }
  return UCS_OK;
}

class Config {
 public:
  Config() { check(ucp_config_read(nullptr, nullptr, &config_), "ucp_config_read"); }
  ~Config() { ucp_config_release(config_); }
  Config(const Config&) = delete;
  Config& operator=(const Config&) = delete;

  // "" leaves it as the environment has it.
  void set(const char* name, const std::string& value) {
    if (!value.empty()) check(ucp_config_modify(config_, name, value.c_str()), name);
  }
  ucp_config_t* get() const { return config_; }

 private:
  ucp_config_t* config_ = nullptr;
};

}  // namespace

std::string UcxWorker::transports(const UcxSettings& settings, const std::string& interface) {
  // A rank may send to itself.
  if (!settings.transports.empty()) return "self," + settings.transports;
  if (const char* wanted = std::getenv("UCX_TLS")) return wanted;
  return interface.empty() ? "self,sm" : "";
}

UcxWorker::UcxWorker(const UcxSettings& settings, const World& world) : crowded_(shares_cores(world.local_size)) {
  Config config;
  config.set("TLS", transports(settings, world.interface));
  config.set("RNDV_THRESH", settings.rendezvous);
  config.set("NET_DEVICES", world.interface);

  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  params.features = UCP_FEATURE_TAG;
  params.estimated_num_eps = static_cast<size_t>(world.size);
  check(ucp_init(&params, config.get(), &context_), "ucp_init");

  ucp_worker_params_t worker = {};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  check(ucp_worker_create(context_, &worker, &worker_), "ucp_worker_create");

  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  check(ucp_worker_get_address(worker_, &address, &bytes), "ucp_worker_get_address");
  address_.assign(reinterpret_cast<const char*>(address), bytes);
  ucp_worker_release_address(worker_, address);
  tender_ = std::thread([this] { tend(); });
}

UcxWorker::~UcxWorker() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  tender_.join();
  ucp_request_param_t param = {};
  for (const auto& [position, endpoint] : endpoints_) {
    // An error has nowhere to go, and the connection goes anyway.
    ucs_status_ptr_t closing = ucp_ep_close_nbx(endpoint, &param);
    if (closing == nullptr || UCS_PTR_IS_ERR(closing)) continue;
    while (ucp_request_check_status(closing) == UCS_INPROGRESS) ucp_worker_progress(worker_);
    ucp_request_free(closing);
  }
  ucp_worker_destroy(worker_);
  ucp_cleanup(context_);
}

ucp_ep_h UcxWorker::endpoint(int position, const std::string& address) {
  const std::lock_guard lock(mutex_);
  if (const auto known = endpoints_.find(position); known != endpoints_.end()) return known->second;
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  ucp_ep_h made = nullptr;
  check(ucp_ep_create(worker_, &params, &made), "ucp_ep_create");
  endpoints_.emplace(position, made);
  return made;
}

void UcxWorker::exchange(const std::vector<Message>& messages) {
  // One for each thread that calls: grows to the most and stays.
  thread_local std::vector<void*> requests;
  requests.clear();
  ucp_request_param_t param = {};
  {
    const std::lock_guard lock(mutex_);
    settle();
    if (!error_.empty()) throw std::runtime_error(error_);
    for (const bool sends : {false, true}) {
      for (const Message& m : messages) {
        if (m.send != sends) continue;
        if (m.send) {
          keep(ucp_tag_send_nbx(m.peer, m.buffer, m.bytes, m.tag, &param), "ucp_tag_send_nbx", requests);
        } else {
          keep(ucp_tag_recv_nbx(worker_, m.buffer, m.bytes, m.tag, kAllBits, &param), "ucp_tag_recv_nbx", requests);
        }
      }
    }
  }
  for (int fruitless = 0;; ++fruitless) {
    {
      const std::lock_guard lock(mutex_);
      check(remove_ended(requests), "a message");
      if (requests.empty()) return flush(messages);
      if (ucp_worker_progress(worker_) != 0) fruitless = 0;
    }
    if (fruitless > 0 && (crowded_ || fruitless > kPatience)) sched_yield();
  }
}

// With the lock held. Nearly always there is nothing to be seen through.
void UcxWorker::flush(const std::vector<Message>& messages) {
  ucp_request_param_t param = {};
  const size_t before = leftovers_.size();
  ucp_ep_h last = nullptr;
  for (const Message& m : messages) {
    if (m.peer != last) keep(ucp_ep_flush_nbx(m.peer, &param), "ucp_ep_flush_nbx", leftovers_);
    last = m.peer;
  }
  if (leftovers_.size() > before) changed_.notify_all();
}

// With the lock held: forgets what has been seen through.
void UcxWorker::settle() {
  const ucs_status_t status = remove_ended(leftovers_);
  if (status != UCS_OK) error_ = std::string("ucx: a message could not be handed over: ") + ucs_status_string(status);
}

void UcxWorker::tend() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return quit_ || !leftovers_.empty(); });
    if (leftovers_.empty()) return;
    // Mostly the next message of this process does it.
    lock.unlock();
    std::this_thread::sleep_for(kNap);
    lock.lock();
    ucp_worker_progress(worker_);
    settle();
  }
}

}  // namespace mixdown
