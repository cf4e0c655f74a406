// The rows that every instruction set provides, defined by the other sources of this folder.
#pragma once
#include "kernels/loops.hpp"

namespace stretto::kernels::KERNELS_ISA {

extern const Row i8_row, i16_row, i32_row, i64_row, u8_row, u16_row, u32_row, u64_row;                       // integers.cpp
extern const Row f32_row, f64_row, c32_row, c64_row;                                                         // floats.cpp
extern const Row f16_row, bf16_row;                                                                          // halves.cpp
extern const Row f32_i32_row, f64_i32_row, i64_i32_row, i32_i32_row, i16_i32_row, f32_f32_row, f64_f64_row;  // pairs.cpp

void stream(void* to, const void* from, size_t bytes);  // stream.cpp

}  // namespace stretto::kernels::KERNELS_ISA
