#include "worker/run.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>

#include "arith/arith.h"
#include "device/gpu.h"
#include "worker/communicators.h"
#include "worker/device_buffers.h"
#include "worker/device_executor.h"
#include "worker/executor.h"
#include "worker/exit.h"
#include "worker/experiment.h"
#include "worker/lower.h"
#include "worker/results.h"
#include "worker/validate.h"
#include "worker/watchdog.h"

namespace mixdown {
namespace {

// Of its last run.
int64_t codec_ns(const Operation& o) {
  int64_t ns = 0;
  each_compressed(o, [&](const Compressed& payload) { ns += payload.codec_ns(); });
  return ns;
}

// Everything a run needs, in the order in which it comes to be.
class Worker {
 public:
  Worker(const Arguments& arguments, Control& control, Results& results)
      : arguments_(arguments), control_(control), results_(results), modules_(arguments.modules) {}

  void prepare();
  void connect_all();
  void verify();
  void warm_up();
  void measure_all();
  void finish();

 private:
  const pb::Settings& settings() const { return experiment_.settings(); }
  int plans() const { return experiment_.plans_size(); }
  void step(WorkerState state, int plan, int iteration, Check* check);
  void record(int plan, int iteration);
  void report_codecs(int plan, const Check* check);
  int here() const;
  std::vector<pb::BackendInfo> load_backends();
  void bind_all();
  bool several_streams_communicate() const;
  void make_executor();

  const Arguments& arguments_;
  Control& control_;
  Results& results_;
  Modules modules_;
  pb::Experiment experiment_;
  std::vector<Groups> groups_;
  std::vector<CommunicatorKey> keys_;
  std::vector<Program> programs_;  // this worker's, one for each plan
  std::vector<StreamBuffers> buffers_;
  std::unique_ptr<Gpu> gpu_;  // null when buffers are in host memory
  std::vector<DeviceStreamBuffers> device_buffers_;
  bool keeps_ = false;         // a backend keeps the state of operations
  std::vector<bool> ordered_;  // by key: whether its backend is stream-ordered
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::unique_ptr<Runner> executor_;
  int64_t margin_ = 0;
  int64_t start_ = 0;
  int64_t end_ = 0;
};

void Worker::prepare() {
  experiment_ = load_experiment(arguments_.experiment);
  validate(experiment_, control_.workers());
  results_.set_rank(experiment_.plans(0).workload().programs(arguments_.index).rank());
  const CommunicatorTable table(experiment_);
  keys_ = table.keys();
  groups_.reserve(plans());
  // Of all workers: they share this machine's memory.
  std::vector<BufferSizes> sizes(control_.workers());
  for (int p = 0; p < plans(); ++p) {
    const pb::Plan& plan = experiment_.plans(p);
    groups_.emplace_back(plan.workload());
    const Match match(plan, p, groups_.back());
    lower(*experiment_.mutable_plans(p));
    programs_.push_back(compile(plan, p, arguments_.index, groups_.back(), match, table, settings().verify()));
    for (int w = 0; w < control_.workers(); ++w) {
      measure(plan.workload().programs(w), groups_.back(), match, sizes[w]);
    }
  }
  double all = 0;
  for (const auto& s : sizes) all += static_cast<double>(s.total());
  // Of a run on several hosts, which others are on this one is not known here.
  if (arguments_.local_size > 0) {
    all = static_cast<double>(sizes[arguments_.index].total()) * arguments_.local_size;
  }
  buffers_ = allocate(sizes[arguments_.index], all < 9e18 ? static_cast<int64_t>(all) : INT64_MAX);
  if (settings().device() == pb::DEVICE_CUDA || settings().device() == pb::DEVICE_HIP) {
    const bool cuda = settings().device() == pb::DEVICE_CUDA;
    gpu_ = std::make_unique<Gpu>(cuda ? device::Platform::kCuda : device::Platform::kHip, arguments_.local_index);
    device_buffers_ = allocate_on(*gpu_, sizes[arguments_.index]);
  }
}

// What the operations of a backend read and write: device memory where it takes
// that.
void Worker::bind_all() {
  for (const auto& key : keys_) {
    const bool ordered = modules_[key.backend].stream_ordered();
    if (ordered && gpu_ == nullptr) {
      throw std::runtime_error("backend " + key.backend + " needs a GPU, and this experiment runs in host memory");
    }
    if (ordered && modules_[key.backend].device() != gpu_->kind()) {
      throw std::runtime_error("backend " + key.backend + " needs the device " + modules_[key.backend].device() +
                               ", and this experiment runs on " + gpu_->kind());
    }
    ordered_.push_back(ordered);
  }
  for (Program& program : programs_) {
    for (const Step& step : program.steps) {
      if (step.operation < 0) continue;
      Operation& o = program.operations[step.operation];
      if (ordered_[o.communicator] && o.codec >= 0) {
        throw std::runtime_error("backend " + keys_[o.communicator].backend + " works on device memory, and codecs on the " +
                                 "host's: compress only what a backend for host memory carries");
      }
      if (ordered_[o.communicator]) {
        o.premultiplies = true;
        for (Operation& part : o.parts) part.premultiplies = true;
        const DeviceStreamBuffers& b = device_buffers_[step.stream];
        bind(o, b.in.data(), b.out.data());
      } else {
        StreamBuffers& b = buffers_[step.stream];
        bind(o, b.in.data(), b.out.data());
        each_compressed(o, [&](Compressed& payload) { payload.bind(b.work.data()); });
      }
    }
  }
}

// Workers on this host.
int Worker::here() const { return arguments_.local_size > 0 ? arguments_.local_size : control_.workers(); }

std::vector<pb::BackendInfo> Worker::load_backends() {
  std::set<std::string> names;
  for (const auto& key : keys_) names.insert(key.backend);
  std::vector<pb::BackendInfo> infos;
  for (const auto& name : names) {
    Backend& backend = modules_.load(name);
    pb::BackendInfo info;
    info.set_name(name);
    info.set_version(backend.version());
    keeps_ = keeps_ || backend.keeps();
    for (const auto& note : backend.notes()) info.add_notes(note);
    infos.push_back(info);
  }
  return infos;
}

void Worker::make_executor() {
  size_t tasks = 0;
  for (const Program& program : programs_) tasks = std::max(tasks, program.steps.size());
  if (gpu_ == nullptr) {
    executor_ = std::make_unique<Executor>(control_, communicators_, buffers_, settings().span_mode(), tasks);
    return;
  }
  DeviceExecutor::Options options;
  if (settings().sm_share() > 0) options.sm_share = settings().sm_share();
  options.samples = settings().samples();
  options.spin = sysconf(_SC_NPROCESSORS_ONLN) > here();
  executor_ = std::make_unique<DeviceExecutor>(*gpu_, control_, communicators_, keys_, ordered_, buffers_,
                                               device_buffers_, programs_, options);
}

// Libraries pay for being ready for several threads: they need not be where the
// communication of every plan is on one stream.
bool Worker::several_streams_communicate() const {
  for (const Program& program : programs_) {
    int communicating = 0;
    for (const std::vector<int>& stream : program.streams) {
      for (int step : stream) {
        if (program.steps[step].operation >= 0) {
          ++communicating;
          break;
        }
      }
    }
    if (communicating > 1) return true;
  }
  return false;
}

void Worker::connect_all() {
  control_.set_state(WorkerState::kConnecting, 0, 0);
  const std::vector<pb::BackendInfo> infos = load_backends();
  bind_all();
  results_.write_header(infos, gpu_.get());
  World world;
  world.rank = arguments_.index;
  world.size = control_.workers();
  world.local_size = here();
  world.interface = arguments_.interface;
  world.arithmetic = &host_arithmetic();
  world.rendezvous = arguments_.out + "/rendezvous";
  world.threads = gpu_ != nullptr || several_streams_communicate();
  if (world.rank == 0) {
    // What an earlier run in this folder left would lead into nowhere. The others
    // wait for this: connecting begins with a barrier.
    std::filesystem::remove_all(world.rendezvous);
    std::filesystem::create_directories(world.rendezvous);
  }
  communicators_ = connect(modules_, world, keys_, groups_[0], programs_, control_, gpu_.get());
  // Libraries like to have handlers of their own.
  handle_exits(&control_, &results_);

  make_executor();
  control_.set_streams(static_cast<int>(buffers_.size()));
  // Time for all workers, and all their streams, to wake up after the barrier:
  // they may have to take turns on few cores.
  margin_ = 300'000 + 60'000 * int64_t{control_.workers()};
}

// One run of one plan, together with all other workers.
void Worker::step(WorkerState state, int plan, int iteration, Check* check) {
  control_.set_state(state, plan, iteration);
  start_ = control_.barrier(margin_);
  end_ = executor_->run(programs_[plan], start_, {plan, iteration, -1}, check);
}

// What the codecs of a plan do, `check` null where data is not checked.
void Worker::report_codecs(int plan, const Check* check) {
  const Program& program = programs_[plan];
  for (size_t k = 0; k < program.codecs.size(); ++k) {
    pb::Record record;
    pb::Compressed* entry = record.mutable_compressed();
    entry->set_plan(plan);
    *entry->mutable_compression() = program.codecs[k];
    for (const Operation& o : program.operations) {
      if (o.codec != static_cast<int>(k)) continue;
      entry->set_operations(entry->operations() + 1);
      each_compressed(o, [&](const Compressed& payload) {
        entry->set_bytes(entry->bytes() + payload.bytes());
        entry->set_compressed_bytes(entry->compressed_bytes() + payload.compressed_bytes());
      });
    }
    if (check != nullptr && k < check->accuracies().size()) {
      const Accuracy& a = check->accuracies()[k];
      entry->set_elements(a.elements);
      entry->set_max_abs_error(a.max_abs);
      entry->set_squared_error(a.squared_error);
      entry->set_squared_exact(a.squared_exact);
    }
    results_.write(record);
  }
}

void Worker::verify() {
  if (!settings().verify()) {
    for (int p = 0; p < plans(); ++p) report_codecs(p, nullptr);
    return;
  }
  for (int p = 0; p < plans(); ++p) {
    Check check;
    step(WorkerState::kVerifying, p, 0, &check);
    pb::Record record;
    pb::Verification* verification = record.mutable_verification();
    verification->set_plan(p);
    verification->set_operations(check.operations());
    verification->set_elements(check.elements());
    for (const auto& error : check.errors()) verification->add_errors(error);
    if (keeps_) {  // what the first run made, on other numbers
      for (Expectation& e : programs_[p].expectations) renumber(e);
      Check again;
      step(WorkerState::kVerifying, p, 0, &again);
      for (const auto& error : again.errors()) verification->add_errors("the second time: " + error);
    }
    results_.write(record);
    report_codecs(p, &check);
    programs_[p].expectations.clear();
  }
  // Timed passes send zeros.
  for (auto& b : buffers_) {
    b.in.clear();
    b.out.clear();
  }
  for (const auto& b : device_buffers_) {
    b.in.clear(nullptr);
    b.out.clear(nullptr);
  }
  if (gpu_ != nullptr) gpu_->check(gpu_->api().stream_synchronize(nullptr), "waiting for a stream");
}

void Worker::warm_up() {
  for (int i = 0; i < settings().warmup(); ++i) {
    for (int p = 0; p < plans(); ++p) step(WorkerState::kWarmingUp, p, i, nullptr);
  }
}

// Interleaved, in an order that is new for each iteration and the same on all
// workers: what changes slowly on the machine then hits all plans alike.
void Worker::measure_all() {
  std::mt19937_64 random(settings().seed());
  std::vector<int> order(plans());
  std::iota(order.begin(), order.end(), 0);
  for (int i = 0; i < settings().iterations(); ++i) {
    for (size_t n = order.size(); n > 1; --n) std::swap(order[n - 1], order[random() % n]);
    for (const int p : order) {
      step(WorkerState::kTimed, p, i, nullptr);
      record(p, i);
    }
  }
}

void Worker::record(int plan, int iteration) {
  pb::Record record;
  pb::Iteration* entry = record.mutable_iteration();
  entry->set_plan(plan);
  entry->set_iteration(iteration);
  entry->set_start_ns(start_);
  entry->set_end_ns(end_);
  const Program& program = programs_[plan];
  std::vector<int64_t> codecs(program.codecs.size());
  for (const Operation& o : program.operations) {
    if (o.codec >= 0) codecs[static_cast<size_t>(o.codec)] += codec_ns(o);
  }
  for (const int64_t ns : codecs) entry->add_codec_ns(ns);
  if (iteration < settings().samples()) {
    for (size_t t = 0; t < program.steps.size(); ++t) {
      pb::TaskTime* time = entry->add_tasks();
      time->set_task(static_cast<int32_t>(t));
      time->set_start_ns(executor_->times()[t].start);
      time->set_end_ns(executor_->times()[t].end);
      const int operation = program.steps[t].operation;
      if (operation >= 0) time->set_codec_ns(codec_ns(program.operations[operation]));
    }
  }
  results_.write(record);
}

void Worker::finish() {
  executor_.reset();
  pb::Record record;
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  record.mutable_footer()->set_max_rss_bytes(int64_t{usage.ru_maxrss} * 1024);
  results_.write(record);
  // Nobody takes a connection away while another still uses it.
  control_.barrier(0);
  communicators_.clear();
  for (auto& [name, backend] : modules_) backend->finalize();
  modules_.clear();
  control_.set_state(WorkerState::kFinished, 0, 0);
}

}  // namespace

int run(const Arguments& arguments) {
  std::unique_ptr<Control> control;
  std::unique_ptr<Results> results;
  try {
    control = std::make_unique<Control>(arguments.control, arguments.index);
    handle_exits(control.get(), nullptr);
    results = std::make_unique<Results>(arguments.out, arguments.index);
    handle_exits(control.get(), results.get());
    prctl(PR_SET_TIMERSLACK, 1);  // threads made from here on inherit it
    Watchdog watchdog(*control);
    Worker worker(arguments, *control, *results);
    worker.prepare();
    worker.connect_all();
    worker.verify();
    worker.warm_up();
    worker.measure_all();
    worker.finish();
    // What the handlers use goes away now; a signal may still come.
    handle_exits(nullptr, nullptr);
    return kDone;
  } catch (const std::exception& error) {
    fail(error.what(), Place{});
  } catch (...) {
    fail("something that is no std::exception was thrown", Place{});
  }
}

}  // namespace mixdown
