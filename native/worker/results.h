// The result file of a worker: records that are flushed as they come.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "device/gpu.h"
#include "plan.pb.h"
#include "worker/exit.h"

namespace mixdown {

namespace pb = ::mixdown::plan::v1;

/// Writes DIR/result.INDEX.pb. Errors of writing are thrown as std::runtime_error.
class Results {
 public:
  Results(const std::string& folder, int index);
  ~Results();

  /// What the header will say of this worker.
  void set_rank(int rank);

  /// The header comes first; a failure before it writes one without backends.
  /// `gpu` is null when buffers are in host memory.
  void write_header(const std::vector<pb::BackendInfo>& backends, const Gpu* gpu);
  void write(const pb::Record& record);

  /// Never throws: it is the last thing a worker does.
  void write_failure(const std::string& message, const Place& place) noexcept;

 private:
  void append(const pb::Record& record);

  std::mutex mutex_;
  std::string path_;
  int file_ = -1;
  int rank_ = -1;
  bool header_written_ = false;
};

}  // namespace mixdown
