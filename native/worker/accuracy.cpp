#include "worker/accuracy.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace mixdown {
namespace {

// An element's exact result, and the magnitudes that it is made of.
struct Exact {
  double value;
  double magnitude;
};

class Reduced {
 public:
  Reduced(const Operation& o, const Expectation& e) : reduction_(o.reduction), offset_(e.reduced_offset) {
    for (const int rank : e.members) values_.emplace_back(o.dtype, rank, e.operation);
  }

  Exact at(int64_t index) const {
    double value = values_[0].at(offset_ + index);
    double magnitude = std::fabs(value);
    for (size_t m = 1; m < values_.size(); ++m) {
      const double other = values_[m].at(offset_ + index);
      switch (reduction_.op) {
        case ReduceOp::kMin:
          value = std::min(value, other);
          magnitude = std::max(magnitude, std::fabs(other));
          break;
        case ReduceOp::kMax:
          value = std::max(value, other);
          magnitude = std::max(magnitude, std::fabs(other));
          break;
        case ReduceOp::kProd:
          value *= other;
          magnitude *= std::fabs(other);
          break;
        default:
          value += other;
          magnitude += std::fabs(other);
      }
    }
    double factor = 1;
    if (reduction_.op == ReduceOp::kAvg) factor = 1 / static_cast<double>(values_.size());
    if (reduction_.op == ReduceOp::kPremulSum) factor = reduction_.factor;
    return {value * factor, magnitude * std::fabs(factor)};
  }

 private:
  Reduction reduction_;
  int64_t offset_;
  std::vector<RealValues> values_;
};

void add(Accuracy& a, double got, const Exact& exact) {
  const double error = std::fabs(got - exact.value);
  ++a.elements;
  a.finite = a.finite && std::isfinite(got);
  a.max_abs = std::max(a.max_abs, error);
  a.squared_error += error * error;
  a.squared_exact += exact.value * exact.value;
  a.squared_magnitude += exact.magnitude * exact.magnitude;
  a.largest = std::max(a.largest, exact.magnitude);
  if (exact.magnitude > 0) a.worst = std::max(a.worst, error / exact.magnitude);
}

}  // namespace

void Accuracy::add(const Accuracy& other) {
  elements += other.elements;
  max_abs = std::max(max_abs, other.max_abs);
  squared_error += other.squared_error;
  squared_exact += other.squared_exact;
  squared_magnitude += other.squared_magnitude;
  largest = std::max(largest, other.largest);
  worst = std::max(worst, other.worst);
  finite = finite && other.finite;
}

double Accuracy::relative() const {
  return squared_magnitude > 0 ? std::sqrt(squared_error / squared_magnitude) : squared_error;
}

bool Accuracy::within(const Compressed& compressed) const {
  const double bound = compressed.bound();
  return finite && relative() <= bound && (compressed.near() ? max_abs <= bound * largest : worst <= bound);
}

void fill_real(const Operation& o, const Expectation& e, char* in) {
  int64_t index = 0;
  for (const Segment& segment : e.input) {
    const RealValues values(o.dtype, segment.rank, segment.operation);
    for (int64_t i = 0; i < segment.length; ++i) store_real(o.dtype, in, index++, values.at(segment.offset + i));
  }
}

bool unchanged_real(const Operation& o, const Expectation& e, const char* in) {
  const int64_t element = size_of(o.dtype);
  char expected[8];
  int64_t index = 0;
  for (const Segment& segment : e.input) {
    const RealValues values(o.dtype, segment.rank, segment.operation);
    for (int64_t i = 0; i < segment.length; ++i, ++index) {
      store_real(o.dtype, expected, 0, values.at(segment.offset + i));
      if (std::memcmp(in + index * element, expected, static_cast<size_t>(element)) != 0) return false;
    }
  }
  return true;
}

Accuracy measure_accuracy(const Operation& o, const Expectation& e, const char* out) {
  Accuracy a;
  int64_t index = 0;
  for (const Segment& segment : e.moved) {
    const RealValues values(o.dtype, segment.rank, segment.operation);
    for (int64_t i = 0; i < segment.length; ++i) {
      const double exact = values.at(segment.offset + i);
      add(a, load(o.dtype, out, index++), {exact, std::fabs(exact)});
    }
  }
  if (e.members.empty()) return a;
  const Reduced reduced(o, e);
  for (int64_t i = 0; i < e.reduced_length; ++i) add(a, load(o.dtype, out, i), reduced.at(i));
  return a;
}

}  // namespace mixdown
