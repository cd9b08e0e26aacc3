// The functions of NCCL that the module uses, declared by ourselves and looked up
// at run time in libnccl.so.2. Names, numbers and signatures are those of nccl.h
// of NCCL 2.18 to 2.32; the functions are there since 2.14. RCCL has the same ones
// in librccl.so.1: compiled with MIXDOWN_RCCL the module is RCCL's.
#pragma once

#include <climits>
#include <cstddef>
#include <string>

#include "device/api.h"

namespace mixdown::nccl {

#ifdef MIXDOWN_RCCL
inline constexpr const char* kName = "rccl";
inline constexpr const char* kTitle = "RCCL";
inline constexpr const char* kFile = "librccl.so.1";
inline constexpr const char* kVariable = "MIXDOWN_RCCL";  ///< names another file
inline constexpr device::Platform kPlatform = device::Platform::kHip;
#else
inline constexpr const char* kName = "nccl";
inline constexpr const char* kTitle = "NCCL";
inline constexpr const char* kFile = "libnccl.so.2";
inline constexpr const char* kVariable = "MIXDOWN_NCCL";
inline constexpr device::Platform kPlatform = device::Platform::kCuda;
#endif

using Result = int;                ///< ncclResult_t, 0 is success
using Comm = struct CommOpaque*;   ///< ncclComm_t
using Stream = void*;              ///< cudaStream_t, the same as the driver's CUstream, or hipStream_t
using DataType = int;              ///< ncclDataType_t
using RedOp = int;                 ///< ncclRedOp_t

inline constexpr Result kSuccess = 0;

// ncclDataType_t
inline constexpr DataType kInt8 = 0;
inline constexpr DataType kUint8 = 1;
inline constexpr DataType kInt32 = 2;
inline constexpr DataType kUint32 = 3;
inline constexpr DataType kInt64 = 4;
inline constexpr DataType kUint64 = 5;
inline constexpr DataType kFloat16 = 6;
inline constexpr DataType kFloat32 = 7;
inline constexpr DataType kFloat64 = 8;
inline constexpr DataType kBfloat16 = 9;

// ncclRedOp_t
inline constexpr RedOp kSum = 0;
inline constexpr RedOp kProd = 1;
inline constexpr RedOp kMax = 2;
inline constexpr RedOp kMin = 3;
inline constexpr RedOp kAvg = 4;

inline constexpr int kScalarHostImmediate = 1;  ///< ncclScalarResidence_t: read from host memory before the call returns

/// ncclUniqueId: where the members of a communicator meet.
struct UniqueId {
  char internal[128];
};

/// ncclConfig_t as of 2.18. NCCL takes as much of it as `size` says and gives
/// later members their defaults.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = 1;
  int cga_cluster_size = INT_MIN;  ///< INT_MIN: NCCL's choice, here and below
  int min_ctas = INT_MIN;
  int max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
};

/// NCCL's functions. Filled by load().
struct Api {
  Result (*get_version)(int* version);
  const char* (*error_string)(Result result);
  const char* (*last_error)(Comm comm);
  Result (*get_unique_id)(UniqueId* id);
  Result (*comm_init)(Comm* comm, int size, UniqueId id, int rank, Config* config);
  Result (*comm_destroy)(Comm comm);
  Result (*all_reduce)(const void* in, void* out, size_t count, DataType type, RedOp op, Comm comm, Stream stream);
  Result (*reduce)(const void* in, void* out, size_t count, DataType type, RedOp op, int root, Comm comm, Stream stream);
  Result (*broadcast)(const void* in, void* out, size_t count, DataType type, int root, Comm comm, Stream stream);
  Result (*all_gather)(const void* in, void* out, size_t count, DataType type, Comm comm, Stream stream);
  Result (*reduce_scatter)(const void* in, void* out, size_t count, DataType type, RedOp op, Comm comm, Stream stream);
  Result (*send)(const void* in, size_t count, DataType type, int peer, Comm comm, Stream stream);
  Result (*recv)(void* out, size_t count, DataType type, int peer, Comm comm, Stream stream);
  Result (*group_start)();
  Result (*group_end)();
  Result (*premul_sum)(RedOp* op, void* scalar, DataType type, int residence, Comm comm);
  Result (*op_destroy)(RedOp op, Comm comm);
};

/// NCCL's functions: from the library that the environment names, else kFile
/// as the system finds it. Throws std::runtime_error. Every call gives the same
/// table.
const Api& load();

/// Throws std::runtime_error with NCCL's own words unless `result` is success.
void check(Result result, const char* call);

/// NCCL's version, for example "2.30.3".
std::string version();

}  // namespace mixdown::nccl
