#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "arith/arith.h"
#include "testing/fake_cuda.h"
#include "testing/fake_nccl.h"
#include "worker/futex.h"

namespace mixdown::fake {
namespace {

[[noreturn]] void end(const std::string& why) {
  std::fprintf(stderr, "emulated NCCL: %s\n", why.c_str());
  std::abort();
}

ReduceOp reduce_op_of(nccl::RedOp op) {
  switch (op) {
    case nccl::kProd:
      return ReduceOp::kProd;
    case nccl::kMax:
      return ReduceOp::kMax;
    case nccl::kMin:
      return ReduceOp::kMin;
    default:
      return ReduceOp::kSum;
  }
}

}  // namespace

std::string folder() { return std::getenv("MIXDOWN_FAKE_GPU"); }

DType dtype_of(nccl::DataType type) {
  switch (type) {
    case nccl::kInt8:
      return DType::kInt8;
    case nccl::kUint8:
      return DType::kUInt8;
    case nccl::kInt32:
      return DType::kInt32;
    case nccl::kUint32:
      return DType::kUInt32;
    case nccl::kInt64:
      return DType::kInt64;
    case nccl::kUint64:
      return DType::kUInt64;
    case nccl::kFloat16:
      return DType::kFloat16;
    case nccl::kFloat32:
      return DType::kFloat32;
    case nccl::kFloat64:
      return DType::kFloat64;
    case nccl::kBfloat16:
      return DType::kBFloat16;
    default:
      end("unknown type " + std::to_string(type));
  }
}

bool is_float(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

Ref ref_of(const void* pointer, int64_t bytes) {
  Ref ref;
  ref.pid = getpid();
  if (bytes > 0 && !mixdown_fake_locate(pointer, bytes, &ref.number, &ref.offset)) {
    end("a buffer of " + std::to_string(bytes) + " bytes is not in device memory");
  }
  return ref;
}

namespace {

const char* look(Comm comm, const Ref& ref) {
  if (ref.number < 0) return nullptr;
  char*& base = comm->mapped[{ref.pid, ref.number}];
  if (base == nullptr) {
    const std::string path = folder() + "/mem." + std::to_string(ref.pid) + "." + std::to_string(ref.number);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) end("cannot open " + path);
    const off_t size = lseek(file, 0, SEEK_END);
    base = static_cast<char*>(mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_SHARED, file, 0));
    close(file);
  }
  return base + ref.offset;
}

}  // namespace

void meet(Comm comm) {
  const uint32_t phase = ++comm->phase;
  auto& mine = comm->member(comm->rank).phase;
  mine.store(phase);
  futex_wake(mine, Scope::kShared);
  for (int m = 0; m < comm->size; ++m) {
    auto& theirs = comm->member(m).phase;
    for (uint32_t seen; (seen = theirs.load()) < phase;) futex_wait(theirs, seen, Scope::kShared, 10'000'000);
  }
}

namespace {

// Elements from `first` on of all members' inputs, reduced.
void reduce_into(Comm comm, const Call& call, int64_t first, char* out) {
  const DType dtype = dtype_of(call.type);
  const int64_t offset = first * size_of(dtype);
  const int64_t bytes = call.count * size_of(dtype);
  const Arithmetic& arithmetic = host_arithmetic();
  std::vector<char> one(static_cast<size_t>(bytes));
  // As NCCL: floats are multiplied before they are added, integers divided after.
  double factor = call.factor;
  if (call.op == nccl::kAvg && is_float(dtype)) factor = 1.0 / comm->size;
  for (int m = 0; m < comm->size; ++m) {
    std::memcpy(one.data(), look(comm, comm->member(m).call.in) + offset, static_cast<size_t>(bytes));
    if (factor != 0) arithmetic.scale(dtype, one.data(), one.data(), call.count, factor);
    if (m == 0) {
      std::memcpy(out, one.data(), static_cast<size_t>(bytes));
    } else {
      arithmetic.combine(dtype, reduce_op_of(call.op), out, out, one.data(), call.count);
    }
  }
  if (call.op == nccl::kAvg && !is_float(dtype)) arithmetic.divide(dtype, out, call.count, comm->size);
}

void agree(Comm comm, const Call& mine) {
  for (int m = 0; m < comm->size; ++m) {
    const Call& c = comm->member(m).call;
    if (c.kind != mine.kind || c.type != mine.type || c.count != mine.count || c.root != mine.root ||
        c.factor != mine.factor || (c.op != mine.op && mine.factor == 0)) {
      end("members " + std::to_string(comm->rank) + " and " + std::to_string(m) + " disagree on a collective");
    }
  }
}

// Whether the last member of groups is to get wrong data.
bool wrong(Comm comm) { return comm->rank == comm->size - 1 && std::getenv("MIXDOWN_FAKE_WRONG") != nullptr; }

void collective(Comm comm, const Work& work) {
  const Call& call = work.call;
  const int64_t bytes = call.count * size_of(dtype_of(call.type));
  comm->member(comm->rank).call = call;
  meet(comm);
  agree(comm, call);
  std::vector<char> result;
  switch (call.kind) {
    case Call::kAllReduce:
      result.resize(static_cast<size_t>(bytes));
      reduce_into(comm, call, 0, result.data());
      break;
    case Call::kReduce:
      if (comm->rank != call.root) break;
      result.resize(static_cast<size_t>(bytes));
      reduce_into(comm, call, 0, result.data());
      break;
    case Call::kReduceScatter:
      result.resize(static_cast<size_t>(bytes));
      reduce_into(comm, call, comm->rank * call.count, result.data());
      break;
    case Call::kBroadcast: {
      const char* from = look(comm, comm->member(call.root).call.in);
      result.assign(from, from + bytes);
      break;
    }
    default:
      for (int m = 0; m < comm->size; ++m) {
        const char* from = look(comm, comm->member(m).call.in);
        result.insert(result.end(), from, from + bytes);
      }
  }
  meet(comm);  // nobody reads any more: outputs may lie on inputs
  if (wrong(comm) && !result.empty()) result.back() = static_cast<char>(result.back() ^ 1);
  if (!result.empty()) std::memcpy(work.out, result.data(), result.size());
}

// One step of a message, false while its other side is not there.
struct Message {
  const Work* work;
  uint32_t number = 0;  // among those of its mailbox
  bool posted = false;
};
bool advance(Comm comm, Message& m) {
  const Call& call = m.work->call;
  const int64_t bytes = call.count * size_of(dtype_of(call.type));
  const bool send = call.kind == Call::kSend;
  Mailbox& box = send ? comm->mailbox(comm->rank, call.root) : comm->mailbox(call.root, comm->rank);
  if (send) {
    if (!m.posted) {
      if (box.sent.load() != box.taken.load()) return false;  // the one before it is still there
      box.ref = call.in;
      box.bytes = bytes;
      m.number = box.sent.fetch_add(1) + 1;
      m.posted = true;
    }
    return box.taken.load() >= m.number;
  }
  if (box.sent.load() == box.taken.load()) return false;
  if (box.bytes != bytes) {
    end("a message of " + std::to_string(box.bytes) + " bytes is received as " + std::to_string(bytes));
  }
  std::memcpy(m.work->out, look(comm, box.ref), static_cast<size_t>(bytes));
  if (wrong(comm)) static_cast<char*>(m.work->out)[bytes - 1] ^= 1;
  box.taken.fetch_add(1);
  return true;
}

// All at once; of those to, or from, one peer in their order.
void messages(Comm comm, const std::vector<Work>& works) {
  std::map<std::pair<bool, int>, std::vector<Message>> queues;
  size_t left = 0;
  for (const Work& w : works) {
    if (w.call.kind != Call::kSend && w.call.kind != Call::kRecv) continue;
    queues[{w.call.kind == Call::kSend, w.call.root}].push_back({&w});
    ++left;
  }
  std::map<std::pair<bool, int>, size_t> done;
  for (int idle = 0; left > 0;) {
    bool moved = false;
    for (auto& [key, queue] : queues) {
      size_t& at = done[key];
      while (at < queue.size() && advance(comm, queue[at])) {
        ++at;
        --left;
        moved = true;
      }
    }
    idle = moved ? 0 : idle + 1;
    if (idle > 10) sleep_until(now_ns() + (idle > 100 ? 200'000 : 20'000));
  }
}

}  // namespace

void run(void* argument) {
  const std::unique_ptr<Kernel> kernel(static_cast<Kernel*>(argument));
  for (const Work& w : kernel->works) {
    if (w.call.kind != Call::kSend && w.call.kind != Call::kRecv) collective(kernel->comm, w);
  }
  messages(kernel->comm, kernel->works);
}

}  // namespace mixdown::fake
