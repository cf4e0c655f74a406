// The one body: element-wise loops over two, four and eight inputs, written plainly so that the compiler vectorises them for
// the instruction set it is given. Included by every source in isa/, each time in a namespace of its own, because two
// objects compiled for different instruction sets must never share a function by name (the linker would keep only one).
// For the same reason nothing here may call inline functions of other headers.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/table.hpp"

#ifndef KERNELS_ISA
#error "KERNELS_ISA names the namespace of this instruction set"
#endif

// Iterations are independent although `out` may be one of the inputs: element i is read before it is written.
#if defined(KERNELS_PLAIN_LOOPS)
#define KERNELS_INDEPENDENT
#elif defined(__clang__)
#define KERNELS_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define KERNELS_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace stretto::kernels::KERNELS_ISA {

// Where integers wrap: arithmetic narrower than int would be done in (signed) int.
template <class T>
struct Wide {
  using type = T;
};
template <>
struct Wide<uint8_t> {
  using type = uint32_t;
};
template <>
struct Wide<uint16_t> {
  using type = uint32_t;
};
template <class T>
using wide = typename Wide<T>::type;

struct Sum {
  template <class T>
  static T of(T a, T b) {
    return T(wide<T>(a) + wide<T>(b));
  }
};
struct Prod {
  template <class T>
  static T of(T a, T b) {
    return T(wide<T>(a) * wide<T>(b));
  }
};
// The left operand stays when the two are equal or unordered.
struct Min {
  template <class T>
  static T of(T a, T b) {
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  static T of(T a, T b) {
    return a < b ? b : a;
  }
};
struct Land {
  template <class T>
  static T of(T a, T b) {
    return T((a != 0) & (b != 0));
  }
};
struct Lor {
  template <class T>
  static T of(T a, T b) {
    return T((a | b) != 0);
  }
};
struct Lxor {
  template <class T>
  static T of(T a, T b) {
    return T((a != 0) ^ (b != 0));
  }
};
struct Band {
  template <class T>
  static T of(T a, T b) {
    return T(a & b);
  }
};
struct Bor {
  template <class T>
  static T of(T a, T b) {
    return T(a | b);
  }
};
struct Bxor {
  template <class T>
  static T of(T a, T b) {
    return T(a ^ b);
  }
};

// first ? a : b on unsigned words, by masks: branches would keep the loops from being vectorised.
template <class W>
W choose(bool first, W a, W b) {
  const W mask = W(0) - W(first);
  return W((a & mask) | (b & W(~mask)));
}

// The right pair wins when its value is better, or equal with a smaller index; unordered values keep the left pair.
// A pair P has value(), index() and take(right, a, b), which returns b or a.
struct Minloc {
  template <class P>
  static P of(P a, P b) {
    return P::take((b.value() < a.value()) | ((b.value() == a.value()) & (b.index() < a.index())), a, b);
  }
};
struct Maxloc {
  template <class P>
  static P of(P a, P b) {
    return P::take((a.value() < b.value()) | ((b.value() == a.value()) & (b.index() < a.index())), a, b);
  }
};

template <class T>
struct Complex {
  T re, im;
};
// The textbook formula. The difference is written as the sum with a flipped sign, which gives the same bits: gcc 12 turns
// a vector of differences and sums of products into fused multiply-adds even where contraction is off.
struct ComplexProd {
  template <class C>
  static C of(C a, C b) {
    return {a.re * b.re + flipped(a.im * b.im), a.re * b.im + a.im * b.re};
  }
  static float flipped(float x) { return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, x) ^ (uint32_t(1) << 31)); }
  static double flipped(double x) { return __builtin_bit_cast(double, __builtin_bit_cast(uint64_t, x) ^ (uint64_t(1) << 63)); }
  template <class T>
  static T flipped(T x) {
    return -x;
  }
};

template <class F, class T>
T tree(T a, T b, T c, T d) {
  return F::of(F::of(a, b), F::of(c, d));
}

template <class T>
const T* input(const void* const* inputs, int k) {
  return static_cast<const T*>(inputs[k]);
}

template <class F, class T>
void two(const void* const* inputs, void* out, size_t n) {
  const T *a = input<T>(inputs, 0), *b = input<T>(inputs, 1);
  T* result = static_cast<T*>(out);
  KERNELS_INDEPENDENT
  for (size_t i = 0; i < n; ++i) result[i] = F::of(a[i], b[i]);
}

template <class F, class T>
void four(const void* const* inputs, void* out, size_t n) {
  const T *a = input<T>(inputs, 0), *b = input<T>(inputs, 1), *c = input<T>(inputs, 2), *d = input<T>(inputs, 3);
  T* result = static_cast<T*>(out);
  KERNELS_INDEPENDENT
  for (size_t i = 0; i < n; ++i) result[i] = tree<F>(a[i], b[i], c[i], d[i]);
}

template <class F, class T>
void eight(const void* const* inputs, void* out, size_t n) {
  const T *a = input<T>(inputs, 0), *b = input<T>(inputs, 1), *c = input<T>(inputs, 2), *d = input<T>(inputs, 3);
  const T *e = input<T>(inputs, 4), *f = input<T>(inputs, 5), *g = input<T>(inputs, 6), *h = input<T>(inputs, 7);
  T* result = static_cast<T*>(out);
  KERNELS_INDEPENDENT
  for (size_t i = 0; i < n; ++i) result[i] = F::of(tree<F>(a[i], b[i], c[i], d[i]), tree<F>(e[i], f[i], g[i], h[i]));
}

template <class F, class T>
constexpr Kernel kernel() {
  return {two<F, T>, four<F, T>, eight<F, T>};
}
template <class F, class T>
constexpr Kernel kernel_of_long_body() {
  return {two<F, T>, four<F, T>, nullptr};
}

template <class T>
constexpr Row floating_row() {
  Row row;
  row[Op::sum] = kernel<Sum, T>();
  row[Op::prod] = kernel<Prod, T>();
  row[Op::min] = kernel<Min, T>();
  row[Op::max] = kernel<Max, T>();
  return row;
}

// Sums of complex numbers are served by the row of their parts.
template <class T>
constexpr Row complex_row() {
  Row row;
  row[Op::prod] = kernel<ComplexProd, Complex<T>>();
  return row;
}

template <class P>
constexpr Row pair_row() {
  Row row;
  row[Op::minloc] = kernel_of_long_body<Minloc, P>();
  row[Op::maxloc] = kernel_of_long_body<Maxloc, P>();
  return row;
}

}  // namespace stretto::kernels::KERNELS_ISA
