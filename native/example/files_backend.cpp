// A complete backend in one file, as somebody outside of mixdown would write it:
// messages are files in the folder that all workers share. Slow, but easy to
// follow; ../README.md walks through it.
#include <mixdown/backend.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace {

namespace fs = std::filesystem;

class FilesCommunicator final : public mixdown::Communicator {
 public:
  FilesCommunicator(fs::path folder, int rank, int size, const mixdown::Arithmetic& arithmetic)
      : Communicator(rank, size, arithmetic), folder_(std::move(folder)) {}

  // The one thing that a backend must have. A file never makes its sender wait, so
  // all sends may come first.
  void batch(const mixdown::Transfer* transfers, size_t n, mixdown::DType dtype) override {
    const int64_t element = mixdown::size_of(dtype);
    for (size_t i = 0; i < n; ++i) {
      const mixdown::Transfer& t = transfers[i];
      if (t.send) put(name(rank(), t.peer, t.match), t.buffer, t.count * element);
    }
    for (size_t i = 0; i < n; ++i) {
      const mixdown::Transfer& t = transfers[i];
      if (!t.send) take(name(t.peer, rank(), t.match), t.buffer, t.count * element);
    }
  }

  // Something that the "library" has of its own: it need not be composed.
  void barrier() override {
    const auto flag = [&](int64_t round, int member) {
      return folder_ / ("barrier-" + std::to_string(round) + "-" + std::to_string(member));
    };
    std::ofstream(flag(round_, rank())).close();
    for (int m = 0; m < size(); ++m) await(flag(round_, m));
    // Who is in this round has left the one before the last.
    fs::remove(flag(round_ - 2, rank()));
    ++round_;
  }

 private:
  fs::path name(int from, int to, int64_t match) const {
    return folder_ / (std::to_string(from) + "-" + std::to_string(to) + "-" + std::to_string(match));
  }

  // No time-out: when a peer is gone, the worker ends this process.
  static void await(const fs::path& path) {
    while (!fs::exists(path)) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

  // Under another name until it is whole.
  static void put(const fs::path& path, const void* data, int64_t bytes) {
    const fs::path part = path.string() + ".part";
    std::ofstream file(part, std::ios::binary);
    file.write(static_cast<const char*>(data), bytes);
    file.close();
    if (!file) throw std::runtime_error("files: cannot write " + part.string());
    fs::rename(part, path);
  }

  static void take(const fs::path& path, void* data, int64_t bytes) {
    await(path);
    std::ifstream file(path, std::ios::binary);
    file.read(static_cast<char*>(data), bytes);
    if (!file) throw std::runtime_error("files: " + path.string() + " is shorter than its message");
    fs::remove(path);
  }

  const fs::path folder_;
  int64_t round_ = 0;
};

class FilesBackend final : public mixdown::Backend {
 public:
  std::string name() const override { return "files"; }
  std::string version() const override { return "1"; }
  std::vector<std::string> notes() const override { return {"an example: a message is a file"}; }
  std::vector<mixdown::Support> support() const override { return {{"barrier", true, ""}}; }

  void init(const mixdown::World& world) override { world_ = world; }

  std::unique_ptr<mixdown::Communicator> group(const std::string& id, const std::vector<int>& members) override {
    const fs::path folder = fs::path(world_.rendezvous) / ("files-" + id);
    fs::create_directories(folder);
    const auto self = std::find(members.begin(), members.end(), world_.rank);
    return std::make_unique<FilesCommunicator>(folder, static_cast<int>(self - members.begin()),
                                               static_cast<int>(members.size()), *world_.arithmetic);
  }

  void finalize() override {}

 private:
  mixdown::World world_;
};

mixdown::Backend* create() { return new FilesBackend; }

}  // namespace

extern "C" const mixdown::Module* mixdown_module() {
  static const mixdown::Module module{mixdown::kBackendAbi, "files", "", false, &create};
  return &module;
}
