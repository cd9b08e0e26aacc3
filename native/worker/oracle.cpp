#include "worker/oracle.h"

#include "worker/ops.h"

namespace mixdown {
namespace {

Pattern pattern_of(const pb::Communication& c) {
  if (!reduces(c.op())) return Pattern::kMove;
  switch (c.reduce_op()) {
    case pb::REDUCE_OP_MIN:
    case pb::REDUCE_OP_MAX:
      return Pattern::kCompare;
    case pb::REDUCE_OP_PROD:
      return Pattern::kMultiply;
    case pb::REDUCE_OP_BAND:
    case pb::REDUCE_OP_BOR:
    case pb::REDUCE_OP_BXOR:
      return Pattern::kBits;
    default:
      return Pattern::kAdd;
  }
}

// Numbers that tell operations apart; equal on all members.
uint64_t collective_number(const pb::Communication& c, int part) {
  return (static_cast<uint64_t>(c.group()) << 40) ^ static_cast<uint64_t>(c.seq()) ^
         (static_cast<uint64_t>(part) << 20);
}
uint64_t transfer_number(const pb::Communication& c, const pb::Transfer& t) {
  return (uint64_t{1} << 63) ^ (static_cast<uint64_t>(c.group()) << 40) ^ static_cast<uint64_t>(t.match()) ^
         (static_cast<uint64_t>(t.count()) << 20);
}

void expect_transfers(const pb::Communication& c, int rank, Expectation& e) {
  for (const auto& t : c.transfers()) {
    if (t.send()) {
      e.input.push_back({rank, transfer_number(c, t), 0, t.count()});
    } else {
      e.moved.push_back({t.peer(), transfer_number(c, t), 0, t.count()});
    }
  }
}

// `part` is 0 for the whole, else 1 + the part's index. Counts of members are
// looked up for operations with uneven blocks alone, which have no parts.
Expectation expect_collective(const pb::Communication& c, int part, int rank, const Groups& groups,
                              const Match& match) {
  Expectation e;
  e.pattern = pattern_of(c);
  const int group = c.group();
  const int size = groups.size(group);
  const int self = groups.position(group, rank);
  e.member = self;
  const uint64_t number = collective_number(c, part);
  const auto& views = match.members(c);
  const auto take = [&](int member, int64_t offset, int64_t length) {
    e.moved.push_back({groups.rank(group, member), number, offset, length});
  };
  const auto reduce = [&](int64_t offset, int64_t length) {
    e.operation = number;
    e.reduced_offset = offset;
    e.reduced_length = length;
    for (int m = 0; m < size; ++m) e.members.push_back(groups.rank(group, m));
  };
  // Elements of the members before this one.
  const auto before = [&] {
    int64_t offset = 0;
    for (int m = 0; m < self; ++m) offset += views[m]->out_count();
    return offset;
  };
  int64_t input = c.in_count();
  switch (c.op()) {
    case pb::OP_ALL_REDUCE:
      reduce(0, c.in_count());
      break;
    case pb::OP_REDUCE:
      if (rank == c.root()) reduce(0, c.in_count());
      break;
    case pb::OP_BROADCAST:
      if (rank != c.root()) {
        take(groups.position(group, c.root()), 0, c.out_count());
        input = 0;
      }
      break;
    case pb::OP_ALL_GATHER:
      for (int m = 0; m < size; ++m) take(m, 0, c.in_count());
      break;
    case pb::OP_ALL_GATHERV:
      for (int m = 0; m < size; ++m) take(m, 0, views[m]->in_count());
      break;
    case pb::OP_REDUCE_SCATTER:
      reduce(self * c.out_count(), c.out_count());
      break;
    case pb::OP_REDUCE_SCATTERV:
      reduce(before(), c.out_count());
      break;
    case pb::OP_ALL_TO_ALL: {
      const int64_t block = c.in_count() / size;
      for (int m = 0; m < size; ++m) take(m, self * block, block);
      break;
    }
    case pb::OP_ALL_TO_ALLV:
      for (int m = 0; m < size; ++m) {
        int64_t offset = 0;
        for (int before = 0; before < self; ++before) offset += views[m]->in_splits(before);
        take(m, offset, views[m]->in_splits(self));
      }
      break;
    case pb::OP_GATHER:
      if (rank == c.root()) {
        for (int m = 0; m < size; ++m) take(m, 0, c.in_count());
      }
      break;
    case pb::OP_GATHERV:
      if (rank == c.root()) {
        for (int m = 0; m < size; ++m) take(m, 0, views[m]->in_count());
      }
      break;
    case pb::OP_SCATTER:
      take(groups.position(group, c.root()), self * c.out_count(), c.out_count());
      if (rank != c.root()) input = 0;
      break;
    case pb::OP_SCATTERV:
      take(groups.position(group, c.root()), before(), c.out_count());
      if (rank != c.root()) input = 0;
      break;
    default:
      input = 0;  // barrier
  }
  e.input.push_back({rank, number, 0, input});
  return e;
}

}  // namespace

void renumber(Expectation& e) {
  constexpr uint64_t kOther = 0x5bd1e9955bd1e995;
  e.operation ^= kOther;
  for (Segment& segment : e.input) segment.operation ^= kOther;
  for (Segment& segment : e.moved) segment.operation ^= kOther;
  for (Expectation& part : e.parts) renumber(part);
}

Expectation expect(const pb::Communication& c, int rank, const Groups& groups, const Match& match) {
  Expectation e;
  if (point_to_point(c.op())) {
    expect_transfers(c, rank, e);
    return e;
  }
  if (c.parts().empty() || element_wise(c.op())) return expect_collective(c, 0, rank, groups, match);
  for (int i = 0; i < c.parts_size(); ++i) {
    e.parts.push_back(expect_collective(part_of(c, i), 1 + i, rank, groups, match));
  }
  return e;
}

}  // namespace mixdown
