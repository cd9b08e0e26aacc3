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

// What an element of a reduction must be. Averages of floats are not exact and
// may be off by a rounding.
struct Expected {
  int64_t exact = 0;
  double average = 0;
  bool is_average = false;
};

class Reduction {
 public:
  Reduction(const Operation& o, const Expectation& e) : o_(o), offset_(e.reduced_offset) {
    for (size_t m = 0; m < e.members.size(); ++m) {
      values_.emplace_back(e.pattern, o.dtype, e.members[m], static_cast<int>(m), e.operation);
    }
  }

  Expected at(int64_t index) const {
    int64_t result = values_[0].at(offset_ + index);
    for (size_t m = 1; m < values_.size(); ++m) {
      const int64_t value = values_[m].at(offset_ + index);
      switch (o_.reduce_op) {
        case ReduceOp::kMin:
          result = std::min(result, value);
          break;
        case ReduceOp::kMax:
          result = std::max(result, value);
          break;
        case ReduceOp::kProd:
          result *= value;
          break;
        default:
          result += value;
      }
    }
    if (o_.reduce_op != ReduceOp::kAvg) return {result, 0, false};
    const auto size = static_cast<int64_t>(values_.size());
    if (epsilon(o_.dtype) == 0) return {wrap(o_.dtype, result) / size, 0, false};
    return {0, static_cast<double>(result) / static_cast<double>(size), true};
  }

 private:
  const Operation& o_;
  int64_t offset_;
  std::vector<Values> values_;
};

std::string describe(const Operation& o, int task) {
  std::string text = "task " + std::to_string(task) + ", " + name_of(o.op) + " of " +
                     name_of(static_cast<pb::DType>(o.dtype));
  if (reduces(o.op)) text += " " + name_of(static_cast<pb::ReduceOp>(o.reduce_op));
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
      // -0 is as good as 0: a product may give it.
      const double value = load(o.dtype, got, i);
      const double expected = load(o.dtype, chunk.data(), i);
      if (value != expected) findings.wrong(start + done + i, value, expected);
    }
  }
}

void compare_reduced(const Operation& o, const Expectation& e, const char* out, Findings& findings) {
  const Reduction reduction(o, e);
  if (o.reduce_op != ReduceOp::kAvg || epsilon(o.dtype) == 0) {
    return compare(o, out, 0, e.reduced_length, [&](int64_t i) { return reduction.at(i).exact; }, findings);
  }
  for (int64_t i = 0; i < e.reduced_length; ++i) {
    const double expected = reduction.at(i).average;
    const double value = load(o.dtype, out, i);
    if (!(std::fabs(value - expected) <= std::fabs(expected) * epsilon(o.dtype))) findings.wrong(i, value, expected);
  }
}

bool marked(const char* bytes) {
  return std::all_of(bytes, bytes + kGuard, [](char c) { return static_cast<unsigned char>(c) == kMark; });
}

}  // namespace

void Check::prepare(const Operation& o, const Expectation& e, char* in, char* out) {
  int64_t index = 0;
  for (const Segment& segment : e.input) {
    const Values values(e.pattern, o.dtype, segment.rank, e.member, segment.operation);
    for (int64_t i = 0; i < segment.length; ++i) store(o.dtype, in, index++, values.at(segment.offset + i));
  }
  std::memset(out - kGuard, kMark, o.out_bytes + 2 * kGuard);
}

void Check::inspect(int task, const Operation& o, const Expectation& e, const char* out) {
  Findings findings(o, task);
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
  if (!marked(out - kGuard)) findings.overrun("before");
  if (!marked(out + o.out_bytes)) findings.overrun("after");

  std::lock_guard lock(mutex_);
  ++operations_;
  elements_ += index;
  for (auto& text : findings.texts) {
    if (errors_.size() < kMaxErrors) errors_.push_back(std::move(text));
  }
}

}  // namespace mixdown
