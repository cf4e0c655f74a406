// Many (op, type) pairs are the same arithmetic: which row of kernels serves a pair, and over how many items per element.
#pragma once
#include "kernels/kernels.hpp"

namespace stretto::kernels {

struct Plan {
  Type as;        // the type whose row holds the kernel; opaque when the pair is undefined
  uint8_t items;  // items of that type per element
};

struct LongDoubleInt {
  long double value;
  int32_t index;
};

// size_of() as a constant.
constexpr size_t item_size(Type type) {
  constexpr size_t sizes[type_count] = {1,
                                        2,
                                        4,
                                        8,
                                        1,
                                        2,
                                        4,
                                        8,  // integers
                                        2,
                                        2,
                                        4,
                                        8,
                                        sizeof(long double),
                                        16,  // f16 bf16 f32 f64 f80 f128
                                        8,
                                        16,
                                        2 * sizeof(long double),
                                        32,  // complex
                                        1,
                                        1,
                                        2,
                                        4,
                                        8,
                                        1,  // b8, Fortran logicals, byte
                                        8,
                                        16,
                                        16,
                                        8,
                                        8,
                                        sizeof(LongDoubleInt),
                                        8,
                                        16,  // pairs
                                        0};
  return sizes[int(type)];
}

enum class Group : uint8_t { integer, floating, complex, logical, byte, pair, none };

constexpr Group group_of(Type type) {
  if (type <= Type::u64) return Group::integer;
  if (type <= Type::f128) return Group::floating;
  if (type <= Type::c128) return Group::complex;
  if (type <= Type::l64) return Group::logical;
  if (type == Type::byte) return Group::byte;
  return type == Type::opaque ? Group::none : Group::pair;
}

// MPI 4.1, section 6.9.2: the groups of types each predefined operation is allowed on.
constexpr bool allowed(Op op, Group group) {
  switch (op) {
    case Op::sum:
    case Op::prod:
      return group == Group::integer || group == Group::floating || group == Group::complex;
    case Op::min:
    case Op::max:
      return group == Group::integer || group == Group::floating;
    case Op::land:
    case Op::lor:
    case Op::lxor:
      return group == Group::integer || group == Group::logical;
    case Op::band:
    case Op::bor:
    case Op::bxor:
      return group == Group::integer || group == Group::byte;
    case Op::minloc:
    case Op::maxloc:
      return group == Group::pair;
    case Op::user:
      return false;
  }
  return false;
}

constexpr Type unsigned_of(size_t size) {
  return size == 1 ? Type::u8 : size == 2 ? Type::u16 : size == 4 ? Type::u32 : Type::u64;
}

constexpr Type part_of(Type complex) {
  return complex == Type::c32 ? Type::f32 : complex == Type::c64 ? Type::f64 : complex == Type::c80 ? Type::f80 : Type::f128;
}

// E.g. sum on i16 wraps like u16; sum on c64 is a sum of twice as many f64; band on any type works on bytes.
constexpr Plan plan_of(Op op, Type type) {
  const Group group = group_of(type);
  if (!allowed(op, group)) return {Type::opaque, 0};
  switch (op) {
    case Op::band:
    case Op::bor:
    case Op::bxor:
      return {Type::u8, uint8_t(item_size(type))};
    case Op::land:
    case Op::lor:
    case Op::lxor:
      return {unsigned_of(item_size(type)), 1};
    case Op::sum:
      if (group == Group::complex) return {part_of(type), 2};
      [[fallthrough]];
    case Op::prod:
      return {group == Group::integer ? unsigned_of(item_size(type)) : type, 1};
    default:
      return {type, 1};
  }
}

}  // namespace stretto::kernels
