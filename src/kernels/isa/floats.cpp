// Kernels of float, double and their complex numbers.
#include "kernels/isa/rows.hpp"

namespace stretto::kernels::KERNELS_ISA {

constinit const Row f32_row = floating_row<float>();
constinit const Row f64_row = floating_row<double>();
constinit const Row c32_row = complex_row<float>();
constinit const Row c64_row = complex_row<double>();

}  // namespace stretto::kernels::KERNELS_ISA
