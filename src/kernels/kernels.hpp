// The arithmetic of the collectives: every predefined MPI reduction on every predefined MPI type, and copies.
//
// One body per operation, compiled for several instruction sets, chosen once at run time. All functions are
// pure, thread-safe, never allocate and never fail for a pair that defined() accepts.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto::kernels {

#if defined(__SIZEOF_FLOAT128__)
using Quad = __float128;
#else
using Quad = long double;  // where there is no __float128, long double is the quad type or there is none
#endif

// Element types by representation, not by language: MPI_INT, MPI_INT32_T and MPI_INTEGER4 are all i32.
// size_of() is the distance between consecutive elements in memory (C layout, padding included).
enum class Type : uint8_t {
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f16,
  bf16,
  f32,
  f64,
  f80,
  f128,  // f80: long double of this platform; f128: Quad
  c32,
  c64,
  c80,
  c128,  // complex of f32, f64, long double, quad
  b8,    // C bool / C++ bool, one byte: logical operations
  l8,
  l16,
  l32,
  l64,   // Fortran LOGICAL of 1, 2, 4, 8 bytes: logical operations, true is nonzero, results are 0 or 1
  byte,  // MPI_BYTE: bitwise operations only
  f32_i32,
  f64_i32,
  i64_i32,
  i32_i32,
  i16_i32,
  f80_i32,  // C pair types {value; int index}: MPI_FLOAT_INT ... MPI_LONG_DOUBLE_INT
  f32_f32,
  f64_f64,  // Fortran MPI_2REAL, MPI_2DOUBLE_PRECISION
  opaque,   // bytes that are only moved, or reduced by a user's function
};
inline constexpr int type_count = int(Type::opaque) + 1;

enum class Op : uint8_t { sum, prod, min, max, land, lor, lxor, band, bor, bxor, minloc, maxloc, user };
inline constexpr int op_count = int(Op::user) + 1;

const char* name(Type type);
const char* name(Op op);

// Bytes per element; 0 for opaque.
size_t size_of(Type type);

// Whether MPI defines `op` on `type` (MPI 4.1, section 6.9.2: table of allowed groups). f16 and bf16 count as floating point.
bool defined(Op op, Type type);

// out[i] = op over inputs[0][i] ... inputs[p-1][i], for i in [0, n); p >= 1.
//
// Association is fixed, whatever n, the alignment, the instruction set and the call's slicing: a binary tree over the
// input order whose left part is the largest power of two smaller than p, e.g. p=5: ((0+1)+(2+3))+4. Every input is read
// once from memory. `out` may be identical to any of the inputs, and else must not overlap them. Integer arithmetic wraps
// (two's complement), also for 8 and 16 bits. min and max keep the left operand when the comparison is unordered or equal:
// max(a,b) = a < b ? b : a. minloc and maxloc: on equal values the smaller index. No fused multiply-add: results do not
// depend on the instruction set. Pointers need only the alignment of the element type. One input (p = 1) is copied as it
// is. The sign and payload of a NaN made by arithmetic, and the padding inside pairs, are unspecified.
void reduce(Op op, Type type, const void* const* inputs, int p, void* out, size_t n);

// memcpy for ranges that do not overlap; `stream` bypasses the caches on the store side (non-temporal), fenced before return.
enum class Store : uint8_t { cached, stream };
void copy(void* to, const void* from, size_t bytes, Store store = Store::cached);

// The instruction set in use: "x86-64-v4", "x86-64-v3", "x86-64-v2", "baseline". STRETTO_ISA (read by the caller) forces a lower
// one: select_isa returns false and changes nothing when the name is unknown or the CPU lacks it.
const char* isa();
bool select_isa(const char* name);

}  // namespace stretto::kernels
