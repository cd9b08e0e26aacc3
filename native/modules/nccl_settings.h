// What "ring/ll128/ch=8" in "nccl:ring/ll128/ch=8" means.
#pragma once

#include <string>

namespace mixdown {

/// Settings of the communicators of one instance of the backend; "" and 0 leave
/// the choice to NCCL.
struct NcclSettings {
  std::string algorithm;  ///< value of NCCL_ALGO
  std::string protocol;   ///< value of NCCL_PROTO
  int channels = 0;       ///< CTAs, and so SMs, of one kernel: both bounds of the communicator's configuration

  /// Reads words separated by '/': an algorithm (ring, tree, collnet_direct,
  /// collnet_chain, nvls, nvls_tree, pat), a protocol (ll, ll128, simple),
  /// ch=1 to ch=64; each at most once. Throws std::runtime_error; `library` is how that calls it.
  static NcclSettings parse(const std::string& text, const std::string& library);
};

/// Sets NCCL_ALGO and NCCL_PROTO for as long as it lives: NCCL reads them when it
/// makes a communicator. Not for several threads at once.
class NcclEnvironment {
 public:
  explicit NcclEnvironment(const NcclSettings& settings);
  ~NcclEnvironment();
  NcclEnvironment(const NcclEnvironment&) = delete;
  NcclEnvironment& operator=(const NcclEnvironment&) = delete;

 private:
  struct Variable {
    const char* name;
    bool changed = false;
    bool had = false;
    std::string before{};
    void set(const std::string& value);
    void restore() const;
  };
  Variable algorithm_{"NCCL_ALGO"};
  Variable protocol_{"NCCL_PROTO"};
};

}  // namespace mixdown
