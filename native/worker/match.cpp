#include "worker/match.h"

#include <stdexcept>
#include <string>
#include <tuple>

#include "worker/ops.h"

namespace mixdown {
namespace {

[[noreturn]] void disagree(int plan, const std::string& what, const std::string& how) {
  throw std::runtime_error("invalid experiment: plan " + std::to_string(plan) + ": " + what + ": " + how);
}

using Members = std::vector<const pb::Communication*>;

bool compressed_alike(const pb::Communication& a, const pb::Communication& b) {
  return a.has_compression() == b.has_compression() && a.compression().codec() == b.compression().codec() &&
         a.compression().rate() == b.compression().rate();
}

// Elements that every member must have alike, for operations that have such.
int64_t common_count(const pb::Communication& c, bool root) {
  switch (c.op()) {
    case pb::OP_ALL_REDUCE:
    case pb::OP_REDUCE:
    case pb::OP_ALL_GATHER:
    case pb::OP_ALL_TO_ALL:
    case pb::OP_GATHER:
      return c.in_count();
    case pb::OP_BROADCAST:
      return root ? c.in_count() : c.out_count();
    case pb::OP_REDUCE_SCATTER:
    case pb::OP_SCATTER:
      return c.out_count();
    default:
      return 0;
  }
}

// As common_count of every part.
bool parts_alike(const pb::Communication& a, bool a_root, const pb::Communication& b, bool b_root) {
  if (a.parts_size() != b.parts_size()) return false;
  for (int i = 0; i < a.parts_size(); ++i) {
    if (common_count(part_of(a, i), a_root) != common_count(part_of(b, i), b_root)) return false;
  }
  return true;
}

void check_alike(int plan, const std::string& what, const Members& members, const pb::Group& group) {
  const pb::Communication& first = *members[0];
  for (size_t m = 0; m < members.size(); ++m) {
    const pb::Communication& c = *members[m];
    const std::string ranks = "ranks " + std::to_string(group.ranks(0)) + " and " +
                              std::to_string(group.ranks(static_cast<int>(m))) + " disagree on ";
    if (c.op() != first.op()) disagree(plan, what, ranks + "the op: " + name_of(first.op()) + ", " + name_of(c.op()));
    if (c.backend() != first.backend()) disagree(plan, what, ranks + "the backend");
    if (c.op() == pb::OP_BARRIER) continue;
    if (c.dtype() != first.dtype()) disagree(plan, what, ranks + "the dtype");
    if (reduces(c.op()) && c.reduce_op() != first.reduce_op()) disagree(plan, what, ranks + "the reduce op");
    if (rooted(c.op()) && c.root() != first.root()) disagree(plan, what, ranks + "the root");
    if (c.in_place() != first.in_place()) disagree(plan, what, ranks + "being in place");
    if (!compressed_alike(c, first)) disagree(plan, what, ranks + "the compression");
    if (c.reduce_op() == pb::REDUCE_OP_PREMUL_SUM && c.factor() != first.factor()) {
      disagree(plan, what, ranks + "the factor");
    }
    const bool root = c.root() == group.ranks(static_cast<int>(m));
    const bool first_root = first.root() == group.ranks(0);
    if (!parts_alike(c, root, first, first_root)) disagree(plan, what, ranks + "the parts");
    const int64_t mine = common_count(c, root);
    const int64_t theirs = common_count(first, first_root);
    if (mine != theirs) {
      disagree(plan, what, ranks + "the count: " + std::to_string(theirs) + ", " + std::to_string(mine));
    }
  }
}

void check_splits(int plan, const std::string& what, const Members& members, const pb::Group& group) {
  const int size = static_cast<int>(members.size());
  const pb::Op op = members[0]->op();
  const bool gathers = op == pb::OP_ALL_GATHERV || op == pb::OP_GATHERV;
  const bool scatters = op == pb::OP_REDUCE_SCATTERV || op == pb::OP_SCATTERV;
  int64_t total = 0;
  for (const auto* c : members) total += gathers ? c->in_count() : c->out_count();
  for (int i = 0; i < size; ++i) {
    const pb::Communication& c = *members[i];
    const auto entry = [&](const std::string& name, int j, int64_t mine, int64_t theirs) {
      if (mine == theirs) return;
      disagree(plan, what, name + " of member " + std::to_string(i) + " for member " + std::to_string(j) + " is " +
                               std::to_string(mine) + ", that member has " + std::to_string(theirs));
    };
    const bool whole = !rooted(op) || c.root() == group.ranks(i);  // it has all the blocks
    if (gathers && whole && c.out_count() != total) {
      disagree(plan, what, "out_count of member " + std::to_string(i) + " is not the sum of all in_counts");
    }
    if (scatters && whole && c.in_count() != total) {
      disagree(plan, what, "in_count of member " + std::to_string(i) + " is not the sum of all out_counts");
    }
    for (int j = 0; j < size; ++j) {
      if (op == pb::OP_ALL_TO_ALLV) entry("in_splits", j, c.in_splits(j), members[j]->out_splits(i));
      if (gathers && !c.out_splits().empty()) {
        entry("out_splits", j, c.out_splits(j), members[j]->in_count());
      }
      if (scatters && !c.in_splits().empty()) {
        entry("in_splits", j, c.in_splits(j), members[j]->out_count());
      }
    }
  }
}

// The two ends of each transfer.
class Ends {
 public:
  explicit Ends(int plan) : plan_(plan) {}

  void add(int rank, const pb::Communication& c) {
    for (const auto& t : c.transfers()) {
      const int from = t.send() ? rank : t.peer();
      const int to = t.send() ? t.peer() : rank;
      End& end = ends_[{c.group(), from, to, t.match()}][t.send() ? 0 : 1];
      if (end.communication != nullptr) disagree(plan_, name(c.group(), from, to, t.match()), "is there twice");
      end = {&c, t.count()};
    }
  }

  void check() const {
    for (const auto& [key, ends] : ends_) {
      const auto& [send, receive] = ends;
      const std::string what = std::apply(name, key);
      if (send.communication == nullptr) disagree(plan_, what, "is received but never sent");
      if (receive.communication == nullptr) disagree(plan_, what, "is sent but never received");
      if (send.count != receive.count) disagree(plan_, what, "the sides disagree on the count");
      if (send.communication->dtype() != receive.communication->dtype()) {
        disagree(plan_, what, "the sides disagree on the dtype");
      }
      if (send.communication->backend() != receive.communication->backend()) {
        disagree(plan_, what, "the sides disagree on the backend");
      }
      if (!compressed_alike(*send.communication, *receive.communication)) {
        disagree(plan_, what, "the sides disagree on the compression");
      }
    }
  }

 private:
  struct End {
    const pb::Communication* communication = nullptr;
    int64_t count = 0;
  };

  static std::string name(int group, int from, int to, int64_t match) {
    return "transfer " + std::to_string(match) + " of group " + std::to_string(group) + " from rank " +
           std::to_string(from) + " to rank " + std::to_string(to);
  }

  int plan_;
  std::map<std::tuple<int, int, int, int64_t>, std::array<End, 2>> ends_;
};

}  // namespace

Match::Match(const pb::Plan& plan, int index, const Groups& groups) {
  Ends ends(index);
  for (const auto& program : plan.workload().programs()) {
    for (const auto& task : program.tasks()) {
      if (!task.has_communication()) continue;
      const pb::Communication& c = task.communication();
      if (point_to_point(c.op())) {
        ends.add(program.rank(), c);
        continue;
      }
      Members& members = collectives_[{c.group(), c.seq()}];
      members.resize(groups.size(c.group()));
      members[groups.position(c.group(), program.rank())] = &c;
    }
  }
  ends.check();
  for (const auto& [key, members] : collectives_) {
    const auto& [group, seq] = key;
    const std::string what = "collective " + std::to_string(seq) + " of group " + std::to_string(group);
    for (size_t m = 0; m < members.size(); ++m) {
      if (members[m] != nullptr) continue;
      disagree(index, what, "rank " + std::to_string(groups.rank(group, static_cast<int>(m))) + " does not take part");
    }
    check_alike(index, what, members, plan.workload().groups(group));
    check_splits(index, what, members, plan.workload().groups(group));
  }
}

}  // namespace mixdown
