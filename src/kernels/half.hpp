// The 16-bit floating-point formats on uint16_t: IEEE binary16 (f16) and bfloat16 (bf16). Sums and products are done in
// float and rounded to nearest even after every operation; comparisons work on the bits and need no conversion.
// Part of the one body (see loops.hpp).
#pragma once
#include "kernels/loops.hpp"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace stretto::kernels::KERNELS_ISA {

inline uint32_t bits_of(float x) {
  return __builtin_bit_cast(uint32_t, x);
}
inline float float_of(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

struct Bf16 {
  static constexpr uint16_t infinity = 0x7f80;
  static float widen(uint16_t h) { return float_of(uint32_t(h) << 16); }
  static uint16_t narrow(float x) { return uint16_t(rounded(x) >> 16); }

  // The upper half holds the result; the lower half is left over.
  static uint32_t rounded(float x) {
    const uint32_t u = bits_of(x);
    return choose(x != x, u | 0x400000, u + 0x7fff + ((u >> 16) & 1));
  }
};

#if defined(__F16C__)
struct F16 {
  static constexpr uint16_t infinity = 0x7c00;
  static float widen(uint16_t h) { return _cvtsh_ss(h); }
  static uint16_t narrow(float x) { return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
};
#else
struct F16 {
  static constexpr uint16_t infinity = 0x7c00;
  static constexpr uint32_t rebias = (127 - 15) << 23;
  static constexpr uint32_t least_normal = (127 - 14) << 23;  // 2^-14 as float

  static float widen(uint16_t h) {
    const uint32_t sign = uint32_t(h & 0x8000) << 16;
    const uint32_t magnitude = uint32_t(h & 0x7fff) << 13;
    const uint32_t normal = magnitude + rebias;
    const uint32_t special = normal + rebias;  // infinity and NaN: exponent 31 becomes 255
    const uint32_t subnormal = bits_of(float_of(magnitude | least_normal) - float_of(least_normal));
    const uint32_t finite = choose(magnitude < 0x00800000, subnormal, normal);
    return float_of(sign | choose(magnitude >= 0x0f800000, special, finite));
  }

  static uint16_t narrow(float x) {
    const uint32_t u = bits_of(x);
    const uint32_t a = u & 0x7fffffff;
    const uint32_t normal = (a + 0xfff + ((a >> 13) & 1) - rebias) >> 13;
    const uint32_t subnormal = bits_of(float_of(a) + 0.5f) - bits_of(0.5f);  // the last bit of 0.5f weighs 2^-24, as in f16
    const uint32_t finite = choose(a < least_normal, subnormal, normal);
    const uint32_t bounded = choose(a >= 0x477ff000, uint32_t(infinity), finite);  // from 65520 on
    const uint32_t nan = 0x7e00 | ((a >> 13) & 0x3ff);
    return uint16_t(((u >> 16) & 0x8000) | choose(a > 0x7f800000, nan, bounded));
  }
};
#endif

// F is Sum or Prod.
template <class F, class H>
struct HalfOf {
  static uint16_t of(uint16_t a, uint16_t b) { return H::narrow(F::of(H::widen(a), H::widen(b))); }
};

// a < b as IEEE says: never with a NaN, and -0 equals +0. Sign and magnitude become two's complement.
inline int16_t ordered(uint16_t h) {
  const uint16_t sign = uint16_t(int16_t(h) >> 15);
  return int16_t(((h & 0x7fff) ^ sign) - sign);
}
template <class H>
bool less(uint16_t a, uint16_t b) {
  const bool numbers = ((a & 0x7fff) <= H::infinity) & ((b & 0x7fff) <= H::infinity);
  return (ordered(a) < ordered(b)) & numbers;
}
template <class H>
struct HalfMin {
  static uint16_t of(uint16_t a, uint16_t b) { return choose<uint16_t>(less<H>(b, a), b, a); }
};
template <class H>
struct HalfMax {
  static uint16_t of(uint16_t a, uint16_t b) { return choose<uint16_t>(less<H>(a, b), b, a); }
};

template <class H>
constexpr Row half_row() {
  Row row;
  row[Op::sum] = kernel_of_long_body<HalfOf<Sum, H>, uint16_t>();
  row[Op::prod] = kernel_of_long_body<HalfOf<Prod, H>, uint16_t>();
  row[Op::min] = kernel_of_long_body<HalfMin<H>, uint16_t>();
  row[Op::max] = kernel_of_long_body<HalfMax<H>, uint16_t>();
  return row;
}

}  // namespace stretto::kernels::KERNELS_ISA
