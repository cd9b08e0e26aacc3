#include "arith/arith.h"

#include <stdexcept>
#include <type_traits>

#include "arith/half.h"

namespace mixdown {
namespace {

struct Half {
  using Storage = uint16_t;
  static float load(uint16_t bits) { return float_of_half(bits); }
  static uint16_t store(float value) { return half_of_float(value); }
};

struct BFloat {
  using Storage = uint16_t;
  static float load(uint16_t bits) { return float_of_bfloat(bits); }
  static uint16_t store(float value) { return bfloat_of_float(value); }
};

template <typename T>
struct Plain {
  using Storage = T;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};

// Integers wrap around, which C++ only promises for unsigned types that are not
// promoted to int.
template <typename T, typename F>
T wrapping(T a, T b, F f) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  } else {
    return f(a, b);
  }
}

struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct Multiply {
  template <typename T>
  T operator()(T a, T b) const {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
};
struct Smaller {
  template <typename T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Larger {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

struct And {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

template <typename Format, typename F>
void loop(void* out, const void* a, const void* b, int64_t count, F f) {
  using S = typename Format::Storage;
  auto* o = static_cast<S*>(out);
  const auto* x = static_cast<const S*>(a);
  const auto* y = static_cast<const S*>(b);
  for (int64_t i = 0; i < count; ++i) o[i] = Format::store(f(Format::load(x[i]), Format::load(y[i])));
}

template <typename Format, typename F>
void bitwise(void* out, const void* a, const void* b, int64_t count, F f) {
  if constexpr (std::is_integral_v<decltype(Format::load({}))>) {
    loop<Format>(out, a, b, count, f);
  } else {
    throw std::invalid_argument("bitwise reduction of floats");
  }
}

template <typename Format>
void combine_as(ReduceOp op, void* out, const void* a, const void* b, int64_t count) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
    case ReduceOp::kPremulSum:
      return loop<Format>(out, a, b, count, Add{});
    case ReduceOp::kMin:
      return loop<Format>(out, a, b, count, Smaller{});
    case ReduceOp::kMax:
      return loop<Format>(out, a, b, count, Larger{});
    case ReduceOp::kProd:
      return loop<Format>(out, a, b, count, Multiply{});
    case ReduceOp::kBitAnd:
      return bitwise<Format>(out, a, b, count, And{});
    case ReduceOp::kBitOr:
      return bitwise<Format>(out, a, b, count, Or{});
    case ReduceOp::kBitXor:
      return bitwise<Format>(out, a, b, count, Xor{});
  }
}

template <typename Format>
void divide_as(void* data, int64_t count, int64_t divisor) {
  using S = typename Format::Storage;
  using V = decltype(Format::load(S{}));
  auto* x = static_cast<S*>(data);
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<V, uint64_t>) {
      x[i] = x[i] / static_cast<uint64_t>(divisor);
    } else if constexpr (std::is_integral_v<V>) {
      x[i] = static_cast<S>(static_cast<int64_t>(x[i]) / divisor);
    } else {
      x[i] = Format::store(Format::load(x[i]) / static_cast<V>(divisor));
    }
  }
}

template <typename Format>
void scale_as(void* out, const void* in, int64_t count, double factor) {
  using S = typename Format::Storage;
  using V = decltype(Format::load(S{}));
  auto* o = static_cast<S*>(out);
  const auto* x = static_cast<const S*>(in);
  for (int64_t i = 0; i < count; ++i) o[i] = Format::store(static_cast<V>(Format::load(x[i]) * static_cast<V>(factor)));
}

// Calls f with the format of the dtype.
template <typename F>
void with_format(DType dtype, F f) {
  switch (dtype) {
    case DType::kFloat32:
      return f(Plain<float>{});
    case DType::kFloat64:
      return f(Plain<double>{});
    case DType::kFloat16:
      return f(Half{});
    case DType::kBFloat16:
      return f(BFloat{});
    case DType::kInt8:
      return f(Plain<int8_t>{});
    case DType::kUInt8:
      return f(Plain<uint8_t>{});
    case DType::kInt16:
      return f(Plain<int16_t>{});
    case DType::kInt32:
      return f(Plain<int32_t>{});
    case DType::kInt64:
      return f(Plain<int64_t>{});
    case DType::kUInt16:
      return f(Plain<uint16_t>{});
    case DType::kUInt32:
      return f(Plain<uint32_t>{});
    case DType::kUInt64:
      return f(Plain<uint64_t>{});
  }
}

void combine(DType dtype, ReduceOp op, void* out, const void* a, const void* b, int64_t count) {
  with_format(dtype, [&](auto format) { combine_as<decltype(format)>(op, out, a, b, count); });
}

void divide(DType dtype, void* data, int64_t count, int64_t divisor) {
  if (divisor == 1) return;
  with_format(dtype, [&](auto format) { divide_as<decltype(format)>(data, count, divisor); });
}

void scale(DType dtype, void* out, const void* in, int64_t count, double factor) {
  with_format(dtype, [&](auto format) { scale_as<decltype(format)>(out, in, count, factor); });
}

}  // namespace

const Arithmetic& host_arithmetic() {
  static const Arithmetic arithmetic{&combine, &divide, &scale};
  return arithmetic;
}

}  // namespace mixdown
