#include "worker/results.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "worker/experiment.h"

namespace mixdown {

Results::Results(const std::string& folder, int index)
    : path_(folder + "/result." + std::to_string(index) + ".pb"),
      file_(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (file_ < 0) throw std::runtime_error("result file " + path_ + ": " + std::strerror(errno));
}

Results::~Results() { close(file_); }

void Results::set_rank(int rank) {
  std::lock_guard lock(mutex_);
  rank_ = rank;
}

void Results::write_header(const std::vector<pb::BackendInfo>& backends, const Gpu* gpu) {
  pb::Record record;
  pb::Header* header = record.mutable_header();
  header->set_schema_version(kSchemaVersion);
  header->set_pid(getpid());
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  header->set_host(host);
  for (const auto& backend : backends) *header->add_backends() = backend;
  header->set_device(gpu == nullptr ? "host" : gpu->kind());
  if (gpu != nullptr) {
    header->set_device_name(gpu->name());
    header->set_device_address(gpu->address());
    header->set_emulated(gpu->emulated());
  }
  std::lock_guard lock(mutex_);
  header->set_rank(rank_);
  append(record);
  header_written_ = true;
}

void Results::write(const pb::Record& record) {
  std::lock_guard lock(mutex_);
  append(record);
}

void Results::write_failure(const std::string& message, const Place& place) noexcept {
  try {
    bool header_written;
    {
      std::lock_guard lock(mutex_);
      header_written = header_written_;
    }
    if (!header_written) write_header({}, nullptr);
    pb::Record record;
    pb::Failure* failure = record.mutable_failure();
    failure->set_message(message);
    failure->set_plan(place.plan);
    failure->set_iteration(place.iteration);
    failure->set_task(place.task);
    write(record);
  } catch (...) {
    // The message still goes to the control file and to stderr.
  }
}

void Results::append(const pb::Record& record) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.WriteVarint32(static_cast<uint32_t>(record.ByteSizeLong()));
    record.SerializeToCodedStream(&coded);
  }
  const off_t begin = lseek(file_, 0, SEEK_CUR);
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(file_, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const std::string why = std::strerror(errno);
      // Part of a record would make what follows it unreadable.
      if (ftruncate(file_, begin) == 0) lseek(file_, begin, SEEK_SET);
      throw std::runtime_error("result file " + path_ + ": " + why);
    }
    done += static_cast<size_t>(n);
  }
}

}  // namespace mixdown
