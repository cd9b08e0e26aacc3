#include "worker/values.h"

#include <array>
#include <cmath>
#include <cstring>

namespace mixdown {
namespace {

uint64_t mix(uint64_t x) {
  x ^= x >> 31;
  x *= 0x9e3779b97f4a7c15u;
  x ^= x >> 29;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

bool has_sign(DType dtype) {
  return dtype != DType::kUInt8 && dtype != DType::kUInt16 && dtype != DType::kUInt32 && dtype != DType::kUInt64;
}

// Bits of the integers that are exact in a float; their range is centred on 0.
int exact_bits(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 11;
    case DType::kBFloat16:
      return 8;
    case DType::kFloat32:
      return 24;
    default:
      return 32;
  }
}

// The 16-bit floats are made and read here from their definition, not by the
// conversions that backends share: a fault there must show.
struct Format {
  int fraction_bits;
  int bias;
};
constexpr Format kHalf{10, 15};
constexpr Format kBFloat{7, 127};

uint16_t encode(const Format& format, double value) {
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  const auto significand = static_cast<uint32_t>(std::ldexp(fraction, format.fraction_bits + 1));
  const uint32_t biased = static_cast<uint32_t>(exponent - 1 + format.bias);
  const uint32_t bits = (biased << format.fraction_bits) | (significand & ((1u << format.fraction_bits) - 1));
  return static_cast<uint16_t>(bits | (value < 0 ? 0x8000u : 0u));
}

double decode(const Format& format, uint16_t bits) {
  const int exponent = (bits & 0x7fff) >> format.fraction_bits;
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 2 * format.bias + 1) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - format.bias - format.fraction_bits);
  return sign * std::ldexp((1 << format.fraction_bits) + fraction, exponent - format.bias - format.fraction_bits);
}

// All integers that the patterns and their reductions reach in a 16-bit float.
constexpr int64_t kTableEnd = 2048;

std::array<uint16_t, 2 * kTableEnd + 1> table(const Format& format) {
  std::array<uint16_t, 2 * kTableEnd + 1> encoded;
  for (int64_t v = -kTableEnd; v <= kTableEnd; ++v) encoded[v + kTableEnd] = encode(format, static_cast<double>(v));
  return encoded;
}

uint16_t look_up(DType dtype, int64_t value) {
  static const auto half = table(kHalf);
  static const auto bfloat = table(kBFloat);
  return (dtype == DType::kFloat16 ? half : bfloat)[value + kTableEnd];
}

template <typename T>
void put(void* buffer, int64_t index, T value) {
  std::memcpy(static_cast<char*>(buffer) + index * sizeof(T), &value, sizeof(T));
}

template <typename T>
T get(const void* buffer, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(buffer) + index * sizeof(T), sizeof(T));
  return value;
}

// From this member on contributions are neutral, so that sums stay exact in
// bfloat16 (256) and products in int8 however large the group is.
constexpr int kSummed = 80;
constexpr int kDoubled = 6;

}  // namespace

Values::Values(Pattern pattern, DType dtype, int rank, int member, uint64_t operation)
    : pattern_(pattern), dtype_(dtype), member_(member), seed_(mix(operation ^ mix(static_cast<uint64_t>(rank) + 1))) {}

int64_t Values::at(int64_t index) const {
  const uint64_t random = mix(seed_ + static_cast<uint64_t>(index));
  const bool sign = has_sign(dtype_);
  const bool integer = epsilon(dtype_) == 0;
  switch (pattern_) {
    case Pattern::kMove: {
      if (integer) return wrap(dtype_, static_cast<int64_t>(random));
      const int bits = exact_bits(dtype_);
      return static_cast<int64_t>(random & ((uint64_t{1} << bits) - 1)) - (int64_t{1} << (bits - 1));
    }
    case Pattern::kAdd:
      if (member_ >= kSummed) return 0;
      return sign ? static_cast<int64_t>(random % 7) - 3 : static_cast<int64_t>(random % 4);
    case Pattern::kCompare:
      if (integer) return wrap(dtype_, static_cast<int64_t>(random));
      return static_cast<int64_t>(random % 201) - 100;
    case Pattern::kMultiply: {
      const int64_t magnitude = member_ < kDoubled && random % 2 != 0 ? 2 : 1;
      return sign && (random & 256) != 0 ? -magnitude : magnitude;
    }
    case Pattern::kBits:
      return wrap(dtype_, static_cast<int64_t>(random));
  }
  return 0;
}

RealValues::RealValues(DType dtype, int rank, uint64_t operation)
    : bits_(dtype == DType::kFloat64 ? 53 : exact_bits(dtype)), seed_(mix(operation ^ mix(static_cast<uint64_t>(rank) + 1))) {}

double RealValues::at(int64_t index) const {
  const uint64_t random = mix(seed_ + static_cast<uint64_t>(index));
  const uint64_t leading = uint64_t{1} << (bits_ - 1);
  const auto significand = static_cast<double>(leading | (random & (leading - 1)));
  const double value = std::ldexp(significand, -bits_ - static_cast<int>(random >> 60 & 3));
  return (random >> 62 & 1) != 0 ? -value : value;
}

void store_real(DType dtype, void* buffer, int64_t index, double value) {
  switch (dtype) {
    case DType::kFloat32:
      return put(buffer, index, static_cast<float>(value));
    case DType::kFloat16:
      return put(buffer, index, encode(kHalf, value));
    case DType::kBFloat16:
      return put(buffer, index, encode(kBFloat, value));
    default:
      return put(buffer, index, value);
  }
}

void store(DType dtype, void* buffer, int64_t index, int64_t value) {
  switch (dtype) {
    case DType::kFloat32:
      return put(buffer, index, static_cast<float>(value));
    case DType::kFloat64:
      return put(buffer, index, static_cast<double>(value));
    case DType::kFloat16:
    case DType::kBFloat16:
      return put(buffer, index, look_up(dtype, value));
    case DType::kInt8:
    case DType::kUInt8:
      return put(buffer, index, static_cast<uint8_t>(value));
    case DType::kInt16:
    case DType::kUInt16:
      return put(buffer, index, static_cast<uint16_t>(value));
    case DType::kInt32:
    case DType::kUInt32:
      return put(buffer, index, static_cast<uint32_t>(value));
    case DType::kInt64:
    case DType::kUInt64:
      return put(buffer, index, value);
  }
}

double load(DType dtype, const void* buffer, int64_t index) {
  switch (dtype) {
    case DType::kFloat32:
      return get<float>(buffer, index);
    case DType::kFloat64:
      return get<double>(buffer, index);
    case DType::kFloat16:
      return decode(kHalf, get<uint16_t>(buffer, index));
    case DType::kBFloat16:
      return decode(kBFloat, get<uint16_t>(buffer, index));
    case DType::kInt8:
      return get<int8_t>(buffer, index);
    case DType::kUInt8:
      return get<uint8_t>(buffer, index);
    case DType::kInt16:
      return get<int16_t>(buffer, index);
    case DType::kUInt16:
      return get<uint16_t>(buffer, index);
    case DType::kInt32:
      return get<int32_t>(buffer, index);
    case DType::kUInt32:
      return get<uint32_t>(buffer, index);
    case DType::kInt64:
      return static_cast<double>(get<int64_t>(buffer, index));
    case DType::kUInt64:
      return static_cast<double>(get<uint64_t>(buffer, index));
  }
  return 0;
}

int64_t wrap(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::kInt8:
      return static_cast<int8_t>(value);
    case DType::kUInt8:
      return static_cast<uint8_t>(value);
    case DType::kInt16:
      return static_cast<int16_t>(value);
    case DType::kUInt16:
      return static_cast<uint16_t>(value);
    case DType::kInt32:
      return static_cast<int32_t>(value);
    case DType::kUInt32:
      return static_cast<uint32_t>(value);
    default:
      return value;
  }
}

bool less(DType dtype, int64_t a, int64_t b) {
  if (dtype == DType::kUInt64) return static_cast<uint64_t>(a) < static_cast<uint64_t>(b);
  return a < b;
}

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 0x1p-23;
    case DType::kFloat64:
      return 0x1p-52;
    case DType::kFloat16:
      return 0x1p-10;
    case DType::kBFloat16:
      return 0x1p-7;
    default:
      return 0;
  }
}

}  // namespace mixdown
