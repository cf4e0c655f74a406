// Exchanges: where they stand in the ring of their writer, and how far ahead of its readers it goes.
#include "collective/patterns/exchange.hpp"

#include <cstring>
#include <vector>

#include "team_of_threads.hpp"

namespace stretto::collective {
namespace {

constexpr uint64_t exchanges = slot_ring_grows_at + 8 * slot_ring;

TEST(Exchanges, NoneStandsWhereAnotherMayBeRead) {
  std::vector<uint64_t> newest(slot_ring);  // by slot; 0: none
  for (uint64_t number = 1; number <= exchanges; ++number) {
    uint64_t& former = newest[slot_of(number)];
    if (former != 0) {
      EXPECT_LE(former, before_slot_of(number)) << number;
    }
    former = number;
  }
  for (uint64_t number : newest) EXPECT_GT(number, exchanges - slot_ring) << "a slot that is left out";
}

TEST(Exchanges, FewOfThemTouchFewSlots) {
  for (uint64_t number = 1; number < slot_ring_grows_at; ++number) EXPECT_LT(slot_of(number), first_slot_ring) << number;
}

// A board that was used before holds numbers in the slots that are not used at first: their rank clears them in time.
TEST(Exchanges, NothingIsFoundThatAnEarlierUserLeft) {
  TeamOfThreads threads(2);
  Team &writer = threads.team(0), &reader = threads.team(1);
  for (uint32_t i = first_slot_ring; i < slot_ring; ++i) writer.mine().slots[i].ready.value = UINT64_MAX / 4;
  for (uint64_t number = 1; number <= exchanges; ++number) {
    Exchange given(writer), taken(reader);
    ASSERT_FALSE(taken.posted(0)) << number;
    void* payload;
    ASSERT_TRUE(given.claim(&payload).ok());
    given.post(0);
    ASSERT_TRUE(taken.posted(0)) << number;
    taken.finish();
  }
}

// One thread writes as many as it may without waiting, and only then reads one: payloads of one line and of all lines.
TEST(Exchanges, WritersGoAheadAsFarAsTheRingIsLong) {
  for (const uint64_t first : {uint64_t(0), uint64_t(1) << 32, UINT64_MAX - exchanges / 2}) {
    TeamOptions options;
    options.first_number = first;
    TeamOfThreads threads(2, options);
    Team &writer = threads.team(0), &reader = threads.team(1);
    uint64_t written = 0;
    size_t furthest = 0;
    for (uint64_t read = 0; read < exchanges; ++read) {
      while (written < exchanges && reached(first + read, before_slot_of(first + written + 1))) {
        Exchange exchange(writer);
        void* payload;
        ASSERT_TRUE(exchange.claim(&payload).ok());
        const size_t bytes = ++written % 3 != 0 ? 8 : slot_payload;
        std::memset(payload, int(written % 251), bytes);
        exchange.post(bytes);
      }
      furthest = std::max<size_t>(furthest, written - read);
      Exchange exchange(reader);
      const void* payload;
      ASSERT_TRUE(exchange.read(0, &payload).ok());
      const auto* found = static_cast<const unsigned char*>(payload);
      const size_t last = (read + 1) % 3 != 0 ? 7 : slot_payload - 1;
      EXPECT_EQ(found[0], (read + 1) % 251) << read;
      EXPECT_EQ(found[last], (read + 1) % 251) << read;
      exchange.finish();
    }
    EXPECT_EQ(furthest, slot_ring);
  }
}

}  // namespace
}  // namespace stretto::collective
