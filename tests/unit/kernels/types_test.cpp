// What MPI 4.1, section 6.9.2, allows, written out; and the sizes of C types.
#include <gtest/gtest.h>

#include <complex>
#include <set>
#include <string>

#include "isas.hpp"

namespace stretto::kernels::test {
namespace {

const std::set<std::string> integers = {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"};
const std::set<std::string> floats = {"f16", "bf16", "f32", "f64", "f80", "f128"};
const std::set<std::string> complexes = {"c32", "c64", "c80", "c128"};
const std::set<std::string> logicals = {"b8", "l8", "l16", "l32", "l64"};
const std::set<std::string> pairs = {"f32_i32", "f64_i32", "i64_i32", "i32_i32", "i16_i32", "f80_i32", "f32_f32", "f64_f64"};

std::set<std::string> together(std::initializer_list<std::set<std::string>> sets) {
  std::set<std::string> all;
  for (const std::set<std::string>& set : sets) all.insert(set.begin(), set.end());
  return all;
}

std::set<std::string> types_of(Op op) {
  std::set<std::string> result;
  for (int type = 0; type < type_count; ++type)
    if (defined(op, Type(type))) result.insert(name(Type(type)));
  return result;
}

TEST(Types, OperationsAreDefinedAsInTheStandard) {
  EXPECT_EQ(types_of(Op::sum), together({integers, floats, complexes}));
  EXPECT_EQ(types_of(Op::prod), together({integers, floats, complexes}));
  EXPECT_EQ(types_of(Op::min), together({integers, floats}));
  EXPECT_EQ(types_of(Op::max), together({integers, floats}));
  for (Op op : {Op::land, Op::lor, Op::lxor}) EXPECT_EQ(types_of(op), together({integers, logicals})) << name(op);
  for (Op op : {Op::band, Op::bor, Op::bxor}) EXPECT_EQ(types_of(op), together({integers, {"byte"}})) << name(op);
  EXPECT_EQ(types_of(Op::minloc), pairs);
  EXPECT_EQ(types_of(Op::maxloc), pairs);
  EXPECT_EQ(types_of(Op::user), std::set<std::string>());
}

template <class V, class I>
struct CPair {
  V value;
  I index;
};

TEST(Types, HaveTheSizesOfC) {
  EXPECT_EQ(size_of(Type::i8), 1u);
  EXPECT_EQ(size_of(Type::u16), 2u);
  EXPECT_EQ(size_of(Type::f16), 2u);
  EXPECT_EQ(size_of(Type::bf16), 2u);
  EXPECT_EQ(size_of(Type::f32), 4u);
  EXPECT_EQ(size_of(Type::i64), 8u);
  EXPECT_EQ(size_of(Type::f80), sizeof(long double));
  EXPECT_EQ(size_of(Type::f128), 16u);
  EXPECT_EQ(size_of(Type::c32), sizeof(std::complex<float>));
  EXPECT_EQ(size_of(Type::c64), sizeof(std::complex<double>));
  EXPECT_EQ(size_of(Type::c80), sizeof(std::complex<long double>));
  EXPECT_EQ(size_of(Type::c128), 32u);
  EXPECT_EQ(size_of(Type::b8), sizeof(bool));
  EXPECT_EQ(size_of(Type::l64), 8u);
  EXPECT_EQ(size_of(Type::f32_i32), sizeof(CPair<float, int>));
  EXPECT_EQ(size_of(Type::f64_i32), sizeof(CPair<double, int>));
  EXPECT_EQ(size_of(Type::i64_i32), sizeof(CPair<long, int>));
  EXPECT_EQ(size_of(Type::i32_i32), sizeof(CPair<int, int>));
  EXPECT_EQ(size_of(Type::i16_i32), sizeof(CPair<short, int>));
  EXPECT_EQ(size_of(Type::f80_i32), sizeof(CPair<long double, int>));
  EXPECT_EQ(size_of(Type::f32_f32), sizeof(CPair<float, float>));
  EXPECT_EQ(size_of(Type::f64_f64), sizeof(CPair<double, double>));
  EXPECT_EQ(size_of(Type::opaque), 0u);
}

TEST(Types, NamesAreDistinct) {
  std::set<std::string> types, ops;
  for (int type = 0; type < type_count; ++type) types.insert(name(Type(type)));
  for (int op = 0; op < op_count; ++op) ops.insert(name(Op(op)));
  EXPECT_EQ(types.size(), size_t(type_count));
  EXPECT_EQ(ops.size(), size_t(op_count));
}

TEST(InstructionSets, TheBaselineIsAlwaysThere) {
  const std::string best = isa();
  EXPECT_TRUE(select_isa("baseline"));
  EXPECT_STREQ(isa(), "baseline");
  EXPECT_TRUE(select_isa(best.c_str()));
  EXPECT_EQ(isa(), best);
}

TEST(InstructionSets, AnUnknownNameChangesNothing) {
  const std::string before = isa();
  EXPECT_FALSE(select_isa("x86-64-v99"));
  EXPECT_FALSE(select_isa(""));
  EXPECT_EQ(isa(), before);
}

}  // namespace
}  // namespace stretto::kernels::test
