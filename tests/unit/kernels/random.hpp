// Random elements that meet the corners: zeros of both signs, infinities, NaNs, subnormals, extremes, ties.
#pragma once
#include <limits>
#include <random>

#include "elements.hpp"

namespace stretto::kernels::test {

using Random = std::mt19937_64;

template <class T>
T random_bits(Random& random) {
  uint64_t words[2] = {random(), random()};
  T value;
  memcpy(&value, words, sizeof value);
  return value;
}

template <class T>
T random_integer(Random& random) {
  switch (random() % 8) {
    case 0:
      return 0;
    case 1:
      return std::numeric_limits<T>::max();
    case 2:
      return std::numeric_limits<T>::min();
    case 3:
      return T(random() % 5);
    default:
      return random_bits<T>(random);
  }
}

inline double random_moderate(Random& random) {
  return std::ldexp(double(int64_t(random())), -62);
}  // within 2

template <class T>
T random_real(Random& random) {
  switch (random() % 16) {
    case 0:
      return T(0);
    case 1:
      return -T(0);
    case 2:
      return T(INFINITY);
    case 3:
      return T(-INFINITY);
    case 4:
      return T(NAN);
    case 5:
      return T(1);
    case 6:
    case 7:
    case 8:
      break;
    default:
      return T(random_moderate(random)) * T(random_moderate(random));
  }
  if constexpr (sizeof(T) == value_bytes<T>())
    return random_bits<T>(random);
  else  // not every pattern of an x87 number is valid
    return std::ldexp(T(random_moderate(random)), int(random() % 32000) - 16000);
}

template <class T>
T random_half(Random& random) {
  switch (random() % 4) {
    case 0:
      return T{uint16_t(random() % 2 ? 0x8000 : 0)};
    case 1:
      return random_bits<T>(random);
    default:
      return T::narrow(float(random_moderate(random)));
  }
}

// Few distinct values, so that ties are common and the index decides.
template <class T>
T random_tied(Random& random) {
  if constexpr (is_integer<T>) {
    return random() % 8 ? T(int(random() % 3) - 1) : random_integer<T>(random);
  } else {
    return random() % 8 ? T(int(random() % 3) - 1) : random_real<T>(random);
  }
}

template <class T>
T random_element(Random& random) {
  if constexpr (is_integer<T>) {
    return random_integer<T>(random);
  } else if constexpr (is_real<T>) {
    return random_real<T>(random);
  } else if constexpr (is_half<T>) {
    return random_half<T>(random);
  } else if constexpr (is_complex<T>) {
    return {random_real<decltype(T::re)>(random), random_real<decltype(T::im)>(random)};
  } else if constexpr (is_pair<T>) {
    T pair;
    memset(&pair, int(random()), sizeof pair);  // padding must not matter
    pair.value = random_tied<decltype(T::value)>(random);
    pair.index = decltype(T::index)(int(random() % 7) - 3);
    return pair;
  } else {
    return {random_integer<decltype(T::value)>(random)};
  }
}

}  // namespace stretto::kernels::test
