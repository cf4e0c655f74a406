// Tests that run once for every instruction set; those the CPU or the build lacks are reported as skipped.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "kernels/kernels.hpp"

namespace stretto::kernels::test {

class EveryIsa : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!select_isa(GetParam())) GTEST_SKIP() << GetParam() << " is not to be had here";
  }
  void TearDown() override { select_isa(best_.c_str()); }

 private:
  std::string best_ = isa();
};

inline std::string isa_test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

#define STRETTO_FOR_EVERY_ISA(suite) \
  INSTANTIATE_TEST_SUITE_P(, suite, testing::Values("baseline", "x86-64-v2", "x86-64-v3", "x86-64-v4"), isa_test_name)

}  // namespace stretto::kernels::test
