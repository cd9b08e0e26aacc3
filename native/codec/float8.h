// The 8-bit floats of the OCP "OFP8" specification, revision 1.0: E4M3 (without
// infinities) and E5M2.
#pragma once

#include <bit>
#include <cstdint>

namespace mixdown {

/// How one of them is laid out.
template <int kFraction, int kBiasOf, uint8_t kLargestCode>
struct Float8Format {
  static constexpr int kFractionBits = kFraction;
  static constexpr int kBias = kBiasOf;
  static constexpr uint8_t kLargest = kLargestCode;  ///< of the finite ones
};
using E4M3 = Float8Format<3, 7, 0x7e>;
using E5M2 = Float8Format<2, 15, 0x7b>;

/// The number that a code stands for; codes above the largest are not numbers.
template <typename Format>
constexpr float float_of_float8(uint8_t code) {
  constexpr int fraction_bits = Format::kFractionBits;
  const uint32_t sign = static_cast<uint32_t>(code & 0x80u) << 24;
  const uint32_t magnitude = code & 0x7fu;
  if (magnitude > Format::kLargest) return std::bit_cast<float>(0x7fc00000u | sign);
  if (magnitude < (1u << fraction_bits)) {
    constexpr float unit = std::bit_cast<float>(static_cast<uint32_t>(127 + 1 - Format::kBias - fraction_bits) << 23);
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(magnitude) * unit));
  }
  return std::bit_cast<float>(sign | ((magnitude << (23 - fraction_bits)) +
                                      (static_cast<uint32_t>(127 - Format::kBias) << 23)));
}

/// The nearest code, of two the even one; the largest for all beyond it.
template <typename Format>
constexpr uint8_t float8_of_float(float value) {
  constexpr int fraction_bits = Format::kFractionBits;
  constexpr uint32_t bias = static_cast<uint32_t>(127 - Format::kBias) << 23;
  // Below the smallest normal number results are multiples of 2^(1 - bias -
  // fraction_bits), which is the unit in the last place of this: adding it rounds.
  constexpr uint32_t rounder = static_cast<uint32_t>(127 + 1 - Format::kBias - fraction_bits + 23) << 23;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t small =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(rounder)) - rounder;
  const uint32_t odd = (magnitude >> (23 - fraction_bits)) & 1u;
  const uint32_t normal = (magnitude - bias + (1u << (22 - fraction_bits)) - 1u + odd) >> (23 - fraction_bits);
  uint32_t code = magnitude < bias + (1u << 23) ? small : normal;
  code = magnitude < bias + (uint32_t{Format::kLargest} + 1u) * (1u << (23 - fraction_bits)) && code < Format::kLargest
             ? code
             : uint32_t{Format::kLargest};
  code = magnitude > 0x7f800000u ? 0x7fu : code;
  return static_cast<uint8_t>(code | (bits >> 24 & 0x80u));
}

}  // namespace mixdown
