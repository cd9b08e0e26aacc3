// The numbers that the data check sends, and how they look in each dtype.
#pragma once

#include <cstdint>

#include "mixdown/backend.h"

namespace mixdown {

/// What happens to the data decides which values are exact in every dtype.
enum class Pattern {
  kMove,     ///< copied: the whole range that is exact
  kAdd,      ///< summed over up to any number of members: small integers
  kCompare,  ///< minimum or maximum
  kMultiply,  ///< product: mostly 1 and -1, few 2s
  kBits       ///< bitwise, of integers: all bits
};

/// The numbers of one contribution: a function of who sends, in which operation,
/// and the position in that sender's input.
class Values {
 public:
  /// `rank` is global, `member` the position in the group, `operation` tells
  /// operations apart.
  Values(Pattern pattern, DType dtype, int rank, int member, uint64_t operation);

  int64_t at(int64_t index) const;

 private:
  Pattern pattern_;
  DType dtype_;
  int member_;
  uint64_t seed_;
};

/// The same for what is compressed: real numbers, exact in the dtype, which is one of
/// floats. The same of all members' inputs, whatever happens to them.
class RealValues {
 public:
  RealValues(DType dtype, int rank, uint64_t operation);

  double at(int64_t index) const;

 private:
  int bits_;  // of the significand
  uint64_t seed_;
};

/// Writes a real number that is exact in the dtype, one of floats.
void store_real(DType dtype, void* buffer, int64_t index, double value);

/// Writes an integer as one element. It must be exact in the dtype; integer types
/// wrap. 64-bit unsigned ones are the same bits as signed ones here and below.
void store(DType dtype, void* buffer, int64_t index, int64_t value);

/// Reads an element, for messages and rounded results: integers beyond 2^53 are not
/// exact.
double load(DType dtype, const void* buffer, int64_t index);

/// `value` as an integer dtype would hold it after wrapping; itself for floats.
int64_t wrap(DType dtype, int64_t value);

/// Whether a < b as the dtype compares.
bool less(DType dtype, int64_t a, int64_t b);

/// Distance between 1 and the next larger number; 0 for integers.
double epsilon(DType dtype);

}  // namespace mixdown
