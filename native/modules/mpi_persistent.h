// Collectives as persistent requests: made once, started whenever they come again.
// MPI 4 has them, Open MPI 4 as an extension.
//
// Making a request is a collective call of its own, so all members must make one at
// the same call or none. What a member knows of its buffers does not decide that:
// another stream of one member, or a place of its own in the buffers, is a reason to
// make a request there and none elsewhere. A request therefore belongs to an
// operation of the plan, as Communicator::identify names it, and to the position of
// the call within that operation. All members name the operations alike and in one
// order, and make the same calls of MPI for each, with or without requests; the
// first time that a pair comes is then the same call on all, and so is the one at
// which there are too many. That the arguments are those of the first time is what
// identify promises.
#pragma once

#include <mpi.h>
#ifdef OPEN_MPI
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#endif

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "modules/mpi_types.h"

#if MPI_VERSION >= 4
#define MIXDOWN_PERSISTENT(name) MPI_##name##_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define MIXDOWN_PERSISTENT(name) MPIX_##name##_init
#else
#define MIXDOWN_PERSISTENT(name) nullptr
#endif

/// A collective of MPI in both forms: MIXDOWN_COLLECTIVE(Allreduce).
#define MIXDOWN_COLLECTIVE(name) \
  ::mixdown::Collective { "MPI_" #name, MPI_##name, MIXDOWN_PERSISTENT(name), ::mixdown::restarts(#name) }

namespace mixdown {

/// Whether the library does a persistent collective right whenever it is started, by
/// what our tests saw. Of all versions: which one mends what is not known.
constexpr bool restarts([[maybe_unused]] std::string_view name) {
#ifdef MPICH_VERSION
  // 4.0.2: gather and scatter give the data of the first start again, or none
  // (pmodels/mpich#7078), all_gather sends nonsense and hangs (#6423).
  return name != "Allgather" && name != "Gather" && name != "Scatter";
#elif defined(OPEN_MPI)
  // 4.1.4: in place, with blocks of different sizes, wrong data even at first.
  return name != "Alltoallv";
#else
  return true;
#endif
}

/// A collective of MPI. `init` is a std::nullptr_t where it has no persistent form.
template <typename Plain, typename Init>
struct Collective {
  const char* name;
  Plain plain;
  Init init;
  bool restarts;
};
template <typename Plain, typename Init>
Collective(const char*, Plain, Init, bool) -> Collective<Plain, Init>;

/// The requests of one communicator. It must go before the communicator does.
class PersistentCollectives {
 public:
  /// The variable of the environment that asks for them.
  static constexpr const char* kSwitch = "MIXDOWN_MPI_PERSISTENT";

  static bool wanted() {
    const char* choice = std::getenv(kSwitch);
    return choice != nullptr && std::strcmp(choice, "") != 0 && std::strcmp(choice, "0") != 0;
  }

  /// Whether the library has them.
  static constexpr bool known() {
    return !std::is_same_v<std::remove_cv_t<decltype(MIXDOWN_COLLECTIVE(Barrier).init)>, std::nullptr_t>;
  }

  /// Whether requests may be of datatypes that are not the library's. MPICH 4.0.2
  /// lets go of such a type after each start, and fails when the request is freed.
#ifdef MPICH_VERSION
  static constexpr bool kOwnTypes = false;
#else
  static constexpr bool kOwnTypes = true;
#endif

  static std::string note() {
    std::string text =
        "persistent collectives, a request for each operation of a plan, made when it first runs; blocking ones for "
        "compressed payloads, for what comes after " +
        std::to_string(kMost) + " requests of a group";
#ifdef MPICH_VERSION
    text += ", for all_gather, gather and scatter, which MPICH 4.0 does wrong when they are started again, and for "
            "float16 and bfloat16, whose requests it can't free";
#elif defined(OPEN_MPI)
    text += ", and for all_to_allv, which Open MPI 4.1 does wrong in place";
#endif
    return text;
  }

  PersistentCollectives() = default;
  PersistentCollectives(const PersistentCollectives&) = delete;
  PersistentCollectives& operator=(const PersistentCollectives&) = delete;

  ~PersistentCollectives() {
    for (auto& [operation, requests] : requests_) {
      for (Made& made : requests) MPI_Request_free(&made.request);
    }
  }

  /// As Communicator::identify.
  void identify(int64_t operation) {
    current_ = operation < 0 ? nullptr : &requests_[operation];
    next_ = 0;
  }

  /// Whether the calls that follow repeat.
  bool repeats() const { return current_ != nullptr; }

  /// Runs a collective, all whose arguments but the communicator are `arguments`.
  /// Arrays among them are those of `arrays`, which a new request keeps: they are
  /// then empty.
  template <typename Plain, typename Init, typename... Arguments>
  void call(const Collective<Plain, Init>& what, MPI_Comm comm, const std::vector<std::vector<int>*>& arrays,
            Arguments... arguments);

 private:
  // Plans without end would fill the memory: a request may hold some KiB.
  static constexpr size_t kMost = 4096;

  struct Made {
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<std::vector<int>> arrays;
  };

  std::unordered_map<int64_t, std::vector<Made>> requests_;  // by operation, in the order of its calls
  std::vector<Made>* current_ = nullptr;
  size_t next_ = 0;  // call of the current operation
  size_t made_ = 0;
};

template <typename Plain, typename Init, typename... Arguments>
void PersistentCollectives::call(const Collective<Plain, Init>& what, MPI_Comm comm,
                                 const std::vector<std::vector<int>*>& arrays, Arguments... arguments) {
  if constexpr (!std::is_same_v<Init, std::nullptr_t>) {
    if (current_ != nullptr && next_ == current_->size() && made_ < kMost) {
      Made made;
      mpi_check(what.init(arguments..., comm, MPI_INFO_NULL, &made.request),
                (what.name + std::string("_init")).c_str());
      for (std::vector<int>* array : arrays) made.arrays.push_back(std::move(*array));  // stays where it is
      current_->push_back(std::move(made));
      ++made_;
    }
    if (current_ != nullptr && next_ < current_->size()) {
      MPI_Request& request = (*current_)[next_++].request;
      mpi_check(MPI_Start(&request), "MPI_Start");
      return mpi_check(MPI_Wait(&request, MPI_STATUS_IGNORE), what.name);
    }
  }
  mpi_check(what.plain(arguments..., comm), what.name);
}

}  // namespace mixdown
