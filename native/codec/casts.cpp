#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "arith/half.h"
#include "codec/codec.h"
#include "codec/float8.h"

namespace mixdown {
namespace {

// Every code comes back, what lies half-way between two becomes the even one, and
// what is beyond the largest becomes that.
template <typename Format>
constexpr bool rounds() {
  for (int code = 0; code <= Format::kLargest; ++code) {
    const float value = float_of_float8<Format>(static_cast<uint8_t>(code));
    if (float8_of_float<Format>(value) != code || float8_of_float<Format>(-value) != (code | 0x80)) return false;
    if (code == Format::kLargest) break;
    const float half_way = (value + float_of_float8<Format>(static_cast<uint8_t>(code + 1))) / 2;
    if (float8_of_float<Format>(half_way) != code + (code & 1)) return false;
  }
  return float8_of_float<Format>(1e30f) == Format::kLargest && float8_of_float<Format>(-1e30f) == (Format::kLargest | 0x80);
}
static_assert(rounds<E4M3>() && rounds<E5M2>());
// The limits that the specification names.
static_assert(float_of_float8<E4M3>(0x7e) == 448 && float_of_float8<E4M3>(0x08) == 0x1p-6f && float_of_float8<E4M3>(1) == 0x1p-9f);
static_assert(float_of_float8<E5M2>(0x7b) == 57344 && float_of_float8<E5M2>(0x04) == 0x1p-14f && float_of_float8<E5M2>(1) == 0x1p-16f);

class BFloat16Codec final : public Codec {
 public:
  int64_t size(int64_t count) const override { return 2 * count; }
  void encode(const float* in, int64_t count, char* out) const override { narrow(in, count, out); }
  void encode(const double* in, int64_t count, char* out) const override { narrow(in, count, out); }
  void decode(const char* in, int64_t count, float* out) const override { widen(in, count, out); }
  void decode(const char* in, int64_t count, double* out) const override { widen(in, count, out); }
  double roundoff() const override { return 0x1p-8; }

 private:
  // Blocks begin where 16-bit numbers may: Compressed sees to it.
  template <typename T>
  static void narrow(const T* in, int64_t count, char* out) {
    auto* bfloats = reinterpret_cast<uint16_t*>(out);
    for (int64_t i = 0; i < count; ++i) bfloats[i] = bfloat_of_float(static_cast<float>(in[i]));
  }
  template <typename T>
  static void widen(const char* in, int64_t count, T* out) {
    const auto* bfloats = reinterpret_cast<const uint16_t*>(in);
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(float_of_bfloat(bfloats[i]));
  }
};

template <typename Format>
class Float8Codec final : public Codec {
 public:
  Float8Codec() {
    for (int code = 0; code < 256; ++code) table_[code] = float_of_float8<Format>(static_cast<uint8_t>(code));
  }

  int64_t size(int64_t count) const override { return count > 0 ? count + kHeader : 0; }
  void encode(const float* in, int64_t count, char* out) const override { narrow(in, count, out); }
  void encode(const double* in, int64_t count, char* out) const override { narrow(in, count, out); }
  void decode(const char* in, int64_t count, float* out) const override { widen(in, count, out); }
  void decode(const char* in, int64_t count, double* out) const override { widen(in, count, out); }
  double roundoff() const override { return std::ldexp(1, -1 - Format::kFractionBits); }

 private:
  static constexpr int64_t kHeader = sizeof(float);

  template <typename T>
  void narrow(const T* in, int64_t count, char* out) const {
    if (count == 0) return;
    float largest = 0;
    for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(static_cast<float>(in[i])));
    // The reciprocal must be a number too.
    float scale = largest / float_of_float8<Format>(Format::kLargest);
    if (!(scale >= 0x1p-126f) || !std::isfinite(scale)) scale = 1;
    std::memcpy(out, &scale, kHeader);
    const float inverse = 1 / scale;
    auto* codes = reinterpret_cast<uint8_t*>(out + kHeader);
    for (int64_t i = 0; i < count; ++i) codes[i] = float8_of_float<Format>(static_cast<float>(in[i]) * inverse);
  }

  template <typename T>
  void widen(const char* in, int64_t count, T* out) const {
    if (count == 0) return;
    float scale;
    std::memcpy(&scale, in, kHeader);
    const auto* codes = reinterpret_cast<const uint8_t*>(in + kHeader);
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(table_[codes[i]] * scale);
  }

  std::array<float, 256> table_;
};

}  // namespace

std::unique_ptr<Codec> make_bfloat16_codec() { return std::make_unique<BFloat16Codec>(); }

std::unique_ptr<Codec> make_float8_codec(Float8 format) {
  if (format == Float8::kE4M3) return std::make_unique<Float8Codec<E4M3>>();
  return std::make_unique<Float8Codec<E5M2>>();
}

}  // namespace mixdown
