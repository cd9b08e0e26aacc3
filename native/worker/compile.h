// From a rank's program in protobuf to what its streams execute.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/buffers.h"
#include "worker/operation.h"
#include "worker/oracle.h"

namespace mixdown {

/// What makes one communicator: a backend and a group. Groups of several plans
/// that have the same index and ranks share one.
struct CommunicatorKey {
  std::string backend;
  int group = 0;
  std::vector<int> ranks;
  auto operator<=>(const CommunicatorKey&) const = default;
};

/// A task of this rank.
struct Step {
  int stream = 0;
  enum class Kind { kSpan, kCommunication, kWait } kind = Kind::kWait;
  int64_t duration = 0;   ///< of a span, ns
  bool device = false;    ///< of a span: of the device, not of the host
  int operation = -1;     ///< index into Program::operations
  std::vector<int> deps;  ///< tasks of other streams to wait for
  bool awaited = false;   ///< a task of another stream waits for it
};

/// One rank's part of one plan.
struct Program {
  int64_t start_offset = 0;               ///< ns
  std::vector<Step> steps;                ///< in the order of the plan
  std::vector<std::vector<int>> streams;  ///< the steps of each stream
  std::vector<Operation> operations;
  std::vector<Expectation> expectations;  ///< of the operations, when data is checked
  std::vector<pb::Compression> codecs;    ///< in the order of their first use
};

/// All communicators of an experiment, in the order in which all workers make
/// them.
class CommunicatorTable {
 public:
  explicit CommunicatorTable(const pb::Experiment& experiment);
  const std::vector<CommunicatorKey>& keys() const { return keys_; }
  int index(const CommunicatorKey& key) const { return indexes_.at(key); }
  static CommunicatorKey key(const pb::Workload& workload, const pb::Communication& communication);

 private:
  std::vector<CommunicatorKey> keys_;
  std::map<CommunicatorKey, int> indexes_;
};

/// Compiles programs[worker] of the plan. Throws std::runtime_error when its
/// streams would wait for each other for ever.
Program compile(const pb::Plan& plan, int plan_index, int worker, const Groups& groups, const Match& match,
                const CommunicatorTable& communicators, bool with_expectations);

/// Adds what the streams of a program need. Quick, so that each worker can do it
/// for all.
void measure(const pb::Program& program, const Groups& groups, const Match& match, BufferSizes& sizes);

}  // namespace mixdown
