// Stretto and MPI in turn.
#include "engine/turns.hpp"

#include <gtest/gtest.h>

namespace stretto::engine {
namespace {

TEST(Turns, AreTakenInTheOrderABBA) {
  Turns turns(3, 2);
  ASSERT_TRUE(turns.are_taken());
  const bool of_mpi[] = {false, true, true, false};
  for (int call = 0; call < 3 * 16; ++call) EXPECT_EQ(turns.is_of_mpi(), of_mpi[call / 3 % 4]) << "call " << call;
}

TEST(Turns, AreNotTakenUnlessAskedFor) {
  EXPECT_FALSE(Turns().are_taken());
  EXPECT_FALSE(Turns(0, 4).are_taken());
}

}  // namespace
}  // namespace stretto::engine
