// One element reduced over p inputs, from the definitions: the tree of kernels.hpp and one operation at a time.
#pragma once
#include "elements.hpp"

namespace stretto::kernels::test {

template <class T>
T combine_integers(Op op, T a, T b) {
  const __int128 x = a, y = b;
  switch (op) {
    case Op::sum:
      return T(x + y);
    case Op::prod:
      return T(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y));
    case Op::min:
      return y < x ? b : a;
    case Op::max:
      return x < y ? b : a;
    case Op::land:
      return x && y;
    case Op::lor:
      return x || y;
    case Op::lxor:
      return !x != !y;
    case Op::band:
      return T(x & y);
    case Op::bor:
      return T(x | y);
    default:
      return T(x ^ y);
  }
}

template <class P>
P combine_pairs(Op op, P a, P b) {
  const bool better = op == Op::minloc ? b.value < a.value : b.value > a.value;
  if (better) return b;
  return a.value == b.value && b.index < a.index ? b : a;
}

template <class T>
T combine(Op op, T a, T b) {
  if constexpr (is_integer<T>) {
    return combine_integers(op, a, b);
  } else if constexpr (std::is_same_v<T, Byte>) {
    return {combine_integers(op, a.value, b.value)};
  } else if constexpr (is_logical<T>) {
    return {combine_integers(op, a.value, b.value)};
  } else if constexpr (is_pair<T>) {
    return combine_pairs(op, a, b);
  } else if constexpr (is_complex<T>) {
    return op == Op::sum ? a + b : a * b;
  } else {
    switch (op) {
      case Op::sum:
        return a + b;
      case Op::prod:
        return a * b;
      case Op::min:
        return b < a ? b : a;
      default:
        return a < b ? b : a;
    }
  }
}

template <class T>
T reduce_element(Op op, const T* const* inputs, int p, size_t i) {
  if (p == 1) return inputs[0][i];
  int left = 1;
  while (2 * left < p) left *= 2;
  return combine(op, reduce_element(op, inputs, left, i), reduce_element(op, inputs + left, p - left, i));
}

template <class T>
bool same_bits(const T& a, const T& b) {
  return memcmp(&a, &b, value_bytes<T>()) == 0;
}

// Equal bit for bit, padding aside. The payload of a NaN that arithmetic made is not specified (a + b may be done as
// b + a), so there any NaN equals any other; operations that only choose must keep the bits.
template <class T>
bool equal(Op op, const T& a, const T& b) {
  const bool arithmetic = op == Op::sum || op == Op::prod;
  if constexpr (is_pair<T>) {
    return same_bits(a.value, b.value) && same_bits(a.index, b.index);
  } else if constexpr (is_complex<T>) {
    return equal(op, a.re, b.re) && equal(op, a.im, b.im);
  } else if constexpr (is_half<T>) {
    return (arithmetic && a.is_nan() && b.is_nan()) || a.bits == b.bits;
  } else if constexpr (is_real<T>) {
    return (arithmetic && a != a && b != b) || same_bits(a, b);
  } else {
    return memcmp(&a, &b, sizeof(T)) == 0;
  }
}

}  // namespace stretto::kernels::test
