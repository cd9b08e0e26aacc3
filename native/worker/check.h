// The data check: fills inputs with known numbers and compares outputs. What is
// compressed need not be exact, but within its codec's bound.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "worker/accuracy.h"
#include "worker/operation.h"
#include "worker/oracle.h"

namespace mixdown {

/// The check of one plan on one rank. Its streams use it at the same time.
class Check {
 public:
  /// Before the operation: fills what it reads, and marks what it may write and
  /// the guards around that. `in` and `out` are the buffers.
  void prepare(const Operation& operation, const Expectation& expectation, char* in, char* out);

  /// After it: compares every element and the guards, and the input where it must
  /// be as it was.
  void inspect(int task, const Operation& operation, const Expectation& expectation, char* in, char* out);

  int64_t operations() const { return operations_; }
  int64_t elements() const { return elements_; }

  /// Of compressed operations, by Operation::codec.
  const std::vector<Accuracy>& accuracies() const { return accuracies_; }

  /// The first few wrong elements, in words.
  const std::vector<std::string>& errors() const { return errors_; }

 private:
  std::mutex mutex_;
  int64_t operations_ = 0;
  int64_t elements_ = 0;
  std::vector<Accuracy> accuracies_;
  std::vector<std::string> errors_;
};

}  // namespace mixdown
