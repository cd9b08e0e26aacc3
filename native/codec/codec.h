// Codecs: what makes numbers smaller for their way, and what they are afterwards.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace mixdown {

/// Compresses blocks of floats or doubles. Blocks of one length have one size,
/// whatever is in them. Used by several threads at once.
class Codec {
 public:
  virtual ~Codec() = default;

  /// Bytes of a compressed block of so many elements; 0 for none.
  virtual int64_t size(int64_t count) const = 0;

  /// Writes size(count) bytes to `out`.
  virtual void encode(const float* in, int64_t count, char* out) const = 0;
  virtual void encode(const double* in, int64_t count, char* out) const = 0;

  /// Reads them again.
  virtual void decode(const char* in, int64_t count, float* out) const = 0;
  virtual void decode(const char* in, int64_t count, double* out) const = 0;

  /// How far a value may be off, as a share of itself or, of zfp, of the largest ones
  /// near it. What is further off is a fault.
  virtual double roundoff() const = 0;
  virtual bool of_itself() const { return true; }
};

/// bfloat16: two bytes for each element, the layout that libraries reduce.
std::unique_ptr<Codec> make_bfloat16_codec();

/// 8-bit floats: a float by which the block is scaled, so that its largest element
/// is the format's largest, then a byte for each element.
enum class Float8 { kE4M3, kE5M2 };
std::unique_ptr<Codec> make_float8_codec(Float8 format);

/// zfp in one dimension with so many bits for each element: blocks of four share
/// 4 * rate bits. `doubles` says which of the two types it will be used with. The
/// library is loaded here; throws std::runtime_error where it is missing.
std::unique_ptr<Codec> make_zfp_codec(double rate, bool doubles);

/// zfp's version as its library says it. Throws std::runtime_error where it is missing.
std::string zfp_version();

}  // namespace mixdown
