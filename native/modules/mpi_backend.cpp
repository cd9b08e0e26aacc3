// MPI, compiled once against each implementation's mpi.h. MIXDOWN_MPI_NAME is
// the backend's name.
#include <mpi.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "modules/mpi_communicator.h"
#include "modules/mpi_persistent.h"
#include "modules/mpi_types.h"
#ifdef MIXDOWN_MPI_YIELDS
#include "modules/mpich_wait.h"
#endif

#ifdef OPEN_MPI
// Of mpi-ext.h, in builds that have the extension. MPICH's may not be called before
// MPI_Init.
extern "C" int MPIX_Query_cuda_support(void) __attribute__((weak));
#endif

namespace mixdown {
namespace {

// Whether the library could take device memory, which this module does not hand it.
std::string gpu_note() {
  const std::string note = "on GPUs its data goes through pinned memory of the host";
#ifdef OPEN_MPI
  if (&MPIX_Query_cuda_support != nullptr) {
    return note + (MPIX_Query_cuda_support() == 1 ? ", though the library says that it takes CUDA's memory"
                                                  : ": the library says that it takes no memory of CUDA");
  }
#endif
  return note;
}

class MpiBackend final : public Backend {
 public:
  std::string name() const override { return MIXDOWN_MPI_NAME; }

  std::string version() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "unknown";
    // MPICH adds pages on how it was built; Open MPI counts the NUL in.
    std::string line(text);
    line = line.substr(0, line.find('\n'));
    std::replace(line.begin(), line.end(), '\t', ' ');
    return line;
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = {
        persistent_ ? PersistentCollectives::note() : "blocking collectives",
        "point-to-point with MPI_Send and MPI_Recv, several together with MPI_Isend and MPI_Irecv",
        "avg is a sum and a local division, premul_sum a local multiplication and a sum",
        "reduce_scatter(v) in place goes through a copy of the result",
        "more than 2147483647 elements: reductions and broadcast in several calls, the others composed of messages",
        "float16 and bfloat16 are reduced by a user-defined MPI_Op, and so are unsigned integers by min and max "
        "where the library compares them as signed",
    };
    notes.push_back(gpu_note());
#ifdef MPICH_VERSION
    notes.push_back("reduce in place to another root than member 0 copies its input: MPICH 4.0 crashes in its own form");
#endif
#ifdef MIXDOWN_MPI_YIELDS
    notes.push_back(
        "gives up the processor while it polls when the host has more ranks than cores, and sleeps 50 us where that helps "
        "nobody; MIXDOWN_YIELD=0 or 1 overrides");
#endif
    return notes;
  }

  std::vector<Switch> switches() const override {
    if (!PersistentCollectives::known()) return {};
    Switch persistent{PersistentCollectives::kSwitch, {}, {}};
    const std::pair<const char*, const char*> calls[] = {
        {"all_reduce", "Allreduce"}, {"reduce", "Reduce"}, {"broadcast", "Bcast"}, {"all_gather", "Allgather"},
        {"all_gatherv", "Allgatherv"}, {"reduce_scatter", "Reduce_scatter_block"},
        {"reduce_scatterv", "Reduce_scatter"}, {"all_to_all", "Alltoall"}, {"all_to_allv", "Alltoallv"},
        {"gather", "Gather"}, {"gatherv", "Gatherv"}, {"scatter", "Scatter"}, {"scatterv", "Scatterv"},
        {"barrier", "Barrier"}};
    for (const auto& [op, call] : calls) {
      if (restarts(call)) persistent.operations.push_back(op);
    }
    if (!PersistentCollectives::kOwnTypes) persistent.except = {DType::kFloat16, DType::kBFloat16};
    return {persistent};
  }

  bool keeps() const override { return persistent_; }

  std::vector<Support> support() const override {
    std::vector<Support> all;
    for (const char* op : {"all_reduce", "reduce", "broadcast", "all_gather", "all_gatherv", "reduce_scatter",
                           "reduce_scatterv", "all_to_all", "all_to_allv", "gather", "gatherv", "scatter", "scatterv",
                           "barrier", "send", "recv", "batch"}) {
      all.push_back({op, true, ""});
    }
    return all;
  }

  void init(const World& world) override {
    if (persistent_ && !PersistentCollectives::known()) {
      throw std::runtime_error(name() + ": this library has no persistent collectives; unset " +
                               PersistentCollectives::kSwitch);
    }
#ifdef MIXDOWN_MPI_YIELDS
    mpich_ranks(world.local_size);
#endif
    int granted = MPI_THREAD_SINGLE;
    const int needed = world.threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED;
    mpi_check(MPI_Init_thread(nullptr, nullptr, needed, &granted), "MPI_Init_thread");
    if (granted < needed) {
      throw std::runtime_error(name() + ": the library does not grant " +
                               (world.threads ? "MPI_THREAD_MULTIPLE" : "MPI_THREAD_SERIALIZED") +
                               "; use a build that does");
    }
#ifdef MIXDOWN_MPI_YIELDS
    if (granted == MPI_THREAD_MULTIPLE) mpich_locks();
#endif
    mpi_check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    mpi_check(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    int rank = 0;
    int size = 0;
    mpi_check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
    mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
    if (size != world.size) {
      // The mpirun was the right one and every process is alone: a fault of one package.
      const bool alone = size == 1 && name() == "mpich";
      throw std::runtime_error(name() + ": MPI started " + std::to_string(size) + " processes, the experiment has " +
                               std::to_string(world.size) + " workers; start them with this library's own mpirun" +
                               (alone ? " (MPICH 4.2.0 of Ubuntu 24.04 can't be started by its own: "
                                        "https://bugs.launchpad.net/ubuntu/+source/mpich/+bug/2072338)"
                                      : ""));
    }
    if (rank != world.rank) {
      throw std::runtime_error(name() + ": MPI rank " + std::to_string(rank) + " is worker " +
                               std::to_string(world.rank) + "; leave out --index under mpirun");
    }
    arithmetic_ = world.arithmetic;
    types_.create(*arithmetic_);
    mpi_check(MPI_Comm_group(MPI_COMM_WORLD, &world_), "MPI_Comm_group");
  }

  std::unique_ptr<Communicator> group(const std::string&, const std::vector<int>& members) override {
    MPI_Group subset = MPI_GROUP_NULL;
    mpi_check(MPI_Group_incl(world_, static_cast<int>(members.size()), members.data(), &subset), "MPI_Group_incl");
    MPI_Comm comm = MPI_COMM_NULL;
    // Only the members call, one group after the other: one tag is enough.
    mpi_check(MPI_Comm_create_group(MPI_COMM_WORLD, subset, 0, &comm), "MPI_Comm_create_group");
    MPI_Group_free(&subset);
    mpi_check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    return make_mpi_communicator(comm, types_, *arithmetic_, persistent_);
  }

  void finalize() override {
    MPI_Group_free(&world_);
    types_.free();
    mpi_check(MPI_Finalize(), "MPI_Finalize");
  }

 private:
  const bool persistent_ = PersistentCollectives::wanted();
  MpiTypes types_;
  const Arithmetic* arithmetic_ = nullptr;
  MPI_Group world_ = MPI_GROUP_NULL;
};

Backend* create() { return new MpiBackend; }

}  // namespace
}  // namespace mixdown

extern "C" const mixdown::Module* mixdown_module() {
  static const mixdown::Module module{mixdown::kBackendAbi, MIXDOWN_MPI_NAME, "mpi", true, &mixdown::create};
  return &module;
}
