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
      if (o.communicator == communicator && o.turn >= 0) bytes = std::max({bytes, o.in_bytes, o.out_bytes});
    }
  }
  return bytes;
}

void warm_up(Communicator& communicator, int size, const std::set<int>& peers) {
  communicator.barrier();
  std::vector<int32_t> in(size);
  std::vector<int32_t> out(size);
  communicator.all_reduce(in.data(), out.data(), 1, DType::kInt32, {});
  communicator.all_to_all(in.data(), out.data(), 1, DType::kInt32);
  if (peers.empty()) return;
  std::vector<Transfer> transfers;
  std::vector<char> bytes(2 * peers.size());
  for (const int peer : peers) {
    for (const bool send : {false, true}) {
      transfers.push_back({send, peer, &bytes[transfers.size()], 1, 0});
    }
  }
  communicator.batch(transfers.data(), transfers.size(), DType::kUInt8);
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> connect(Modules& modules, const World& world,
                                                   const std::vector<CommunicatorKey>& keys, const Groups& groups,
                                                   const std::vector<Program>& programs, Control& control) {
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
    warm_up(*communicators[k], static_cast<int>(keys[k].ranks.size()), peers_of(index, programs));
  }
  control.barrier(0);
  return communicators;
}

}  // namespace mixdown
