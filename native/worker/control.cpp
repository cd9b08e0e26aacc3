#include "worker/control.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <stdexcept>

#include "worker/exit.h"
#include "worker/futex.h"

namespace mixdown {

namespace {

constexpr size_t kPage = 4096;
constexpr int kShownStreams = 62;
constexpr int64_t kLookAgain = 100'000'000;  // ns between looks at the stop flag

struct Stream {
  std::atomic<int32_t> task;
  std::atomic<uint32_t> state;
  std::atomic<int64_t> since;
  char unused[32];
};
static_assert(sizeof(Stream) == 48);

}  // namespace

struct Control::Header {
  char magic[8];
  uint32_t version;
  uint32_t workers;
  int64_t launcher;
  std::atomic<uint32_t> stop;
  std::atomic<uint32_t> arrived;
  std::atomic<uint32_t> generation;
  uint32_t here;  // workers on this host when the launcher opens the barrier, else 0
  std::atomic<int64_t> start;
};

struct Control::Slot {
  std::atomic<int64_t> pid;
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> streams;
  std::atomic<int32_t> plan;
  std::atomic<int32_t> iteration;
  std::atomic<uint64_t> ended;
  char message[992];
  Stream stream[kShownStreams];
};

Control::Control(const std::string& path, int index) : first_(index == 0) {
  static_assert(offsetof(Header, stop) == 24 && offsetof(Header, generation) == 32 && offsetof(Header, start) == 40);
  static_assert(offsetof(Slot, ended) == 24 && offsetof(Slot, message) == 32 && offsetof(Slot, stream) == 1024);
  static_assert(sizeof(Slot) <= kPage);
  static_assert(std::atomic<int64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

  const auto fail = [&](const std::string& why) { throw std::runtime_error("control file " + path + ": " + why); };
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) fail(std::strerror(errno));
  struct stat info;
  const bool known = fstat(file, &info) == 0;
  if (!known || static_cast<size_t>(info.st_size) < kPage) {
    close(file);
    fail("shorter than its header; the launcher makes it");
  }
  void* memory = mmap(nullptr, info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) fail(std::strerror(errno));
  header_ = static_cast<Header*>(memory);
  if (std::memcmp(header_->magic, "MXDNCTL1", 8) != 0) fail("not a control file");
  if (header_->version != 1) fail("layout version " + std::to_string(header_->version) + ", this worker knows 1");
  if (static_cast<uint64_t>(info.st_size) < kPage * (1 + uint64_t{header_->workers})) fail("too short for its workers");
  if (index < 0 || static_cast<uint32_t>(index) >= header_->workers) {
    fail("no slot " + std::to_string(index) + ", it has " + std::to_string(header_->workers));
  }
  slot_ = reinterpret_cast<Slot*>(static_cast<char*>(memory) + kPage * (1 + static_cast<size_t>(index)));
  for (int i = 0; i < kShownStreams; ++i) set_stream(i, -1, StreamState::kIdle, 0);
  slot_->pid.store(getpid());
  set_state(WorkerState::kStarting, 0, 0);
}

int Control::workers() const { return static_cast<int>(header_->workers); }

int64_t Control::launcher() const { return header_->launcher; }

bool Control::stopping() const { return header_->stop.load(std::memory_order_relaxed) != 0; }

void Control::request_stop() { header_->stop.store(1); }

void Control::set_state(WorkerState state, int plan, int iteration) {
  slot_->plan.store(plan, std::memory_order_relaxed);
  slot_->iteration.store(iteration, std::memory_order_relaxed);
  // How the worker ended stays, though its threads may run on for a moment.
  uint32_t seen = slot_->state.load(std::memory_order_relaxed);
  while (seen < static_cast<uint32_t>(WorkerState::kFailed) &&
         !slot_->state.compare_exchange_weak(seen, static_cast<uint32_t>(state), std::memory_order_release)) {
  }
}

void Control::set_streams(int streams) { slot_->streams.store(static_cast<uint32_t>(streams)); }

void Control::set_stream(int stream, int task, StreamState state, int64_t since) {
  if (stream >= kShownStreams) return;
  Stream& shown = slot_->stream[stream];
  shown.task.store(task, std::memory_order_relaxed);
  shown.state.store(static_cast<uint32_t>(state), std::memory_order_relaxed);
  shown.since.store(since, std::memory_order_relaxed);
}

void Control::count_task(bool alone) {
  if (!alone) {
    slot_->ended.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  slot_->ended.store(slot_->ended.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void Control::set_failed(const char* message) {
  size_t length = std::strlen(message);
  if (length > sizeof(slot_->message) - 1) {
    length = sizeof(slot_->message) - 1;
    // Do not end within a UTF-8 sequence.
    while (length > 0 && (message[length] & 0xc0) == 0x80) --length;
  }
  std::memcpy(slot_->message, message, length);
  slot_->message[length] = '\0';
  slot_->state.store(static_cast<uint32_t>(WorkerState::kFailed), std::memory_order_release);
}

void Control::set_terminated() { slot_->state.store(static_cast<uint32_t>(WorkerState::kTerminated)); }

void Control::set_left() { slot_->state.store(static_cast<uint32_t>(WorkerState::kLeft)); }

int64_t Control::barrier(int64_t margin_ns) {
  const uint32_t generation = header_->generation.load();
  const bool launcher_opens = header_->here != 0;
  const uint32_t awaited = launcher_opens ? header_->here : header_->workers - 1;
  if (first_ && !launcher_opens) {
    // Worker 0 opens it, so that the start time is as fresh as can be.
    for (uint32_t seen; (seen = header_->arrived.load()) < awaited;) {
      if (stopping()) leave();
      futex_wait(header_->arrived, seen, Scope::kShared, kLookAgain);
    }
    header_->arrived.store(0);
    header_->start.store(now_ns() + margin_ns);
    header_->generation.store(generation + 1);
    futex_wake(header_->generation, Scope::kShared);
  } else {
    if (header_->arrived.fetch_add(1) + 1 == awaited) futex_wake(header_->arrived, Scope::kShared);
    while (header_->generation.load() == generation) {
      if (stopping()) leave();
      futex_wait(header_->generation, generation, Scope::kShared, kLookAgain);
    }
  }
  return header_->start.load();
}

}  // namespace mixdown
