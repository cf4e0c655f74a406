// The facts about types and operations: names, sizes, and which pairs MPI defines.
#include "kernels/kernels.hpp"
#include "kernels/plan.hpp"

namespace stretto::kernels {

const char* name(Type type) {
  static constexpr const char* names[type_count] = {
      "i8",      "i16",     "i32",     "i64",     "u8",      "u16",     "u32",     "u64",                       //
      "f16",     "bf16",    "f32",     "f64",     "f80",     "f128",    "c32",     "c64",     "c80",   "c128",  //
      "b8",      "l8",      "l16",     "l32",     "l64",     "byte",                                            //
      "f32_i32", "f64_i32", "i64_i32", "i32_i32", "i16_i32", "f80_i32", "f32_f32", "f64_f64", "opaque"};
  return names[int(type)];
}

const char* name(Op op) {
  static constexpr const char* names[op_count] = {"sum",  "prod", "min",  "max",    "land",   "lor", "lxor",
                                                  "band", "bor",  "bxor", "minloc", "maxloc", "user"};
  return names[int(op)];
}

size_t size_of(Type type) {
  return item_size(type);
}

bool defined(Op op, Type type) {
  return allowed(op, group_of(type));
}

}  // namespace stretto::kernels
