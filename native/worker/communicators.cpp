#include "worker/communicators.h"

#include <algorithm>
#include <set>

#include "worker/ops.h"

namespace mixdown {
namespace {

// Members that this rank has transfers with. The relation is symmetric: what one
// side sends the other receives.
std::set<int> peers_of(int communicator, const std::vector<Program>& programs) {
  std::set<int> peers;
  for (const Program& program : programs) {
    for (const Operation& o : program.operations) {
      if (o.communicator != communicator) continue;
      for (const Transfer& t : o.transfers) peers.insert(t.peer);
    }
  }
  return peers;
}

int64_t largest_input(int communicator, const std::vector<Program>& programs) {
  int64_t bytes = 0;
  for (const Program& program : programs) {
    for (const Operation& o : program.operations) {
      if (o.communicator != communicator || o.turn < 0) continue;
      bytes = std::max({bytes, o.in_bytes, o.out_bytes});
      // Of few elements there may be more bytes than before.
      each_compressed(o, [&](const Compressed& payload) { bytes = std::max(bytes, payload.largest()); });
    }
  }
  return bytes;
}

// Bytes that all_to_all(v) in place needs beside its buffers, each part from a
// multiple of 16 on.
int64_t largest_in_place(int communicator, const std::vector<Program>& programs) {
  const auto padded = [](const Operation& o) { return (o.in_bytes + 15) / 16 * 16; };
  int64_t bytes = 0;
  for (const Program& program : programs) {
    for (const Operation& o : program.operations) {
      const bool moves = o.op == pb::OP_ALL_TO_ALL || o.op == pb::OP_ALL_TO_ALLV;
      if (o.communicator != communicator || !moves || o.overlap == Overlap::kNone) continue;
      int64_t need = o.parts.empty() ? padded(o) : 0;
      for (const Operation& part : o.parts) need += padded(part);
      bytes = std::max(bytes, need);
    }
  }
  return bytes;
}

// `space` is zeroed memory of warm_up_bytes.
void warm_up(Communicator& communicator, int size, const std::set<int>& peers, char* space) {
  const int64_t half = int64_t{4} * size;
  communicator.barrier();
  communicator.all_reduce(space, space + half, 1, DType::kInt32, {});
  communicator.all_to_all(space, space + half, 1, DType::kInt32);
  if (peers.empty()) return;
  std::vector<Transfer> transfers;
  char* bytes = space + 2 * half;
  for (const int peer : peers) {
    for (const bool send : {false, true}) {
      transfers.push_back({send, peer, bytes++, 1, 0});
    }
  }
  communicator.batch(transfers.data(), transfers.size(), DType::kUInt8);
}

int64_t warm_up_bytes(int size, const std::set<int>& peers) {
  return int64_t{8} * size + 2 * static_cast<int64_t>(peers.size());
}

void warm_up_on(const Gpu& gpu, Communicator& communicator, int size, const std::set<int>& peers) {
  const DeviceBuffer space(gpu, warm_up_bytes(size, peers), 0);
  const DeviceStream stream(gpu);
  communicator.use_stream(stream.handle());
  warm_up(communicator, size, peers, space.data());
  stream.synchronize();
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> connect(Modules& modules, const World& world,
                                                   const std::vector<CommunicatorKey>& keys, const Groups& groups,
                                                   const std::vector<Program>& programs, Control& control,
                                                   const Gpu* gpu) {
  control.barrier(0);
  for (auto& [name, backend] : modules) backend->init(world);
  std::vector<std::unique_ptr<Communicator>> communicators(keys.size());
  for (size_t k = 0; k < keys.size(); ++k) {
    std::vector<int> members;
    for (const int rank : keys[k].ranks) members.push_back(groups.worker(rank));
    if (std::find(members.begin(), members.end(), world.rank) == members.end()) continue;
    communicators[k] = modules[keys[k].backend].group(std::to_string(k), members);
  }
  for (size_t k = 0; k < keys.size(); ++k) {
    if (communicators[k] == nullptr) continue;
    const int index = static_cast<int>(k);
    communicators[k]->reserve(largest_input(index, programs));
    communicators[k]->reserve_in_place(largest_in_place(index, programs));
    const int size = static_cast<int>(keys[k].ranks.size());
    const std::set<int> peers = peers_of(index, programs);
    if (gpu != nullptr && modules[keys[k].backend].stream_ordered()) {
      warm_up_on(*gpu, *communicators[k], size, peers);
    } else {
      std::vector<char> space(static_cast<size_t>(warm_up_bytes(size, peers)));
      warm_up(*communicators[k], size, peers, space.data());
    }
  }
  control.barrier(0);
  return communicators;
}

}  // namespace mixdown
