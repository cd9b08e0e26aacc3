#include "worker/check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "worker/buffers.h"
#include "worker/ops.h"

namespace mixdown {
namespace {

constexpr int kMark = 0xa5;
constexpr size_t kMaxErrors = 8;          // of a rank and plan
constexpr size_t kMaxErrorsOfOne = 2;     // of one operation
constexpr int64_t kChunk = 4096;          // elements expected at a time

// What an element of a reduction must be. Averages and scaled sums of floats are
// rounded on the way.
struct Expected {
  int64_t exact = 0;
  double about = 0;
  double tolerance = 0;
};

class Reduced {
 public:
  Reduced(const Operation& o, const Expectation& e) : o_(o), offset_(e.reduced_offset) {
    for (size_t m = 0; m < e.members.size(); ++m) {
      values_.emplace_back(e.pattern, o.dtype, e.members[m], static_cast<int>(m), e.operation);
    }
  }

  // Whether results are integers that the dtype holds exactly.
  bool exact() const {
    return epsilon(o_.dtype) == 0 || (o_.reduction.op != ReduceOp::kAvg && o_.reduction.op != ReduceOp::kPremulSum);
  }

  Expected at(int64_t index) const {
    int64_t result = values_[0].at(offset_ + index);
    double magnitude = std::fabs(static_cast<double>(result));
    for (size_t m = 1; m < values_.size(); ++m) {
      const int64_t value = values_[m].at(offset_ + index);
      magnitude += std::fabs(static_cast<double>(value));
      switch (o_.reduction.op) {
        case ReduceOp::kMin:
          result = less(o_.dtype, value, result) ? value : result;
          break;
        case ReduceOp::kMax:
          result = less(o_.dtype, result, value) ? value : result;
          break;
        case ReduceOp::kProd:
          result *= value;
          break;
        case ReduceOp::kBitAnd:
          result &= value;
          break;
        case ReduceOp::kBitOr:
          result |= value;
          break;
        case ReduceOp::kBitXor:
          result ^= value;
          break;
        default:
          result += value;
      }
    }
    const auto size = static_cast<int64_t>(values_.size());
    const bool average = o_.reduction.op == ReduceOp::kAvg;
    if (o_.reduction.op == ReduceOp::kPremulSum || (average && o_.premultiplies && epsilon(o_.dtype) > 0)) {
      // Every product and every partial sum may be rounded, and the factor itself.
      const double factor = average ? 1.0 / static_cast<double>(size) : o_.reduction.factor;
      const double about = static_cast<double>(result) * factor;
      const double sum = magnitude * std::fabs(factor);
      return {0, about, static_cast<double>(size + 1) * sum * epsilon(o_.dtype)};
    }
    if (o_.reduction.op != ReduceOp::kAvg) return {result, 0, 0};
    if (epsilon(o_.dtype) == 0) return {wrap(o_.dtype, result) / size, 0, 0};
    const double about = static_cast<double>(result) / static_cast<double>(size);
    return {0, about, std::fabs(about) * epsilon(o_.dtype)};
  }

 private:
  const Operation& o_;
  int64_t offset_;
  std::vector<Values> values_;
};

std::string describe(const Operation& o, int task) {
  std::string text = "task " + std::to_string(task) + ", " + name_of(o.op) + " of " +
                     name_of(static_cast<pb::DType>(o.dtype));
  if (reduces(o.op)) text += " " + name_of(static_cast<pb::ReduceOp>(o.reduction.op));
  return text;
}

std::string text_of(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

// Collects the errors of one operation.
class Findings {
 public:
  Findings(const Operation& o, int task) : o_(o), task_(task) {}

  void wrong(int64_t index, double got, double expected) {
    if (texts.size() < kMaxErrorsOfOne) {
      texts.push_back(describe(o_, task_) + ": element " + std::to_string(index) + " is " + text_of(got) +
                      ", expected " + text_of(expected));
    }
  }

  void overrun(const char* side) {
    texts.push_back(describe(o_, task_) + ": bytes " + side + " its output were written");
  }

  void inaccurate(const Accuracy& a, double bound) {
    texts.push_back(describe(o_, task_) + ": compressed, it is " + text_of(a.relative()) +
                    " of its magnitude off in the square mean, the worst element " +
                    text_of(a.worst) + " of its own and " + text_of(a.max_abs) + " in itself; the codec explains " +
                    text_of(bound) +
                    (a.finite ? "" : "; some elements are no finite numbers"));
  }

  void input_written() { texts.push_back(describe(o_, task_) + ": its input was written"); }

  std::vector<std::string> texts;

 private:
  const Operation& o_;
  int task_;
};

// Compares `length` elements from `start` with what at(i) gives. Exact ones are
// compared as bytes, a chunk at a time.
template <typename F>
void compare(const Operation& o, const char* out, int64_t start, int64_t length, F at, Findings& findings) {
  const int64_t element = size_of(o.dtype);
  std::vector<char> chunk(kChunk * element);
  for (int64_t done = 0; done < length; done += kChunk) {
    const int64_t n = std::min(kChunk, length - done);
    for (int64_t i = 0; i < n; ++i) store(o.dtype, chunk.data(), i, at(done + i));
    const char* got = out + (start + done) * element;
    if (std::memcmp(got, chunk.data(), n * element) == 0) continue;
    for (int64_t i = 0; i < n; ++i) {
      if (std::memcmp(got + i * element, chunk.data() + i * element, element) == 0) continue;
      const double value = load(o.dtype, got, i);
      const double expected = load(o.dtype, chunk.data(), i);
      // -0 is as good as 0: a product may give it.
      if (value != expected || epsilon(o.dtype) == 0) findings.wrong(start + done + i, value, expected);
    }
  }
}

void compare_reduced(const Operation& o, const Expectation& e, const char* out, Findings& findings) {
  const Reduced reduced(o, e);
  if (reduced.exact()) {
    return compare(o, out, 0, e.reduced_length, [&](int64_t i) { return reduced.at(i).exact; }, findings);
  }
  for (int64_t i = 0; i < e.reduced_length; ++i) {
    const Expected expected = reduced.at(i);
    const double value = load(o.dtype, out, i);
    if (!(std::fabs(value - expected.about) <= expected.tolerance)) findings.wrong(i, value, expected.about);
  }
}

// Calls f(operation, expectation, in, out) for every call of the operation, with
// the buffers of that call.
template <typename F>
void each_call(const Operation& o, const Expectation& e, char* in, char* out, F f) {
  if (o.parts.empty()) return f(o, e, in, out);
  for (size_t i = 0; i < o.parts.size(); ++i) {
    f(o.parts[i], e.parts[i], in + o.parts[i].in_offset, out + o.parts[i].out_offset);
  }
}

void fill(const Operation& o, const Expectation& e, char* in) {
  if (o.compressed != nullptr) return fill_real(o, e, in);
  int64_t index = 0;
  for (const Segment& segment : e.input) {
    const Values values(e.pattern, o.dtype, segment.rank, e.member, segment.operation);
    for (int64_t i = 0; i < segment.length; ++i) store(o.dtype, in, index++, values.at(segment.offset + i));
  }
}

// Compares the output of one call; returns the number of elements.
int64_t compare_output(const Operation& o, const Expectation& e, const char* out, Findings& findings) {
  int64_t index = 0;
  for (const Segment& segment : e.moved) {
    const Values values(e.pattern, o.dtype, segment.rank, 0, segment.operation);
    compare(o, out, index, segment.length, [&](int64_t i) { return values.at(segment.offset + i); }, findings);
    index += segment.length;
  }
  if (!e.members.empty()) {
    compare_reduced(o, e, out, findings);
    index += e.reduced_length;
  }
  return index;
}

// Whether the input is still what `fill` made of it.
bool unchanged(const Operation& o, const Expectation& e, const char* in) {
  if (o.compressed != nullptr) return unchanged_real(o, e, in);
  const int64_t element = size_of(o.dtype);
  std::vector<char> chunk(kChunk * element);
  for (const Segment& segment : e.input) {
    const Values values(e.pattern, o.dtype, segment.rank, e.member, segment.operation);
    for (int64_t done = 0; done < segment.length; done += kChunk) {
      const int64_t n = std::min(kChunk, segment.length - done);
      for (int64_t i = 0; i < n; ++i) store(o.dtype, chunk.data(), i, values.at(segment.offset + done + i));
      if (std::memcmp(in, chunk.data(), n * element) != 0) return false;
      in += n * element;
    }
  }
  return true;
}

// The memory that the operation may write and its neighbours must not.
struct Writable {
  char* begin;
  char* end;
};
Writable writable(const Operation& o, char* in, char* out) {
  if (o.overlap == Overlap::kOutputInInput) return {in, in + o.in_bytes};
  return {out, out + o.out_bytes};
}

bool marked(const char* bytes) {
  return std::all_of(bytes, bytes + kGuard, [](char c) { return static_cast<unsigned char>(c) == kMark; });
}

}  // namespace

void Check::prepare(const Operation& o, const Expectation& e, char* in, char* out) {
  const Writable memory = writable(o, in, out);
  std::memset(memory.begin - kGuard, kMark, memory.end - memory.begin + 2 * kGuard);
  each_call(o, e, in, out, [](const Operation& call, const Expectation& expectation, char* input, char* output) {
    fill(call, expectation, pointers_of(call, input, output).in);
  });
}

void Check::inspect(int task, const Operation& o, const Expectation& e, char* in, char* out) {
  Findings findings(o, task);
  int64_t elements = 0;
  Accuracy accuracy;
  each_call(o, e, in, out, [&](const Operation& call, const Expectation& expectation, char* input, char* output) {
    const Pointers data = pointers_of(call, input, output);
    if (call.compressed != nullptr) {
      const Accuracy a = measure_accuracy(call, expectation, data.out);
      if (!a.within(*call.compressed)) findings.inaccurate(a, call.compressed->bound());
      elements += a.elements;
      accuracy.add(a);
    } else {
      elements += compare_output(call, expectation, data.out, findings);
    }
    if (call.overlap == Overlap::kNone && !unchanged(call, expectation, data.in)) findings.input_written();
  });
  const Writable memory = writable(o, in, out);
  if (!marked(memory.begin - kGuard)) findings.overrun("before");
  if (!marked(memory.end)) findings.overrun("after");

  std::lock_guard lock(mutex_);
  ++operations_;
  elements_ += elements;
  if (o.codec >= 0) {
    if (accuracies_.size() <= static_cast<size_t>(o.codec)) accuracies_.resize(static_cast<size_t>(o.codec) + 1);
    accuracies_[static_cast<size_t>(o.codec)].add(accuracy);
  }
  for (auto& text : findings.texts) {
    if (errors_.size() < kMaxErrors) errors_.push_back(std::move(text));
  }
}

}  // namespace mixdown
