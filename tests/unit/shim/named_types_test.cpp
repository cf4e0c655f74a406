// The meaning of MPI's predefined types.
#include "shim/named_types.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace stretto::shim {
namespace {

using kernels::Type;

TEST(NamedTypes, EveryNameOnce) {
  std::set<std::string> names;
  for (const NamedType& named : named_types) EXPECT_TRUE(names.insert(named.name).second) << named.name;
  for (const NamedOp& named : named_ops) EXPECT_TRUE(names.insert(named.name).second) << named.name;
}

TEST(NamedTypes, SizeDecidesWithinAFamily) {
  EXPECT_EQ(kernel_type(Family::signed_integer, 4), Type::i32);
  EXPECT_EQ(kernel_type(Family::signed_integer, 8), Type::i64);
  EXPECT_EQ(kernel_type(Family::unsigned_integer, 1), Type::u8);
  EXPECT_EQ(kernel_type(Family::real, 2), Type::f16);
  EXPECT_EQ(kernel_type(Family::real, 8), Type::f64);
  EXPECT_EQ(kernel_type(Family::complex, 16), Type::c64);
  EXPECT_EQ(kernel_type(Family::complex, 32), Type::c128);
  EXPECT_EQ(kernel_type(Family::logical, 4), Type::l32);
  EXPECT_EQ(kernel_type(Family::long_double, sizeof(long double)), Type::f80);
}

// 16-byte integers, INTEGER pairs of eight bytes each: moved, never computed with.
TEST(NamedTypes, WithoutAKernelTypeBytesAreOnlyMoved) {
  EXPECT_EQ(kernel_type(Family::signed_integer, 16), Type::opaque);
  EXPECT_EQ(kernel_type(Family::complex, 4), Type::opaque);
  EXPECT_EQ(kernel_type(Family::logical, 16), Type::opaque);
  EXPECT_EQ(kernel_type(Family::int_int, 16), Type::opaque);
  EXPECT_EQ(kernel_type(Family::moved, 1), Type::opaque);
}

// Where the size settles the matter, the kernels agree on it.
TEST(NamedTypes, KernelsHaveTheSameSize) {
  const Family families[] = {Family::signed_integer, Family::unsigned_integer, Family::real,    Family::real16,
                             Family::complex,        Family::logical,          Family::boolean, Family::int_int,
                             Family::real_real,      Family::double_double};
  for (const Family family : families) {
    for (const size_t size : {1, 2, 4, 8, 16}) {
      const Type type = kernel_type(family, size);
      if (type != Type::opaque) {
        EXPECT_EQ(kernels::size_of(type), size) << kernels::name(type);
      }
    }
  }
}

}  // namespace
}  // namespace stretto::shim
