// Kernels of f16 and bf16. Minimum and maximum are the plain body. Sums and products of f16 are written with the F16C
// conversions where the instruction set has them, as compilers do not vectorise these by themselves. Those of bf16 take
// two elements as one 32-bit word, so that widening and narrowing move nothing across the lanes of a vector.
#include "kernels/half.hpp"
#include "kernels/isa/rows.hpp"

namespace stretto::kernels::KERNELS_ISA {

#if defined(__F16C__)

constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

#if defined(__AVX512F__)
using Floats = __m512;
using Halves = __m256i;
// The masked forms with a full mask: the plain ones make gcc 12 warn of an uninitialised value in its own header.
constexpr __mmask16 all = 0xffff;
inline Floats widen(Halves h) {
  return _mm512_maskz_cvtph_ps(all, h);
}
inline Halves narrow(Floats x) {
  return _mm512_maskz_cvtps_ph(all, x, nearest);
}
#else
using Floats = __m256;
using Halves = __m128i;
inline Floats widen(Halves h) {
  return _mm256_cvtph_ps(h);
}
inline Halves narrow(Floats x) {
  return _mm256_cvtps_ph(x, nearest);
}
#endif

constexpr size_t lanes = sizeof(Halves) / sizeof(uint16_t);

inline Floats load(const uint16_t* from) {
  Halves h;
  __builtin_memcpy(&h, from, sizeof h);
  return widen(h);
}
inline void store(uint16_t* to, Floats x) {
  const Halves h = narrow(x);
  __builtin_memcpy(to, &h, sizeof h);
}
inline Floats rounded(Floats x) {
  return widen(narrow(x));
}

// The tree over the p inputs `in` from element i on, rounded to f16 after every operation but the last.
template <class F, int p>
Floats vector_tree(const uint16_t* const* in, size_t i) {
  if constexpr (p == 2)
    return F::of(load(in[0] + i), load(in[1] + i));
  else
    return F::of(rounded(vector_tree<F, p / 2>(in, i)), rounded(vector_tree<F, p / 2>(in + p / 2, i)));
}
template <class F, int p>
uint16_t element_tree(const uint16_t* const* in, size_t i) {
  if constexpr (p == 1)
    return in[0][i];
  else
    return F::of(element_tree<F, p / 2>(in, i), element_tree<F, p / 2>(in + p / 2, i));
}

// F on vectors of float, S the same operation on single elements, for the rest.
template <class F, class S, int p>
void reduce_f16(const void* const* inputs, void* out, size_t n) {
  const uint16_t* in[p];
  for (int k = 0; k < p; ++k) in[k] = static_cast<const uint16_t*>(inputs[k]);
  uint16_t* result = static_cast<uint16_t*>(out);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) store(result + i, vector_tree<F, p>(in, i));
  for (; i < n; ++i) result[i] = element_tree<S, p>(in, i);
}
template <class F, class S>
constexpr Kernel kernel_f16() {
  return {reduce_f16<F, S, 2>, reduce_f16<F, S, 4>, nullptr};
}

struct VectorSum {
  static Floats of(Floats a, Floats b) { return a + b; }
};
struct VectorProd {
  static Floats of(Floats a, Floats b) { return a * b; }
};

constexpr Row f16c_row() {
  Row row = half_row<F16>();
  row[Op::sum] = kernel_f16<VectorSum, HalfOf<Sum, F16>>();
  row[Op::prod] = kernel_f16<VectorProd, HalfOf<Prod, F16>>();
  return row;
}
constinit const Row f16_row = f16c_row();

#else
constinit const Row f16_row = half_row<F16>();
#endif

using Word = uint32_t __attribute__((aligned(2), may_alias));

constexpr uint32_t upper = 0xffff0000;

struct TwoFloats {
  float high, low;
};
inline TwoFloats unpack(uint32_t word) {
  return {float_of(word & upper), float_of(word << 16)};
}
inline uint32_t pack(TwoFloats x) {
  return (Bf16::rounded(x.high) & upper) | (Bf16::rounded(x.low) >> 16);
}
inline TwoFloats rounded(TwoFloats x) {
  return {float_of(Bf16::rounded(x.high) & upper), float_of(Bf16::rounded(x.low) & upper)};
}

// F on both elements of the word, not yet rounded.
template <class F>
TwoFloats both(TwoFloats a, TwoFloats b) {
  return {F::of(a.high, b.high), F::of(a.low, b.low)};
}

// An odd last element, from the loops on single elements.
inline void last_bf16(Function loop, const void* const* inputs, int p, void* out, size_t n) {
  const void* last[4];
  for (int k = 0; k < p; ++k) last[k] = input<uint16_t>(inputs, k) + n - 1;
  loop(last, static_cast<uint16_t*>(out) + n - 1, 1);
}

template <class F>
void two_bf16(const void* const* inputs, void* out, size_t n) {
  const Word *a = static_cast<const Word*>(inputs[0]), *b = static_cast<const Word*>(inputs[1]);
  Word* result = static_cast<Word*>(out);
  KERNELS_INDEPENDENT
  for (size_t i = 0; i < n / 2; ++i) result[i] = pack(both<F>(unpack(a[i]), unpack(b[i])));
  if (n % 2) last_bf16(two<HalfOf<F, Bf16>, uint16_t>, inputs, 2, out, n);
}

template <class F>
void four_bf16(const void* const* inputs, void* out, size_t n) {
  const Word *a = static_cast<const Word*>(inputs[0]), *b = static_cast<const Word*>(inputs[1]);
  const Word *c = static_cast<const Word*>(inputs[2]), *d = static_cast<const Word*>(inputs[3]);
  Word* result = static_cast<Word*>(out);
  KERNELS_INDEPENDENT
  for (size_t i = 0; i < n / 2; ++i) {
    const TwoFloats left = rounded(both<F>(unpack(a[i]), unpack(b[i])));
    const TwoFloats right = rounded(both<F>(unpack(c[i]), unpack(d[i])));
    result[i] = pack(both<F>(left, right));
  }
  if (n % 2) last_bf16(four<HalfOf<F, Bf16>, uint16_t>, inputs, 4, out, n);
}

constexpr Row make_bf16_row() {
  Row row = half_row<Bf16>();
  row[Op::sum] = {two_bf16<Sum>, four_bf16<Sum>, nullptr};
  row[Op::prod] = {two_bf16<Prod>, four_bf16<Prod>, nullptr};
  return row;
}
constinit const Row bf16_row = make_bf16_row();

}  // namespace stretto::kernels::KERNELS_ISA
