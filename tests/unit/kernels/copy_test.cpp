#include <cstring>
#include <vector>

#include "isas.hpp"

namespace stretto::kernels::test {
namespace {

class Copy : public EveryIsa {};
STRETTO_FOR_EVERY_ISA(Copy);

constexpr size_t margin = 64;

// Copies `bytes` bytes between the given offsets from a line and compares the whole target, its margins included.
void check(size_t bytes, size_t to_offset, size_t from_offset, Store store) {
  alignas(64) static char from[4096];
  alignas(64) static char to[4096];
  static char expected[4096];
  const size_t room = bytes + 4 * margin;
  for (size_t i = 0; i < room; ++i) from[i] = char(i * 7 + bytes);
  memset(to, 0x5a, room);
  memset(expected, 0x5a, room);
  for (size_t i = 0; i < bytes; ++i) expected[margin + to_offset + i] = from[from_offset + i];
  copy(to + margin + to_offset, from + from_offset, bytes, store);
  ASSERT_EQ(memcmp(to, expected, room), 0) << bytes << " bytes, to " << to_offset << ", from " << from_offset;
}

TEST_P(Copy, AllSmallSizesAndAlignments) {
  for (Store store : {Store::cached, Store::stream})
    for (size_t bytes = 0; bytes < 260; ++bytes)
      for (size_t to_offset = 0; to_offset < 64; to_offset += bytes < 140 ? 1 : 9)
        for (size_t from_offset : {0, 1, 8, 31, 63}) {
          check(bytes, to_offset, from_offset, store);
          if (HasFatalFailure()) return;
        }
}

TEST_P(Copy, LargeAndOdd) {
  constexpr size_t bytes = (3 << 20) + 77;
  std::vector<char> from(bytes + 3), to(bytes + 5);
  for (size_t i = 0; i < from.size(); ++i) from[i] = char(i * 31 + (i >> 12));
  for (Store store : {Store::cached, Store::stream}) {
    std::fill(to.begin(), to.end(), 0);
    copy(to.data() + 5, from.data() + 3, bytes, store);
    EXPECT_EQ(memcmp(to.data() + 5, from.data() + 3, bytes), 0);
    EXPECT_EQ(std::string(to.data(), 5), std::string(5, '\0'));
  }
}

TEST_P(Copy, NothingFromNowhere) {
  copy(nullptr, nullptr, 0, Store::cached);
  copy(nullptr, nullptr, 0, Store::stream);
}

}  // namespace
}  // namespace stretto::kernels::test
