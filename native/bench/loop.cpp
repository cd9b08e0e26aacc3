#include "bench/loop.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>
#include <stdexcept>

#include "worker/buffers.h"
#include "worker/clock.h"
#include "worker/futex.h"

namespace alone {
namespace {

// The barriers of the workers before their first iteration: two of connecting.
constexpr uint32_t kBarriersBefore = 2;

// Nobody may be left to end us.
class Patience {
 public:
  void check() const {
    if (mixdown::now_ns() > end_) throw std::runtime_error("the workers do not go on");
  }

 private:
  const int64_t end_ = mixdown::now_ns() + 120'000'000'000;
};

// The header of a control file: see replay/plan/control.md.
class Turns {
 public:
  explicit Turns(const std::string& dir) {
    glob_t found = {};
    const Patience patience;
    while (glob((dir + "/run-*/control").c_str(), 0, nullptr, &found) != 0) {
      patience.check();
      usleep(1000);
    }
    const int file = open(found.gl_pathv[0], O_RDWR | O_CLOEXEC);
    globfree(&found);
    usleep(1000);  // the launcher makes it and then fills it
    void* memory = file < 0 ? MAP_FAILED : mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no control file");
    close(file);
    memory_ = static_cast<char*>(memory);
  }

  // Waits for the iteration. Its start, 0 when it has passed.
  int64_t await(uint32_t iteration) {
    const uint32_t wanted = kBarriersBefore + 1 + iteration;
    const Patience patience;
    uint32_t seen;
    while ((seen = word(32).load()) < wanted) {
      if (word(24).load() != 0) throw std::runtime_error("the workers were stopped");
      patience.check();
      mixdown::futex_wait(word(32), seen, mixdown::Scope::kShared, 100'000'000);
    }
    return seen == wanted ? reinterpret_cast<std::atomic<int64_t>*>(memory_ + 40)->load() : 0;
  }

 private:
  std::atomic<uint32_t>& word(size_t at) { return *reinterpret_cast<std::atomic<uint32_t>*>(memory_ + at); }
  char* memory_ = nullptr;
};

struct Turn {
  int index = 0;      // of the case
  int64_t start = 0;  // of the worker's iteration
  int64_t begin = 0;
  int64_t end = 0;
  int64_t median = 0;  // of the calls
};

std::vector<Case> read_cases(const std::string& path) {
  std::vector<Case> cases;
  std::ifstream in(path);
  for (Case c; in >> c.op >> c.bytes >> c.calls >> c.before;) cases.push_back(c);
  return cases;
}

// The clock is read between calls, once: the worker reads it twice.
void time_case(const Case& c, const Library& library, const std::function<void()>& call, std::vector<int64_t>& ends,
               Turn& turn) {
  ends.resize(c.calls);
  library.barrier();
  for (int i = 0; i < c.before; ++i) call();
  turn.begin = mixdown::now_ns();
  for (int64_t& end : ends) {
    call();
    end = mixdown::now_ns();
  }
  turn.end = ends.back();
  std::adjacent_difference(ends.begin(), ends.end(), ends.begin());
  ends[0] -= turn.begin;
  const auto middle = ends.begin() + c.calls / 2;
  std::nth_element(ends.begin(), middle, ends.end());
  turn.median = *middle;
}

// The worker's order of its plans: Worker::measure_all.
void shuffle(std::vector<int>& order, std::mt19937_64& random) {
  for (size_t n = order.size(); n > 1; --n) std::swap(order[n - 1], order[random() % n]);
}

}  // namespace

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--dir") o.dir = argv[i + 1];
    if (name == "--rank") o.rank = std::stoi(argv[i + 1]);
    if (name == "--size") o.size = std::stoi(argv[i + 1]);
    if (name == "--warmup") o.warmup = std::stoi(argv[i + 1]);
    if (name == "--iterations") o.iterations = std::stoi(argv[i + 1]);
    if (name == "--threads") o.threads = argv[i + 1];
    if (name == "--seed") o.seed = std::stoull(argv[i + 1]);
  }
  return o;
}

void run(const Options& options, const Library& library) {
  prctl(PR_SET_TIMERSLACK, 1);
  const std::vector<Case> cases = read_cases(options.dir + "/cases");
  int64_t largest = 0;
  for (const Case& c : cases) largest = std::max(largest, c.bytes);
  mixdown::Buffer in(largest), out(largest);  // as the worker's are
  std::vector<std::function<void()>> calls;
  for (const Case& c : cases) calls.push_back(library.make(c, in.data(), out.data()));

  std::string took;
  std::vector<int64_t> ends;
  for (size_t i = 0; i < cases.size(); ++i) {
    Turn turn;
    time_case(cases[i], library, calls[i], ends, turn);  // the first use of connections and memory
    const int64_t begin = mixdown::now_ns();
    time_case(cases[i], library, calls[i], ends, turn);
    took += std::to_string(turn.end - begin) + "\n";
  }
  if (library.rank == 0) {
    std::ofstream(options.dir + "/ready.tmp") << took;
    std::rename((options.dir + "/ready.tmp").c_str(), (options.dir + "/ready").c_str());
  }

  Turns turns(options.dir);
  std::vector<int> order(cases.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(options.seed);
  std::vector<Turn> list;
  for (int i = 0; i < options.warmup + options.iterations; ++i) {
    if (i >= options.warmup) shuffle(order, random);
    for (const int index : order) {
      Turn turn;
      turn.index = index;
      turn.start = turns.await(static_cast<uint32_t>(list.size()));
      if (turn.start != 0) mixdown::sleep_until(turn.start);
      time_case(cases[index], library, calls[index], ends, turn);
      list.push_back(turn);
    }
  }
  std::ofstream file(options.dir + "/alone." + std::to_string(library.rank));
  for (const Turn& t : list) {
    file << t.index << ' ' << t.start << ' ' << t.begin << ' ' << t.end << ' ' << t.median << '\n';
  }
}

}  // namespace alone
