// Types that no vector unit knows: long double, quad precision and what is built from them. Compiled once.
#define KERNELS_ISA scalar
#include "kernels/loops.hpp"
#include "kernels/plan.hpp"

namespace stretto::kernels {

struct LongDoublePair {
  LongDoubleInt pair;
  long double value() const { return pair.value; }
  int32_t index() const { return pair.index; }
  static LongDoublePair take(bool right, LongDoublePair a, LongDoublePair b) { return right ? b : a; }
};

constinit const Row f80_row = scalar::floating_row<long double>();
constinit const Row f128_row = scalar::floating_row<Quad>();
constinit const Row c80_row = scalar::complex_row<long double>();
constinit const Row c128_row = scalar::complex_row<Quad>();
constinit const Row f80_i32_row = scalar::pair_row<LongDoublePair>();

}  // namespace stretto::kernels
