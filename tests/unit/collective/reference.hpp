// What the collectives must give, computed plainly, and random contributions to compute it from.
#pragma once
#include <cstring>
#include <random>
#include <vector>

#include "collective/request.hpp"

namespace stretto::collective {

using Bytes = std::vector<unsigned char>;

// As random as test data must be: xorshift, which has no table that sanitizers would watch.
class Fast {
 public:
  explicit Fast(std::mt19937& seed) : state_(seed() | 1) {}
  uint64_t operator()() {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return state_;
  }

 private:
  uint64_t state_;
};

// Contributions that every op on every type can digest: small positive numbers in the type's own format.
inline Bytes random_elements(kernels::Type type, size_t count, std::mt19937& random) {
  using kernels::Type;
  Bytes bytes(count * kernels::size_of(type));
  Fast fast(random);
  auto small = [&] { return int((fast() >> 32) % 6); };
  auto fill = [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
      T value = T(small()) + T(1);
      std::memcpy(&bytes[i], &value, sizeof value);
    }
  };
  switch (type) {
    case Type::f32:
    case Type::c32:
    case Type::f32_f32:
      fill(0.0f);
      break;
    case Type::f64:
    case Type::c64:
    case Type::f64_f64:
      fill(0.0);
      break;
    case Type::i32:
    case Type::i32_i32:
      fill(int32_t(0));
      break;
    case Type::f64_i32:
      for (size_t i = 0; i < bytes.size(); i += 16) {
        double value = small();
        int32_t index = small();
        std::memcpy(&bytes[i], &value, 8);
        std::memcpy(&bytes[i + 8], &index, 4);
      }
      break;
    default:
      fill(int8_t(0));
      break;
  }
  return bytes;
}

// Of equal operands the left one is kept, which shows in zeros of both signs.
inline constexpr std::pair<kernels::Op, kernels::Type> signed_zeros{kernels::Op::max, kernels::Type::f64};

inline Bytes random_inputs(kernels::Op op, kernels::Type type, size_t count, std::mt19937& random) {
  if (std::pair(op, type) != signed_zeros) return random_elements(type, count, random);
  Bytes bytes(count * sizeof(double));
  Fast fast(random);
  for (size_t i = 0; i < bytes.size(); i += sizeof(double)) {
    const double zero = fast() >> 63 ? -0.0 : 0.0;
    std::memcpy(&bytes[i], &zero, sizeof zero);
  }
  return bytes;
}

// out = inputs combined in rank order, by the kernels' documented association.
inline Bytes reference(kernels::Op op, kernels::Type type, const std::vector<Bytes>& inputs, size_t count) {
  std::vector<const void*> pointers;
  for (const Bytes& input : inputs) pointers.push_back(input.data());
  Bytes out(inputs[0].size());
  kernels::reduce(op, type, pointers.data(), int(inputs.size()), out.data(), count);
  return out;
}

// A user's operation that is associative and not commutative: composition of affine maps x -> a x + b (mod 2^32), as pairs (a,
// b).
inline void compose(void*, const void* in, void* inout, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t left[2], right[2];
    std::memcpy(left, static_cast<const char*>(in) + 8 * i, 8);
    std::memcpy(right, static_cast<char*>(inout) + 8 * i, 8);
    uint32_t result[2] = {left[0] * right[0], left[0] * right[1] + left[1]};
    std::memcpy(static_cast<char*>(inout) + 8 * i, result, 8);
  }
}

}  // namespace stretto::collective
