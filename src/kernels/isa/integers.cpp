// Integer kernels. Sums, products and logical operations do not depend on the sign and stand in the unsigned rows;
// bitwise operations do not depend on the width and stand in the u8 row (plan.hpp sends each pair to its row).
#include "kernels/isa/rows.hpp"

namespace stretto::kernels::KERNELS_ISA {

template <class T>
constexpr Row ordered_row() {
  Row row;
  row[Op::min] = kernel<Min, T>();
  row[Op::max] = kernel<Max, T>();
  return row;
}

template <class T>
constexpr Row unsigned_row() {
  Row row = ordered_row<T>();
  row[Op::sum] = kernel<Sum, T>();
  row[Op::prod] = kernel<Prod, T>();
  row[Op::land] = kernel<Land, T>();
  row[Op::lor] = kernel<Lor, T>();
  row[Op::lxor] = kernel<Lxor, T>();
  return row;
}

constexpr Row byte_row() {
  Row row = unsigned_row<uint8_t>();
  row[Op::band] = kernel<Band, uint8_t>();
  row[Op::bor] = kernel<Bor, uint8_t>();
  row[Op::bxor] = kernel<Bxor, uint8_t>();
  return row;
}

constinit const Row i8_row = ordered_row<int8_t>();
constinit const Row i16_row = ordered_row<int16_t>();
constinit const Row i32_row = ordered_row<int32_t>();
constinit const Row i64_row = ordered_row<int64_t>();
constinit const Row u8_row = byte_row();
constinit const Row u16_row = unsigned_row<uint16_t>();
constinit const Row u32_row = unsigned_row<uint32_t>();
constinit const Row u64_row = unsigned_row<uint64_t>();

}  // namespace stretto::kernels::KERNELS_ISA
