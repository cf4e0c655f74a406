// A copy whose stores bypass the caches: whole lines of the destination are written by non-temporal stores, the ragged
// ends by ordinary ones, and a store fence makes all of it visible before any later store.
#include <string.h>

#include "kernels/isa/rows.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace stretto::kernels::KERNELS_ISA {

#if defined(__SSE2__)

#if defined(__AVX512F__)
using Vector = __m512i;
inline Vector load(const char* from) {
  return _mm512_loadu_si512(from);
}
inline void store_past_cache(char* to, Vector v) {
  _mm512_stream_si512(reinterpret_cast<Vector*>(to), v);
}
#elif defined(__AVX__)
using Vector = __m256i;
inline Vector load(const char* from) {
  return _mm256_loadu_si256(reinterpret_cast<const Vector*>(from));
}
inline void store_past_cache(char* to, Vector v) {
  _mm256_stream_si256(reinterpret_cast<Vector*>(to), v);
}
#else
using Vector = __m128i;
inline Vector load(const char* from) {
  return _mm_loadu_si128(reinterpret_cast<const Vector*>(from));
}
inline void store_past_cache(char* to, Vector v) {
  _mm_stream_si128(reinterpret_cast<Vector*>(to), v);
}
#endif

constexpr size_t line = 64;
constexpr size_t vectors = line / sizeof(Vector);

// (Loaded as they are stored: of a memcpy compilers make loads of other widths, through memory, that every store waits for.)
inline void stream_line(char* to, const char* from) {
  Vector v[vectors];
  for (size_t i = 0; i < vectors; ++i) v[i] = load(from + i * sizeof(Vector));
  for (size_t i = 0; i < vectors; ++i) store_past_cache(to + i * sizeof(Vector), v[i]);
}

void stream(void* to, const void* from, size_t bytes) {
  char* out = static_cast<char*>(to);
  const char* in = static_cast<const char*>(from);
  const size_t head = -reinterpret_cast<uintptr_t>(out) % line;
  if (bytes < head + line) {
    memcpy(out, in, bytes);
    return;
  }
  memcpy(out, in, head);
  size_t i = head;
  for (; i + line <= bytes; i += line) stream_line(out + i, in + i);
  memcpy(out + i, in + i, bytes - i);
  _mm_sfence();
}

#else

void stream(void* to, const void* from, size_t bytes) {
  memcpy(to, from, bytes);
}

#endif

}  // namespace stretto::kernels::KERNELS_ISA
