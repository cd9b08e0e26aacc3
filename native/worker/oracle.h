// What an operation must do to the data, told independently of any backend.
#pragma once

#include <cstdint>
#include <vector>

#include "plan.pb.h"
#include "worker/groups.h"
#include "worker/match.h"
#include "worker/values.h"

namespace mixdown {

/// Elements [offset, offset + length) of one rank's input.
struct Segment {
  int rank;            ///< global rank whose input it is
  uint64_t operation;  ///< see Values
  int64_t offset;
  int64_t length;
};

/// How one rank's buffers look before and after an operation.
struct Expectation {
  std::vector<Segment> input;  ///< this rank's input, segments one after the other
  int member = 0;              ///< this rank's position in the group

  /// Output of an operation that moves data, segments one after the other.
  std::vector<Segment> moved;

  /// Output of an operation that reduces: element i is the reduction of element
  /// `reduced_offset` + i of the inputs of all `members`.
  std::vector<int> members;
  uint64_t operation = 0;
  int64_t reduced_offset = 0;
  int64_t reduced_length = 0;

  Pattern pattern = Pattern::kMove;

  /// Of the parts of a coalesced operation; the rest is unused then.
  std::vector<Expectation> parts;
};

/// Makes it one of other numbers. All members must, so that theirs agree.
void renumber(Expectation& expectation);

/// The expectation of a communication of the rank.
Expectation expect(const pb::Communication& communication, int rank, const Groups& groups, const Match& match);

}  // namespace mixdown
