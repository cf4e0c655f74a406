// Element types as plain C++ with plain arithmetic: the other side of the differential test. Slow and obvious.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/kernels.hpp"

namespace stretto::kernels::test {

#if defined(__SIZEOF_FLOAT128__)
using Quad = __float128;
#else
using Quad = long double;
#endif

// A binary format of 16 bits with `digits` significant bits, converted by scaling with powers of two.
template <int digits, int least_exponent>
struct Half {
  uint16_t bits;

  static constexpr int fraction = digits - 1;
  static constexpr uint16_t infinity = uint16_t((0x7fff >> fraction) << fraction);

  float widen() const {
    const int exponent = (bits & 0x7fff) >> fraction;
    const int mantissa = bits & ((1 << fraction) - 1);
    if ((bits & 0x7fff) > infinity) return NAN;
    float magnitude = INFINITY;
    if ((bits & 0x7fff) < infinity)
      magnitude = exponent == 0 ? std::ldexp(float(mantissa), least_exponent - fraction)
                                : std::ldexp(float(mantissa + (1 << fraction)), exponent - 1 + least_exponent - fraction);
    return bits & 0x8000 ? -magnitude : magnitude;
  }

  // Round to nearest even: the significand as an integer, rounded by nearbyint; a carry runs into the exponent.
  static Half narrow(float x) {
    const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    if (std::isnan(x)) return {uint16_t(sign | infinity | 1 << (fraction - 1))};
    if (std::isinf(x)) return {uint16_t(sign | infinity)};
    const double magnitude = std::fabs(double(x));
    const int exponent = magnitude == 0 ? least_exponent : std::max(std::ilogb(magnitude), least_exponent);
    const double significand = std::nearbyint(std::ldexp(magnitude, fraction - exponent));
    const long encoded = (long(exponent - least_exponent) << fraction) + long(significand);
    return {uint16_t(sign | (encoded > infinity ? infinity : encoded))};
  }

  bool is_nan() const { return (bits & 0x7fff) > infinity; }
  friend bool operator<(Half a, Half b) { return a.widen() < b.widen(); }
  friend Half operator+(Half a, Half b) { return narrow(a.widen() + b.widen()); }
  friend Half operator*(Half a, Half b) { return narrow(a.widen() * b.widen()); }
};
using F16 = Half<11, -14>;
using Bf16 = Half<8, -126>;

template <class T>
struct Complex {
  T re, im;
  friend Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
};

template <class V, class I>
struct Pair {
  V value;
  I index;
};

template <class T>
struct Logical {
  T value;
};

struct Byte {
  uint8_t value;
};

// Calls visit with a value-initialised element of the C++ type that stands for `type`.
template <class Visit>
void with_element(Type type, Visit visit) {
  switch (type) {
    case Type::i8:
      return visit(int8_t());
    case Type::i16:
      return visit(int16_t());
    case Type::i32:
      return visit(int32_t());
    case Type::i64:
      return visit(int64_t());
    case Type::u8:
      return visit(uint8_t());
    case Type::u16:
      return visit(uint16_t());
    case Type::u32:
      return visit(uint32_t());
    case Type::u64:
      return visit(uint64_t());
    case Type::f16:
      return visit(F16());
    case Type::bf16:
      return visit(Bf16());
    case Type::f32:
      return visit(float());
    case Type::f64:
      return visit(double());
    case Type::f80:
      return visit((long double)(0));
    case Type::f128:
      return visit(Quad());
    case Type::c32:
      return visit(Complex<float>());
    case Type::c64:
      return visit(Complex<double>());
    case Type::c80:
      return visit(Complex<long double>());
    case Type::c128:
      return visit(Complex<Quad>());
    case Type::b8:
      return visit(Logical<uint8_t>());
    case Type::l8:
      return visit(Logical<int8_t>());
    case Type::l16:
      return visit(Logical<int16_t>());
    case Type::l32:
      return visit(Logical<int32_t>());
    case Type::l64:
      return visit(Logical<int64_t>());
    case Type::byte:
      return visit(Byte());
    case Type::f32_i32:
      return visit(Pair<float, int>());
    case Type::f64_i32:
      return visit(Pair<double, int>());
    case Type::i64_i32:
      return visit(Pair<long, int>());
    case Type::i32_i32:
      return visit(Pair<int, int>());
    case Type::i16_i32:
      return visit(Pair<short, int>());
    case Type::f80_i32:
      return visit(Pair<long double, int>());
    case Type::f32_f32:
      return visit(Pair<float, float>());
    case Type::f64_f64:
      return visit(Pair<double, double>());
    case Type::opaque:
      return;
  }
}

template <class T>
constexpr bool is_integer = std::is_integral_v<T>;
template <class T>
constexpr bool is_pair = false;
template <class V, class I>
constexpr bool is_pair<Pair<V, I>> = true;
template <class T>
constexpr bool is_logical = false;
template <class T>
constexpr bool is_logical<Logical<T>> = true;
template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<Complex<T>> = true;
template <class T>
constexpr bool is_half = std::is_same_v<T, F16> || std::is_same_v<T, Bf16>;
template <class T>
constexpr bool is_real =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, long double> || std::is_same_v<T, Quad>;

// Bytes of a real number that hold its value.
template <class T>
constexpr size_t value_bytes() {
  if (std::is_same_v<T, long double> && __LDBL_MANT_DIG__ == 64) return 10;
  return sizeof(T);
}

}  // namespace stretto::kernels::test
