// One instruction set as dispatch.cpp sees it. The build compiles this folder once for each.
#include "kernels/isa/rows.hpp"
#include "kernels/isa/sets.hpp"

namespace stretto::kernels::KERNELS_ISA {

constexpr InstructionSet make(const char* name, bool (*available)()) {
  InstructionSet made = {name, available, {}, stream};
  const auto put = [&made](Type type, const Row& row) { made.rows[int(type)] = &row; };
  put(Type::i8, i8_row), put(Type::i16, i16_row), put(Type::i32, i32_row), put(Type::i64, i64_row);
  put(Type::u8, u8_row), put(Type::u16, u16_row), put(Type::u32, u32_row), put(Type::u64, u64_row);
  put(Type::f16, f16_row), put(Type::bf16, bf16_row), put(Type::f32, f32_row), put(Type::f64, f64_row);
  put(Type::f80, f80_row), put(Type::f128, f128_row);
  put(Type::c32, c32_row), put(Type::c64, c64_row), put(Type::c80, c80_row), put(Type::c128, c128_row);
  put(Type::f32_i32, f32_i32_row), put(Type::f64_i32, f64_i32_row), put(Type::f80_i32, f80_i32_row);
  put(Type::i64_i32, i64_i32_row), put(Type::i32_i32, i32_i32_row), put(Type::i16_i32, i16_i32_row);
  put(Type::f32_f32, f32_f32_row), put(Type::f64_f64, f64_f64_row);
  return made;
}

constinit const InstructionSet set = make(KERNELS_ISA_NAME, cpu_has);

}  // namespace stretto::kernels::KERNELS_ISA
