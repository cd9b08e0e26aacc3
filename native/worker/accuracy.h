// The data check of compressed operations: how far results are from the exact ones.
#pragma once

#include <cstdint>

#include "worker/operation.h"
#include "worker/oracle.h"

namespace mixdown {

/// Differences from the results without compression, which are computed here in
/// double from what all members sent.
struct Accuracy {
  int64_t elements = 0;
  double max_abs = 0;
  double squared_error = 0;      ///< sums over the elements
  double squared_exact = 0;
  double squared_magnitude = 0;  ///< of the sums of the magnitudes that went into each
  double largest = 0;            ///< of those sums
  double worst = 0;              ///< error of an element as a share of its sum
  bool finite = true;            ///< no result is infinite or no number

  void add(const Accuracy& other);

  /// The square mean of errors, as a share of that of the magnitudes; 0 of nothing.
  double relative() const;

  /// Whether the codec can have done this: see Compressed::bound.
  bool within(const Compressed& compressed) const;
};

/// Fills the input of one call with real numbers: of all magnitudes from 2^-4 to 1,
/// of both signs, with as many digits as the type has. Nothing about them is smooth:
/// codecs that look for patterns find none.
void fill_real(const Operation& operation, const Expectation& expectation, char* in);

/// Whether the input is still that.
bool unchanged_real(const Operation& operation, const Expectation& expectation, const char* in);

/// Measures the output of one call.
Accuracy measure_accuracy(const Operation& operation, const Expectation& expectation, const char* out);

}  // namespace mixdown
