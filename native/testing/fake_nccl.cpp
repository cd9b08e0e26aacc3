// NCCL that is none, for tests: libnccl.so.2 with the functions of
// modules/nccl_api.h, on the emulated GPU of fake_cuda.h. A call is a kernel that
// holds its slot until its peers have come, and buffers nothing. What members
// disagree on ends the process with a message. With MIXDOWN_FAKE_WRONG in the
// environment the last byte that the last member of a group gets is wrong.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>

#include "arith/half.h"
#include "testing/fake_cuda.h"
#include "testing/fake_nccl.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

// Of libcuda.so.1.
extern "C" int cuEventCreate(void** event, unsigned flags);
extern "C" int cuEventDestroy_v2(void* event);
extern "C" int cuEventRecord(void* event, void* stream);
extern "C" int cuStreamWaitEvent(void* stream, void* event, unsigned flags);

namespace {

using namespace mixdown;
using namespace mixdown::fake;

constexpr int kInvalidArgument = 4;
constexpr int kInvalidUsage = 5;

// The worker calls NCCL from one thread.
std::string last_error;

int refuse(int code, const std::string& why) {
  last_error = why;
  return code;
}

// Calls between group_start and group_end.
int depth = 0;
std::map<std::pair<Comm, void*>, std::vector<Work>> grouped;

// Kernels of one communicator come one after the other, on whatever streams.
int launch(Comm comm, void* stream, std::vector<Work> works) {
  if (comm->last == nullptr) cuEventCreate(&comm->last, 0);
  if (comm->stream != stream) cuStreamWaitEvent(stream, comm->last, 0);
  const int code = mixdown_fake_launch(stream, &run, new Kernel{comm, std::move(works)});
  if (code != 0) return refuse(1, "the emulated GPU says " + std::to_string(code));
  cuEventRecord(comm->last, stream);
  comm->stream = stream;
  return 0;
}

int call(Call::Kind kind, const void* in, int64_t in_bytes, void* out, int64_t out_bytes, size_t count,
         nccl::DataType type, nccl::RedOp op, int root, Comm comm, void* stream) {
  if (comm == nullptr) return refuse(kInvalidArgument, "no communicator");
  if (root < 0 || root >= comm->size) return refuse(kInvalidArgument, "no member " + std::to_string(root));
  if (count == 0) return 0;
  Work work{{kind, type, op, root, static_cast<int64_t>(count), 0, ref_of(in, in_bytes)}, in, out};
  ref_of(out, out_bytes);
  if (op > nccl::kAvg) {
    const auto factor = comm->factors.find(op);
    if (factor == comm->factors.end()) return refuse(kInvalidArgument, "unknown reduction " + std::to_string(op));
    work.call.factor = factor->second;
  }
  if (depth > 0) {
    grouped[{comm, stream}].push_back(work);
    return 0;
  }
  return launch(comm, stream, {work});
}

int64_t bytes_of(size_t count, nccl::DataType type) { return static_cast<int64_t>(count) * size_of(dtype_of(type)); }

}  // namespace

EXPORT int ncclGetVersion(int* version) {
  *version = 22400;
  return 0;
}
EXPORT const char* ncclGetErrorString(int result) {
  return result == kInvalidArgument ? "invalid argument" : result == kInvalidUsage ? "invalid usage" : "error";
}
EXPORT const char* ncclGetLastError(Comm) { return last_error.c_str(); }

EXPORT int ncclGetUniqueId(nccl::UniqueId* id) {
  std::random_device random;
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->internal, sizeof id->internal, "%08x%08x", random(), random());
  return 0;
}

EXPORT int ncclCommInitRankConfig(Comm* comm, int size, nccl::UniqueId id, int rank, nccl::Config* config) {
  if (config->magic != 0xcafebeef || config->size < sizeof(size_t)) return refuse(kInvalidArgument, "bad configuration");
  if (config->min_ctas != INT_MIN && config->min_ctas > config->max_ctas) return refuse(kInvalidArgument, "bad CTAs");
  auto made = std::make_unique<nccl::CommOpaque>();
  made->rank = rank;
  made->size = size;
  const auto n = static_cast<size_t>(size);
  made->bytes = sizeof(Member) * n + sizeof(Mailbox) * n * n;
  made->path = folder() + "/comm." + id.internal;
  const int file = open(made->path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, static_cast<off_t>(made->bytes)) != 0) return refuse(2, "cannot make " + made->path);
  made->shared = static_cast<char*>(mmap(nullptr, made->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  close(file);
  meet(made.get());
  // For tests of the settings.
  std::ofstream settings(folder() + "/settings." + id.internal + "." + std::to_string(rank));
  const auto value = [](const char* name) { return std::getenv(name) != nullptr ? std::getenv(name) : ""; };
  settings << "algo=" << value("NCCL_ALGO") << " proto=" << value("NCCL_PROTO");
  if (config->max_ctas != INT_MIN) settings << " ctas=" << config->min_ctas << "-" << config->max_ctas;
  settings << "\n";
  *comm = made.release();
  return 0;
}

EXPORT int ncclCommDestroy(Comm comm) {
  munmap(comm->shared, comm->bytes);
  if (comm->last != nullptr) cuEventDestroy_v2(comm->last);
  delete comm;
  return 0;
}

EXPORT int ncclAllReduce(const void* in, void* out, size_t count, nccl::DataType type, nccl::RedOp op, Comm comm,
                         void* stream) {
  const int64_t bytes = bytes_of(count, type);
  return call(Call::kAllReduce, in, bytes, out, bytes, count, type, op, 0, comm, stream);
}
EXPORT int ncclReduce(const void* in, void* out, size_t count, nccl::DataType type, nccl::RedOp op, int root, Comm comm,
                      void* stream) {
  const int64_t bytes = bytes_of(count, type);
  return call(Call::kReduce, in, bytes, out, comm->rank == root ? bytes : 0, count, type, op, root, comm, stream);
}
EXPORT int ncclBroadcast(const void* in, void* out, size_t count, nccl::DataType type, int root, Comm comm,
                         void* stream) {
  const int64_t bytes = bytes_of(count, type);
  return call(Call::kBroadcast, in, comm->rank == root ? bytes : 0, out, bytes, count, type, 0, root, comm, stream);
}
EXPORT int ncclAllGather(const void* in, void* out, size_t count, nccl::DataType type, Comm comm, void* stream) {
  const int64_t bytes = bytes_of(count, type);
  return call(Call::kAllGather, in, bytes, out, bytes * comm->size, count, type, 0, 0, comm, stream);
}
EXPORT int ncclReduceScatter(const void* in, void* out, size_t count, nccl::DataType type, nccl::RedOp op, Comm comm,
                             void* stream) {
  const int64_t bytes = bytes_of(count, type);
  return call(Call::kReduceScatter, in, bytes * comm->size, out, bytes, count, type, op, 0, comm, stream);
}
EXPORT int ncclSend(const void* in, size_t count, nccl::DataType type, int peer, Comm comm, void* stream) {
  return call(Call::kSend, in, bytes_of(count, type), nullptr, 0, count, type, 0, peer, comm, stream);
}
EXPORT int ncclRecv(void* out, size_t count, nccl::DataType type, int peer, Comm comm, void* stream) {
  return call(Call::kRecv, nullptr, 0, out, bytes_of(count, type), count, type, 0, peer, comm, stream);
}

EXPORT int ncclGroupStart() {
  ++depth;
  return 0;
}
EXPORT int ncclGroupEnd() {
  if (depth == 0) return refuse(kInvalidUsage, "no group was started");
  if (--depth > 0) return 0;
  const auto all = std::move(grouped);
  grouped.clear();
  for (const auto& [key, works] : all) {
    if (const int code = launch(key.first, key.second, works); code != 0) return code;
  }
  return 0;
}

EXPORT int ncclRedOpCreatePreMulSum(nccl::RedOp* op, void* scalar, nccl::DataType type, int residence, Comm comm) {
  if (residence != nccl::kScalarHostImmediate) return refuse(kInvalidArgument, "only immediate scalars");
  const DType dtype = dtype_of(type);
  if (!is_float(dtype)) return refuse(kInvalidArgument, "only floats");
  double factor = 0;
  if (dtype == DType::kFloat64) {
    std::memcpy(&factor, scalar, sizeof factor);
  } else if (dtype == DType::kFloat32) {
    float value = 0;
    std::memcpy(&value, scalar, sizeof value);
    factor = value;
  } else {
    uint16_t bits = 0;
    std::memcpy(&bits, scalar, sizeof bits);
    factor = dtype == DType::kBFloat16 ? float_of_bfloat(bits) : float_of_half(bits);
  }
  *op = 5 + static_cast<int>(comm->factors.size());
  comm->factors[*op] = factor;
  return 0;
}
EXPORT int ncclRedOpDestroy(nccl::RedOp, Comm) { return 0; }
