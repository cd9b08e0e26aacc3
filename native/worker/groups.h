// Positions of ranks: in the groups, and among the workers.
#pragma once

#include <unordered_map>
#include <vector>

#include "plan.pb.h"

namespace mixdown {

namespace pb = ::mixdown::plan::v1;

/// Looks up where a global rank stands. The workload outlives it and is valid.
class Groups {
 public:
  explicit Groups(const pb::Workload& workload) : workload_(workload), positions_(workload.groups_size()) {
    for (int g = 0; g < workload.groups_size(); ++g) {
      const auto& ranks = workload.groups(g).ranks();
      for (int m = 0; m < ranks.size(); ++m) positions_[g].emplace(ranks[m], m);
    }
    for (int i = 0; i < workload.programs_size(); ++i) workers_.emplace(workload.programs(i).rank(), i);
  }

  int size(int group) const { return workload_.groups(group).ranks_size(); }

  /// Global rank of a member.
  int rank(int group, int position) const { return workload_.groups(group).ranks(position); }

  /// Position of a global rank in the group, -1 if it is no member.
  int position(int group, int rank) const { return find(positions_[group], rank); }

  /// Index of the program of a global rank, -1 if it has none.
  int worker(int rank) const { return find(workers_, rank); }

 private:
  using Map = std::unordered_map<int, int>;
  static int find(const Map& map, int rank) {
    const auto entry = map.find(rank);
    return entry == map.end() ? -1 : entry->second;
  }

  const pb::Workload& workload_;
  std::vector<Map> positions_;
  Map workers_;
};

}  // namespace mixdown
