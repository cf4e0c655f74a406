#include "shim/named_types.hpp"

namespace stretto::shim {

namespace {

using kernels::Type;

// The type for 1, 2, 4 or 8 bytes.
Type by_size(size_t size, Type one, Type two, Type four, Type eight) {
  switch (size) {
    case 1:
      return one;
    case 2:
      return two;
    case 4:
      return four;
    case 8:
      return eight;
    default:
      return Type::opaque;
  }
}

Type pair_type(Family family, size_t size) {
  switch (family) {
    case Family::float_int:
      return Type::f32_i32;
    case Family::double_int:
      return Type::f64_i32;
    case Family::long_int:
      return Type::i64_i32;
    case Family::short_int:
      return Type::i16_i32;
    case Family::long_double_int:
      return Type::f80_i32;
    case Family::int_int:
      return size == 8 ? Type::i32_i32 : Type::opaque;
    case Family::real_real:
      return size == 8 ? Type::f32_f32 : Type::opaque;
    case Family::double_double:
      return size == 16 ? Type::f64_f64 : Type::opaque;
    default:
      return Type::opaque;
  }
}

}  // namespace

Type kernel_type(Family family, size_t size) {
  switch (family) {
    case Family::signed_integer:
      return by_size(size, Type::i8, Type::i16, Type::i32, Type::i64);
    case Family::unsigned_integer:
      return by_size(size, Type::u8, Type::u16, Type::u32, Type::u64);
    case Family::real:
      return by_size(size, Type::opaque, Type::f16, Type::f32, Type::f64);
    case Family::real16:
      return size == 16 ? Type::f128 : Type::opaque;
    case Family::bfloat:
      return Type::bf16;
    case Family::long_double:
      return Type::f80;
    case Family::complex:
      return size == 8 ? Type::c32 : size == 16 ? Type::c64 : size == 32 ? Type::c128 : Type::opaque;
    case Family::long_double_complex:
      return Type::c80;
    case Family::boolean:
      return size == 1 ? Type::b8 : Type::opaque;
    case Family::logical:
      return by_size(size, Type::l8, Type::l16, Type::l32, Type::l64);
    case Family::byte:
      return Type::byte;
    case Family::moved:
      return Type::opaque;
    default:
      return pair_type(family, size);
  }
}

}  // namespace stretto::shim
