#include "transport/shm/shm.hpp"

#include <gtest/gtest.h>
#include <string.h>

#include <algorithm>
#include <vector>

namespace stretto::transport {
namespace {

// Two ranks, three cells of 64 bytes each, 32 bytes apart.
class Shm : public ::testing::Test {
 protected:
  static constexpr size_t cell = 64, stride = 3 * cell + 32;
  std::vector<char> memory = std::vector<char>(2 * stride, '.');
  Stage stage = {memory.data(), stride, cell, 3};
  std::unique_ptr<Transport> first = make_shm(stage, 0), second = make_shm(stage, 1);
};

TEST_F(Shm, CellsStandWhereTheStageSays) {
  ASSERT_TRUE(second->put({4, 1000}, 1003, "abc", 3).ok());
  EXPECT_EQ(memcmp(memory.data() + stride + 1 * cell + 3, "abc", 3), 0);
  EXPECT_EQ(std::count(memory.begin(), memory.end(), '.'), ptrdiff_t(memory.size()) - 3);
  const void* data = nullptr;
  ASSERT_TRUE(first->get(1, {}, {4, 1000}, 1003, 3, nullptr, &data).ok());
  EXPECT_EQ(data, memory.data() + stride + cell + 3);
}

TEST_F(Shm, RoundsTakeTurnsInTheRing) {
  void* cells[3];
  for (uint32_t round = 0; round < 3; ++round) cells[round] = first->place({round, 0}, 0, cell);
  EXPECT_NE(cells[0], cells[1]);
  EXPECT_NE(cells[1], cells[2]);
  for (uint32_t round = 3; round < 30; ++round)
    EXPECT_EQ(first->place({round, round * cell}, round * cell, cell), cells[round % 3]);
}

TEST_F(Shm, NothingOutsideACellIsTouched) {
  std::vector<char> before = memory, data(2 * cell, 'x');
  const void* seen = nullptr;
  struct {
    size_t start, at, bytes;
  } wrong[] = {{0, 0, cell + 1}, {0, cell, 1}, {0, 1, cell}, {100, 99, 1}, {100, 0, 1}, {0, SIZE_MAX, 1}, {0, 1, SIZE_MAX}};
  for (auto range : wrong) {
    EXPECT_EQ(first->put({0, range.start}, range.at, data.data(), range.bytes).code, Code::invalid);
    EXPECT_EQ(first->get(1, {}, {0, range.start}, range.at, range.bytes, nullptr, &seen).code, Code::invalid);
    EXPECT_EQ(first->place({0, range.start}, range.at, range.bytes), nullptr);
  }
  EXPECT_EQ(memory, before);
}

TEST_F(Shm, PuttingWhatWasProducedInPlaceCopiesNothing) {
  char* place = static_cast<char*>(first->place({2, 0}, 8, 5));
  memcpy(place, "hello", 5);
  EXPECT_TRUE(first->put({2, 0}, 8, place, 5).ok());
  EXPECT_EQ(memcmp(memory.data() + 2 * cell + 8, "hello", 5), 0);
}

TEST_F(Shm, NeedsAStage) {
  EXPECT_EQ(make_shm({}, 0), nullptr);
  EXPECT_EQ(make_shm({memory.data(), stride, cell, 0}, 0), nullptr);
}

}  // namespace
}  // namespace stretto::transport
