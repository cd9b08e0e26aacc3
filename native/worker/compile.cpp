#include "worker/compile.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "worker/ops.h"

namespace mixdown {
namespace {

// Where input and output of an operation in place share memory.
void overlap(Operation& o, int position, bool is_root) {
  const int64_t element = size_of(o.dtype);
  const auto before = [&](const std::vector<int64_t>& counts) {
    return std::accumulate(counts.begin(), counts.begin() + position, int64_t{0}) * element;
  };
  const auto input_at = [&](int64_t offset) {
    o.overlap = Overlap::kInputInOutput;
    o.overlap_offset = offset;
  };
  const auto output_at = [&](int64_t offset) {
    o.overlap = Overlap::kOutputInInput;
    o.overlap_offset = offset;
  };
  if (rooted(o.op) && !is_root) return;
  switch (o.op) {
    case pb::OP_ALL_REDUCE:
    case pb::OP_REDUCE:
    case pb::OP_ALL_TO_ALL:
    case pb::OP_ALL_TO_ALLV:
      return input_at(0);
    case pb::OP_ALL_GATHER:
    case pb::OP_GATHER:
      return input_at(position * o.count * element);
    case pb::OP_ALL_GATHERV:
    case pb::OP_GATHERV:
      return input_at(before(o.out_counts));
    case pb::OP_REDUCE_SCATTER:
    case pb::OP_SCATTER:
      return output_at(position * o.count * element);
    case pb::OP_REDUCE_SCATTERV:
    case pb::OP_SCATTERV:
      return output_at(before(o.in_counts));
    default:
      return;  // broadcast is so anyway
  }
}

Operation compile_operation(const pb::Communication& c, int rank, const Groups& groups, const Match& match) {
  Operation o;
  o.op = c.op();
  if (c.op() == pb::OP_BARRIER) return o;
  o.dtype = dtype_of(c.dtype());
  if (reduces(c.op())) o.reduction = {reduce_op_of(c.reduce_op()), c.factor()};
  if (rooted(c.op())) o.root = groups.position(c.group(), c.root());
  const bool is_root = rooted(c.op()) && c.root() == rank;
  const int64_t element = size_of(o.dtype);
  int64_t in = c.in_count();
  int64_t out = c.out_count();
  const auto counts = [&](auto count_of) {
    std::vector<int64_t> list;
    for (const auto* view : match.members(c)) list.push_back(count_of(*view));
    return list;
  };
  switch (c.op()) {
    case pb::OP_ALL_REDUCE:
    case pb::OP_ALL_GATHER:
      o.count = in;
      break;
    case pb::OP_REDUCE:
    case pb::OP_GATHER:
      o.count = in;
      if (!is_root) out = 0;
      break;
    case pb::OP_BROADCAST:
      o.count = is_root ? in : out;
      (is_root ? out : in) = 0;
      break;
    case pb::OP_SCATTER:
      o.count = out;
      if (!is_root) in = 0;
      break;
    case pb::OP_REDUCE_SCATTER:
      o.count = out;
      break;
    case pb::OP_ALL_TO_ALL:
      o.count = in / groups.size(c.group());
      break;
    case pb::OP_ALL_TO_ALLV:
      o.in_counts.assign(c.in_splits().begin(), c.in_splits().end());
      o.out_counts.assign(c.out_splits().begin(), c.out_splits().end());
      break;
    case pb::OP_ALL_GATHERV:
    case pb::OP_GATHERV:
      o.out_counts = counts([](const pb::Communication& view) { return view.in_count(); });
      if (rooted(c.op()) && !is_root) out = 0;
      break;
    case pb::OP_REDUCE_SCATTERV:
    case pb::OP_SCATTERV:
      o.in_counts = counts([](const pb::Communication& view) { return view.out_count(); });
      if (rooted(c.op()) && !is_root) in = 0;
      break;
    default:
      in = out = 0;
      for (const auto& t : c.transfers()) {
        o.transfers.push_back({t.send(), groups.position(c.group(), t.peer()), nullptr, t.count(), t.match()});
        (t.send() ? in : out) += t.count();
      }
  }
  o.in_bytes = in * element;
  o.out_bytes = out * element;
  const int position = groups.position(c.group(), rank);
  if (c.in_place()) overlap(o, position, is_root);
  if (c.has_compression() && (c.parts().empty() || element_wise(c.op()))) {
    o.compressed = std::make_shared<Compressed>(c.compression(), o, position, groups.size(c.group()));
  }
  if (element_wise(c.op())) return o;  // parts lie one after the other: one call is as good
  int64_t in_offset = 0;
  int64_t out_offset = 0;
  for (int i = 0; i < c.parts_size(); ++i) {
    Operation part = compile_operation(part_of(c, i), rank, groups, match);
    part.in_offset = in_offset;
    part.out_offset = out_offset;
    in_offset += part.in_bytes;
    out_offset += part.out_bytes;
    o.parts.push_back(std::move(part));
  }
  return o;
}

// The codec's place in the program, which is added where it is new.
int codec_of(Program& program, const pb::Communication& c) {
  if (!c.has_compression() || c.op() == pb::OP_BARRIER) return -1;
  const auto same = [&](const pb::Compression& known) {
    return known.codec() == c.compression().codec() && known.rate() == c.compression().rate();
  };
  const auto found = std::find_if(program.codecs.begin(), program.codecs.end(), same);
  if (found == program.codecs.end()) {
    program.codecs.push_back(c.compression());
    return static_cast<int>(program.codecs.size()) - 1;
  }
  return static_cast<int>(found - program.codecs.begin());
}

// The collectives of each communicator, in the order of their seq.
using Turns = std::map<int, std::vector<std::pair<int64_t, int>>>;  // communicator -> (seq, step)

// Streams, dependencies and turns together must leave an order in which
// everything can run.
void check_order(const Program& program, const Turns& turns, const std::string& where) {
  const size_t n = program.steps.size();
  std::vector<std::vector<int>> next(n);
  std::vector<int> waits(n);
  const auto edge = [&](int before, int after) {
    next[before].push_back(after);
    ++waits[after];
  };
  for (const auto& steps : program.streams) {
    for (size_t i = 1; i < steps.size(); ++i) edge(steps[i - 1], steps[i]);
  }
  for (size_t t = 0; t < n; ++t) {
    for (const int dep : program.steps[t].deps) edge(dep, static_cast<int>(t));
  }
  for (const auto& [communicator, queue] : turns) {
    for (size_t i = 1; i < queue.size(); ++i) edge(queue[i - 1].second, queue[i].second);
  }
  std::vector<int> ready;
  for (size_t t = 0; t < n; ++t) {
    if (waits[t] == 0) ready.push_back(static_cast<int>(t));
  }
  size_t ran = 0;
  while (!ready.empty()) {
    const int t = ready.back();
    ready.pop_back();
    ++ran;
    for (const int after : next[t]) {
      if (--waits[after] == 0) ready.push_back(after);
    }
  }
  if (ran == n) return;
  const auto stuck = std::find_if(waits.begin(), waits.end(), [](int w) { return w > 0; }) - waits.begin();
  throw std::runtime_error("invalid experiment: " + where + "task " + std::to_string(stuck) +
                           " can never run: the order of the group's collectives (seq) contradicts the order of the "
                           "tasks");
}

}  // namespace

CommunicatorKey CommunicatorTable::key(const pb::Workload& workload, const pb::Communication& c) {
  const auto& ranks = workload.groups(c.group()).ranks();
  return {c.backend(), c.group(), {ranks.begin(), ranks.end()}};
}

CommunicatorTable::CommunicatorTable(const pb::Experiment& experiment) {
  for (const auto& plan : experiment.plans()) {
    for (const auto& program : plan.workload().programs()) {
      for (const auto& task : program.tasks()) {
        if (task.has_communication()) indexes_.emplace(key(plan.workload(), task.communication()), 0);
      }
    }
  }
  // The order of the map depends on its content alone, so it is that of all
  // workers.
  for (auto& [key, index] : indexes_) {
    index = static_cast<int>(keys_.size());
    keys_.push_back(key);
  }
}

Program compile(const pb::Plan& plan, int plan_index, int worker, const Groups& groups, const Match& match,
                const CommunicatorTable& communicators, bool with_expectations) {
  const pb::Program& source = plan.workload().programs(worker);
  Program program;
  program.start_offset = source.start_offset_ns();
  program.streams.resize(source.streams_size());
  program.steps.resize(source.tasks_size());
  Turns turns;
  std::map<std::pair<int, std::string>, int> known;  // group, backend -> communicator
  for (const auto& task : source.tasks()) {
    Step& step = program.steps[task.id()];
    step.stream = task.stream();
    program.streams[task.stream()].push_back(task.id());
    for (const int dep : task.deps()) {
      if (program.steps[dep].stream == task.stream()) continue;  // the stream's own order
      step.deps.push_back(dep);
      program.steps[dep].awaited = true;
    }
    if (task.has_span()) {
      step.kind = Step::Kind::kSpan;
      step.duration = task.span().duration_ns();
      step.device = task.span().kind() == pb::Span::DEVICE;
    } else if (task.has_communication()) {
      const pb::Communication& c = task.communication();
      step.kind = Step::Kind::kCommunication;
      step.operation = static_cast<int>(program.operations.size());
      Operation o = compile_operation(c, source.rank(), groups, match);
      const auto [entry, fresh] = known.try_emplace({c.group(), c.backend()}, 0);
      if (fresh) entry->second = communicators.index(CommunicatorTable::key(plan.workload(), c));
      o.communicator = entry->second;
      o.codec = codec_of(program, c);
      program.operations.push_back(std::move(o));
      if (!point_to_point(c.op())) turns[program.operations.back().communicator].push_back({c.seq(), task.id()});
      if (with_expectations) program.expectations.push_back(expect(c, source.rank(), groups, match));
    }
  }
  for (auto& [communicator, queue] : turns) {
    std::sort(queue.begin(), queue.end());
    for (size_t i = 0; i < queue.size(); ++i) {
      Operation& o = program.operations[program.steps[queue[i].second].operation];
      o.turn = static_cast<int64_t>(i);
      // All members take the same turns. What is compressed has other sizes each time.
      if (o.codec < 0) o.identity = int64_t{plan_index} << 32 | o.turn;
    }
  }
  check_order(program, turns,
              "plan " + std::to_string(plan_index) + ": rank " + std::to_string(source.rank()) + ": ");
  return program;
}

void measure(const pb::Program& program, const Groups& groups, const Match& match, BufferSizes& sizes) {
  for (int s = 0; s < program.streams_size(); ++s) sizes.need(static_cast<size_t>(s), 0, 0, 0);
  for (const auto& task : program.tasks()) {
    if (!task.has_communication()) continue;
    const Operation o = compile_operation(task.communication(), program.rank(), groups, match);
    int64_t work = 0;  // that parts share: they run one after the other
    each_compressed(o, [&](const Compressed& payload) { work = std::max(work, payload.work()); });
    sizes.need(static_cast<size_t>(task.stream()), o.input_buffer(), o.output_buffer(), work);
  }
}

}  // namespace mixdown
