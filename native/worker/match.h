// Which communications of different ranks belong together.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "plan.pb.h"
#include "worker/groups.h"

namespace mixdown {

namespace pb = ::mixdown::plan::v1;

/// The matched communications of one plan. Making one checks that the members
/// agree, so that no backend ever sees buffers that do not fit together; it throws
/// std::runtime_error where they do not. The plan outlives it and is valid.
class Match {
 public:
  Match(const pb::Plan& plan, int index, const Groups& groups);

  /// The members' views of the collective that `c` is one of, in group order.
  const std::vector<const pb::Communication*>& members(const pb::Communication& c) const {
    return collectives_.at({c.group(), c.seq()});
  }

 private:
  std::map<std::pair<int, int64_t>, std::vector<const pb::Communication*>> collectives_;
};

}  // namespace mixdown
