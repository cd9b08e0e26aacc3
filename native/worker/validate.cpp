#include "worker/validate.h"

#include <cmath>
#include <set>
#include <stdexcept>
#include <string>

#include "worker/compressed.h"
#include "worker/experiment.h"
#include "worker/groups.h"
#include "worker/lower.h"
#include "worker/ops.h"

namespace mixdown {
namespace {

constexpr int64_t kMaxCount = int64_t{1} << 40;            // elements
constexpr int64_t kMaxSpan = int64_t{24} * 3600'000'000'000;  // ns, of one task and of one stream
constexpr int64_t kMaxMatch = int64_t{1} << 62;
constexpr int kMaxStreams = 1024;  // each is a thread
constexpr int kMaxRanks = 1 << 20;
constexpr int kMaxParts = 1 << 20;

// Where the checks below are, for messages.
struct Cursor {
  std::string plan;
  std::string program;
  std::string task;

  void require(bool ok, const std::string& problem) const {
    if (!ok) throw std::runtime_error("invalid experiment: " + plan + program + task + problem);
  }
};

std::string number(int64_t value) { return std::to_string(value); }

void check_settings(const pb::Settings& settings, const Cursor& at) {
  at.require(settings.iterations() >= 0, "settings.iterations is negative");
  at.require(settings.warmup() >= 0, "settings.warmup is negative");
  at.require(settings.samples() >= 0, "settings.samples is negative");
  at.require(settings.span_mode() == pb::SPAN_MODE_SLEEP || settings.span_mode() == pb::SPAN_MODE_SPIN,
             "settings.span_mode must be sleep or spin");
  at.require(pb::Device_IsValid(settings.device()), "settings.device is unknown");
  at.require(settings.sm_share() >= 0 && settings.sm_share() <= 1, "settings.sm_share must be from 0 to 1");
}

void check_groups(const pb::Workload& workload, const Cursor& at) {
  for (int g = 0; g < workload.groups_size(); ++g) {
    const std::string name = "group " + number(g) + ": ";
    const auto& ranks = workload.groups(g).ranks();
    at.require(!ranks.empty(), name + "no ranks");
    std::set<int> seen;
    for (const int rank : ranks) {
      at.require(rank >= 0 && rank < workload.world_size(), name + "rank " + number(rank) + " is outside the world of " +
                                                                number(workload.world_size()));
      at.require(seen.insert(rank).second, name + "rank " + number(rank) + " is twice in it");
    }
  }
}

// A negative total is not known to this rank.
void check_splits(const google::protobuf::RepeatedField<int64_t>& splits, int members,
                  int64_t total, const std::string& name, const Cursor& at) {
  at.require(splits.size() == members,
             name + " has " + number(splits.size()) + " entries for a group of " + number(members));
  int64_t sum = 0;
  for (const int64_t split : splits) {
    at.require(split >= 0 && split <= kMaxCount, name + " has an entry of " + number(split));
    sum += split;
    at.require(sum <= kMaxCount, name + " adds up to too much");
  }
  at.require(total < 0 || sum == total, name + " adds up to " + number(sum) + ", not " + number(total));
}

void check_transfers(const pb::Communication& c, const Groups& groups, const Cursor& at) {
  const auto& transfers = c.transfers();
  if (c.op() == pb::OP_BATCH) {
    at.require(!transfers.empty(), "batch without transfers");
  } else {
    at.require(transfers.size() == 1, "needs exactly one transfer, has " + number(transfers.size()));
    at.require(transfers[0].send() == (c.op() == pb::OP_SEND), "its transfer is of the other direction");
  }
  int64_t sent = 0;
  int64_t received = 0;
  for (const auto& t : transfers) {
    at.require(groups.position(c.group(), t.peer()) >= 0,
               "peer " + number(t.peer()) + " is not in group " + number(c.group()));
    at.require(t.count() >= 0 && t.count() <= kMaxCount, "transfer of " + number(t.count()) + " elements");
    at.require(t.match() >= 0 && t.match() < kMaxMatch, "match must be from 0 to 2^62-1");
    at.require(t.buffer() >= 0, "buffer is negative");
    (t.send() ? sent : received) += t.count();
    at.require(sent <= kMaxCount && received <= kMaxCount, "transfers add up to too much");
  }
  at.require(c.in_count() == sent || c.in_count() == 0, "in_count is not the sum of what it sends");
  at.require(c.out_count() == received || c.out_count() == 0, "out_count is not the sum of what it receives");
}

void check_counts(const pb::Communication& c, int members, bool root, const Cursor& at) {
  const int64_t in = c.in_count();
  const int64_t out = c.out_count();
  const std::string counts = " (in_count " + number(in) + ", out_count " + number(out) + ", group of " +
                             number(members) + ")";
  switch (c.op()) {
    case pb::OP_ALL_REDUCE:
      return at.require(in == out, "in_count and out_count must be equal" + counts);
    case pb::OP_REDUCE:
      return at.require(out == in || (!root && out == 0), "out_count must be in_count at the root" + counts);
    case pb::OP_BROADCAST:
      return at.require(in == out || (root ? out == 0 : in == 0), "in_count and out_count disagree" + counts);
    case pb::OP_ALL_GATHER:
      return at.require(out == in * members, "out_count must be in_count times the group's size" + counts);
    case pb::OP_REDUCE_SCATTER:
      return at.require(in == out * members, "in_count must be out_count times the group's size" + counts);
    case pb::OP_ALL_TO_ALL:
      return at.require(in == out && in % members == 0,
                        "in_count and out_count must be equal and a multiple of the group's size" + counts);
    case pb::OP_GATHER:
      return at.require(out == in * members || (!root && out == 0),
                        "out_count must be in_count times the group's size at the root" + counts);
    case pb::OP_GATHERV:
      // Without splits they are taken from the other members' in_count.
      if (!c.out_splits().empty()) check_splits(c.out_splits(), members, root ? out : -1, "out_splits", at);
      return;
    case pb::OP_SCATTERV:
      if (!c.in_splits().empty()) check_splits(c.in_splits(), members, root ? in : -1, "in_splits", at);
      return;
    case pb::OP_SCATTER:
      return at.require(in == out * members || (!root && in == 0),
                        "in_count must be out_count times the group's size at the root" + counts);
    case pb::OP_ALL_TO_ALLV:
      check_splits(c.in_splits(), members, in, "in_splits", at);
      return check_splits(c.out_splits(), members, out, "out_splits", at);
    case pb::OP_ALL_GATHERV:
      // Without splits they are taken from the other members' in_count.
      if (!c.out_splits().empty()) check_splits(c.out_splits(), members, out, "out_splits", at);
      return;
    case pb::OP_REDUCE_SCATTERV:
      if (!c.in_splits().empty()) check_splits(c.in_splits(), members, in, "in_splits", at);
      return;
    default:
      return;
  }
}

void check_parts(const pb::Communication& c, int members, bool root, const Cursor& at) {
  at.require(coalesces(c.op()), name_of(c.op()) + " cannot have parts");
  at.require(c.parts_size() <= kMaxParts, number(c.parts_size()) + " parts");
  int64_t in = 0;
  int64_t out = 0;
  for (int i = 0; i < c.parts_size(); ++i) {
    const pb::Part& part = c.parts(i);
    const std::string name = "part " + number(i) + ": ";
    at.require(part.in_count() >= 0 && part.in_count() <= kMaxCount, name + "in_count is " + number(part.in_count()));
    at.require(part.out_count() >= 0 && part.out_count() <= kMaxCount,
               name + "out_count is " + number(part.out_count()));
    Cursor there = at;
    there.task += name;
    check_counts(part_of(c, i), members, root, there);
    in += part.in_count();
    out += part.out_count();
  }
  at.require(in == c.in_count() && out == c.out_count(), "in_count and out_count are not the sums of its parts");
}

// What an operation in place leaves to be said.
void check_in_place(const pb::Communication& c, const Cursor& at) {
  at.require(!point_to_point(c.op()) && c.op() != pb::OP_BARRIER, name_of(c.op()) + " cannot be in place");
  if (c.op() != pb::OP_ALL_TO_ALLV) return;
  at.require(std::equal(c.in_splits().begin(), c.in_splits().end(), c.out_splits().begin(), c.out_splits().end()),
             "in place in_splits and out_splits must be equal");
}

void check_reduction(const pb::Communication& c, const Cursor& at) {
  at.require(c.reduce_op() > pb::REDUCE_OP_UNSPECIFIED && pb::ReduceOp_IsValid(c.reduce_op()),
             "reduce_op is not set or unknown");
  const std::string why = refusal(c.dtype(), c.reduce_op());
  at.require(why.empty(), name_of(c.op()) + " " + name_of(c.reduce_op()) + " of " + name_of(c.dtype()) + ": " + why);
  at.require(c.reduce_op() != pb::REDUCE_OP_PREMUL_SUM || std::isfinite(c.factor()), "factor is not a number");
}

void check_compression(const pb::Communication& c, const Cursor& at) {
  at.require(c.op() != pb::OP_BARRIER, "barrier has nothing to compress");
  const double bits = bits_of(c.compression());
  at.require(bits > 0, "its codec is not set or unknown, or its rate is not a multiple of 1/4 from 3 to 63.75");
  const int size = compressible_bits(c.dtype());
  at.require(size > 0, "only floating types can be compressed, not " + name_of(c.dtype()));
  at.require(bits < size, name_of(c.compression()) + " does not make " + name_of(c.dtype()) + " smaller");
}

// NAME or NAME:SETTINGS.
void check_backend(const std::string& backend, const Cursor& at) {
  const std::string letters = "abcdefghijklmnopqrstuvwxyz0123456789_-";
  const size_t colon = backend.find(':');
  const std::string name = backend.substr(0, colon);
  at.require(!name.empty() && backend.size() <= 64, "backend is not set, or longer than 64 letters");
  // It becomes part of a file name.
  at.require(name.find_first_not_of(letters) == std::string::npos, "backend may only have a-z, 0-9, _ and -");
  if (colon == std::string::npos) return;
  const std::string settings = backend.substr(colon + 1);
  at.require(!settings.empty() && settings.find_first_not_of(letters + "/=.") == std::string::npos,
             "settings of a backend may only have a-z, 0-9, _, -, /, = and .");
}

void check_communication(const pb::Communication& c, int rank, const pb::Workload& workload, const Groups& groups,
                         const Cursor& at) {
  at.require(c.group() >= 0 && c.group() < workload.groups_size(), "group " + number(c.group()) + " does not exist");
  at.require(groups.position(c.group(), rank) >= 0,
             "rank " + number(rank) + " is not in group " + number(c.group()));
  for (const int member : workload.groups(c.group()).ranks()) {
    at.require(groups.worker(member) >= 0, "rank " + number(member) + " of group " + number(c.group()) +
                                               " has no program; only groups whose members all run can be replayed");
  }
  at.require(c.op() > pb::OP_UNSPECIFIED && pb::Op_IsValid(c.op()), "op is not set or unknown");
  at.require(c.op() == pb::OP_BARRIER || (c.dtype() > pb::DTYPE_UNSPECIFIED && pb::DType_IsValid(c.dtype())),
             "dtype is not set or unknown");
  if (reduces(c.op())) check_reduction(c, at);
  if (c.in_place()) check_in_place(c, at);
  at.require(c.in_count() >= 0 && c.in_count() <= kMaxCount, "in_count is " + number(c.in_count()));
  at.require(c.out_count() >= 0 && c.out_count() <= kMaxCount, "out_count is " + number(c.out_count()));
  at.require(c.in_buffer() >= 0 && c.out_buffer() >= 0, "in_buffer or out_buffer is negative");
  at.require(c.channels() >= 0, "channels is " + number(c.channels()));
  at.require(!rooted(c.op()) || groups.position(c.group(), c.root()) >= 0,
             "root " + number(c.root()) + " is not in group " + number(c.group()));
  check_backend(c.backend(), at);
  if (c.has_compression()) check_compression(c, at);
  if (point_to_point(c.op())) {
    at.require(c.parts().empty(), name_of(c.op()) + " cannot have parts");
    return check_transfers(c, groups, at);
  }
  at.require(c.transfers().empty(), "a collective has no transfers");
  at.require(c.seq() >= 0, "seq is negative");
  const bool root = rooted(c.op()) && c.root() == rank;
  if (c.parts_size() > 0) check_parts(c, groups.size(c.group()), root, at);
  check_counts(c, groups.size(c.group()), root, at);
}

// What the job does with communicators. The worker does not follow it.
void check_events(const pb::Program& program, const pb::Workload& workload, const Groups& groups, const Cursor& where) {
  int last = 0;
  for (int i = 0; i < program.communicators_size(); ++i) {
    const pb::CommunicatorEvent& event = program.communicators(i);
    Cursor at = where;
    at.task = "communicator event " + number(i) + ": ";
    at.require(event.kind() == pb::CommunicatorEvent::MADE || event.kind() == pb::CommunicatorEvent::DESTROYED,
               "neither made nor destroyed");
    at.require(event.group() >= 0 && event.group() < workload.groups_size(),
               "group " + number(event.group()) + " does not exist");
    at.require(groups.position(event.group(), program.rank()) >= 0,
               "rank " + number(program.rank()) + " is not in group " + number(event.group()));
    at.require(event.before() >= last && event.before() <= program.tasks_size(),
               "it is before task " + number(event.before()));
    last = event.before();
  }
}

void check_program(const pb::Program& program, const pb::Workload& workload, const Groups& groups, Cursor at) {
  at.program = "rank " + number(program.rank()) + ": ";
  at.require(program.start_offset_ns() >= 0 && program.start_offset_ns() <= kMaxSpan,
             "start_offset_ns is " + number(program.start_offset_ns()));
  at.require(program.streams_size() <= kMaxStreams, number(program.streams_size()) + " streams, at most " +
                                                        number(kMaxStreams) + " can be replayed");
  std::vector<int64_t> busy(program.streams_size());
  std::set<std::pair<int, int64_t>> seqs;
  for (int id = 0; id < program.tasks_size(); ++id) {
    const pb::Task& task = program.tasks(id);
    at.task = "task " + number(id) + ": ";
    at.require(task.id() == id, "its id is " + number(task.id()) + ", not its index");
    at.require(task.stream() >= 0 && task.stream() < program.streams_size(),
               "stream " + number(task.stream()) + " does not exist");
    for (const int dep : task.deps()) {
      at.require(dep >= 0 && dep < id, "dependency " + number(dep) + " is not an earlier task");
    }
    switch (task.kind_case()) {
      case pb::Task::kSpan: {
        const int64_t duration = task.span().duration_ns();
        at.require(duration >= 0 && duration <= kMaxSpan, "duration_ns is " + number(duration));
        busy[task.stream()] += duration;
        at.require(busy[task.stream()] <= kMaxSpan, "the spans of its stream add up to more than a day");
        break;
      }
      case pb::Task::kCommunication:
        check_communication(task.communication(), program.rank(), workload, groups, at);
        if (!point_to_point(task.communication().op())) {
          const auto key = std::make_pair(task.communication().group(), task.communication().seq());
          at.require(seqs.insert(key).second,
                     "seq " + number(key.second) + " of group " + number(key.first) + " is there twice");
        }
        break;
      case pb::Task::kWait:
        break;
      default:
        at.require(false, "neither span nor communication nor wait");
    }
  }
  check_events(program, workload, groups, at);
}

void check_plan(const pb::Plan& plan, const pb::Plan& baseline, Cursor at) {
  const pb::Workload& workload = plan.workload();
  at.require(workload.world_size() >= 1 && workload.world_size() <= kMaxRanks,
             "world_size is " + number(workload.world_size()));
  check_groups(workload, at);
  at.require(workload.programs_size() == baseline.workload().programs_size(),
             "has another number of programs than plan 0");
  int before = -1;
  for (int i = 0; i < workload.programs_size(); ++i) {
    const int rank = workload.programs(i).rank();
    at.require(rank > before, "programs are not in rank order at rank " + number(rank));
    at.require(rank < workload.world_size(), "program of rank " + number(rank) + " is outside the world");
    at.require(rank == baseline.workload().programs(i).rank(), "its programs are of other ranks than plan 0's");
    before = rank;
  }
  const Groups groups(workload);
  for (const auto& program : workload.programs()) check_program(program, workload, groups, at);
}

}  // namespace

void validate(const pb::Experiment& experiment, int workers) {
  Cursor at;
  at.require(experiment.schema_version() == kSchemaVersion,
             "schema_version is " + number(experiment.schema_version()) + ", this worker reads " +
                 number(kSchemaVersion));
  at.require(experiment.plans_size() > 0, "no plans");
  check_settings(experiment.settings(), at);
  const int programs = experiment.plans(0).workload().programs_size();
  at.require(programs == workers, "it has " + number(programs) + " programs, the control file " + number(workers) +
                                      " workers");
  for (int p = 0; p < experiment.plans_size(); ++p) {
    at.plan = "plan " + number(p) + ": ";
    check_plan(experiment.plans(p), experiment.plans(0), at);
  }
}

}  // namespace mixdown
