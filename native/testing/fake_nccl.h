// What the two halves of the emulated NCCL share: fake_nccl.cpp, its functions, and
// fake_nccl_kernel.cpp, what its kernels do.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "mixdown/backend.h"
#include "modules/nccl_api.h"

namespace mixdown::fake {

// Device memory as other processes find it.
struct Ref {
  int32_t pid = 0;
  int32_t number = -1;
  int64_t offset = 0;
};

// What a member brings to a collective.
struct Call {
  enum Kind : int32_t { kAllReduce, kReduce, kBroadcast, kAllGather, kReduceScatter, kSend, kRecv } kind;
  nccl::DataType type;
  nccl::RedOp op;
  int32_t root;  // or peer
  int64_t count;
  double factor;  // of op when it is premultiplied, else 0
  Ref in;
};

struct Member {
  std::atomic<uint32_t> phase;  // phases of collectives that it has done
  Call call;
};

// From one member to another. Counts never decrease.
struct Mailbox {
  std::atomic<uint32_t> sent;
  std::atomic<uint32_t> taken;
  Ref ref;
  int64_t bytes;
};

}  // namespace mixdown::fake

// A communicator: a page of memory that its members share.
struct mixdown::nccl::CommOpaque {
  using Member = fake::Member;
  using Mailbox = fake::Mailbox;

  int rank;
  int size;
  std::string path;
  char* shared;
  size_t bytes;
  uint32_t phase = 0;
  std::map<int, double> factors;  // of premultiplied sums
  std::map<std::pair<int32_t, int32_t>, char*> mapped;  // other processes' memory
  void* last = nullptr;     // event behind the latest kernel
  void* stream = nullptr;   // that it was on

  Member& member(int m) { return reinterpret_cast<Member*>(shared)[m]; }
  Mailbox& mailbox(int from, int to) {
    return reinterpret_cast<Mailbox*>(shared + sizeof(Member) * static_cast<size_t>(size))[from * size + to];
  }
};

namespace mixdown::fake {

using nccl::Comm;

// One call of this rank.
struct Work {
  Call call;
  const void* in;
  void* out;
};

// What one kernel does.
struct Kernel {
  Comm comm;
  std::vector<Work> works;
};

/// What NCCL calls elements, as the worker does.
DType dtype_of(nccl::DataType type);
bool is_float(DType dtype);

/// Where other processes find device memory. Ends the process unless all of it is
/// device memory.
Ref ref_of(const void* pointer, int64_t bytes);

/// Ends the next phase of the communicator on this member and waits until all have.
void meet(Comm comm);

/// Runs a Kernel, which it takes over.
void run(void* kernel);

/// The folder of MIXDOWN_FAKE_GPU.
std::string folder();

}  // namespace mixdown::fake
