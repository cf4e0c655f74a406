// minloc and maxloc on pairs of a value and an index.
//
// A C pair is seen as two unsigned words of equal size, so that one loop with strided loads serves every layout: a member
// narrower than its word shares it with padding. Padding is copied from the pair that wins.
#include "kernels/isa/rows.hpp"

namespace stretto::kernels::KERNELS_ISA {

template <class W>
struct Signed;
template <>
struct Signed<uint32_t> {
  using type = int32_t;
};
template <>
struct Signed<uint64_t> {
  using type = int64_t;
};

// The member of type T in a word, as something that orders like T: the member itself, or a narrower integer shifted to
// the top of its word, which drops the padding.
template <class T, class W>
auto member(W word) {
  if constexpr (sizeof(T) == sizeof(W)) {
    return __builtin_bit_cast(T, word);
  } else {
    constexpr int padding = 8 * int(sizeof(W) - sizeof(T));
    constexpr bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    return static_cast<typename Signed<W>::type>(little ? word << padding : word >> padding << padding);
  }
}

template <class V, class I, class W>
struct Words {
  W first, second;
  auto value() const { return member<V>(first); }
  auto index() const { return member<I>(second); }
  static Words take(bool right, Words a, Words b) { return {choose(right, b.first, a.first), choose(right, b.second, a.second)}; }
};

constinit const Row f32_i32_row = pair_row<Words<float, int32_t, uint32_t>>();
constinit const Row f64_i32_row = pair_row<Words<double, int32_t, uint64_t>>();
constinit const Row i64_i32_row = pair_row<Words<int64_t, int32_t, uint64_t>>();
constinit const Row i32_i32_row = pair_row<Words<int32_t, int32_t, uint32_t>>();
constinit const Row i16_i32_row = pair_row<Words<int16_t, int32_t, uint32_t>>();
constinit const Row f32_f32_row = pair_row<Words<float, float, uint32_t>>();
constinit const Row f64_f64_row = pair_row<Words<double, double, uint64_t>>();

}  // namespace stretto::kernels::KERNELS_ISA
