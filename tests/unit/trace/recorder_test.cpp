// What is counted is what a reader of the file finds.
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "trace/layout.hpp"
#include "unit/trace/record_reader.hpp"

namespace stretto::trace {
namespace {

using testing::Folder;
using testing::in_child;
using testing::read_file;
using testing::Reader;
using testing::tables;

Reader only_record(const Folder& folder) {
  EXPECT_EQ(folder.files().size(), 1u);
  return Reader(read_file(folder.files().at(0)));
}

TEST(Recorder, WritesHeaderNamesAndCounts) {
  Folder folder;
  ASSERT_EQ(0, in_child([&] {
              if (!open_record(folder.path.c_str(), tables).ok()) return 1;
              header()->world_rank = 3;
              count_call(0, 100, 0);
              count_call(2, 50, 4096);
              count_call(2, 70, 4096);
              count_accelerated(3, 1, 40, 4096);
              count_declined(3, 1, 60, 8);
              count_declined(0, 0, 5, 0);
              calibrate();
              return 0;
            }));
  const Reader record = only_record(folder);
  EXPECT_EQ(0, memcmp(record.header.magic, "STRETTOR", 8));
  EXPECT_EQ(record.header.version, 4u);
  EXPECT_EQ(record.header.header_bytes, 488u);
  EXPECT_EQ(record.header.world_rank, 3);
  EXPECT_EQ(record.header.blocks_used, 1u);
  EXPECT_GT(record.header.last_ns, record.header.start_ns);
  EXPECT_EQ(record.size(), record.turns() + 16 + 16 * 512);
  EXPECT_EQ(record.name(0), "MPI_Send");
  EXPECT_EQ(record.name(4), "size");
  EXPECT_EQ(record.name(6), "tree");
  EXPECT_EQ(record.total(record.calls(0)), 1u);
  EXPECT_EQ(record.total(record.calls(1)), 0u);
  EXPECT_EQ(record.total(record.calls(2)), 2u);
  EXPECT_EQ(record.total(record.ticks(2)), 120u);
  EXPECT_EQ(record.total(record.bytes(2)), 8192u);
  const uint64_t allreduce[] = {1, 4096, 40, 1, 8, 60};
  for (uint32_t field = 0; field < 6; ++field) EXPECT_EQ(record.total(record.kind(3, field)), allreduce[field]);
  EXPECT_EQ(record.total(record.decline(3, 1)), 1u);
  EXPECT_EQ(record.total(record.decline(0, 0)), 1u);
  EXPECT_EQ(record.total(record.ran(3, 1)), 1u);
  EXPECT_EQ(record.total(record.ran(3, 0)), 0u);
}

TEST(Recorder, GivesEachCommunicatorACellUntilThereIsNoneLeft) {
  Folder folder;
  ASSERT_EQ(0, in_child([&] {
              if (arrival_cell(4096, 0, 2) != nullptr) return 1;  // no record yet
              if (!open_record(folder.path.c_str(), tables).ok()) return 2;
              ArrivalCell* first = arrival_cell(4096, 0, 2);
              if (first == nullptr || arrival_cell(4096, 0, 2) != first) return 3;
              for (uint32_t i = 1; i < arrival_cells; ++i) {
                ArrivalCell* cell = arrival_cell(4096, i, 2 + i);
                if (cell == nullptr || cell == first) return 4;
              }
              first->calls = 7;
              return arrival_cell(8192, 0, 2) == nullptr && arrival_cell(4096, 0, 2) == first ? 0 : 5;
            }));
  const Reader record = only_record(folder);
  EXPECT_EQ(record.word_at(record.arrivals()), 4096u);
  EXPECT_EQ(record.word_at(record.arrivals() + 16), 7u);
}

TEST(Recorder, KeepsTheTurnsOfOneUntilAnotherHasHadMore) {
  Folder folder;
  ASSERT_EQ(0, in_child([&] {
              const int first = 0, second = 0;
              tell_turn(&first, 0, 11, 2, {1, 1, 1});  // no record yet
              if (!open_record(folder.path.c_str(), tables).ok()) return 1;
              for (uint32_t i = 0; i < 5; ++i) tell_turn(&first, i, 11, 2, {100 + i, i, i});
              for (uint32_t i = 0; i < 8 + kept_turns; ++i) tell_turn(&second, i, 7, 3, {200 + i, i, uint64_t(i) << 32});
              tell_turn(&first, 5, 11, 2, {105, 5, 5});
              tell_turn(&second, 0, 7, 3, {300, 0, 0});  // another that stands where the second stood
              return 0;
            }));
  const Reader record = only_record(folder);
  EXPECT_EQ(record.word_at(record.turns()), 7u | uint64_t(3) << 32);
  EXPECT_EQ(record.word_at(record.turns() + 8), kept_turns);  // from the ninth on, as the first has had five
  for (uint64_t i = 0; i < kept_turns; ++i) {
    EXPECT_EQ(record.word_at(record.turns() + 16 + 16 * i), (208 + i) | (8 + i) << 32);
    EXPECT_EQ(record.word_at(record.turns() + 24 + 16 * i), (8 + i) << 32);
  }
}

TEST(Recorder, AddsUpTheCallsOfAllThreads) {
  ASSERT_EQ(0, in_child([&] {
              if (totals().ticks != 0) return 1;  // no record yet
              if (!open_record(nullptr, tables).ok()) return 2;
              count_accelerated_call(1, 3, 1, 40, 4096);
              std::thread([] { count_declined_call(2, 0, 1, 60, 8); }).join();
              count_call(0, 1000, 0);
              return totals().ticks == 1100 && totals().bytes == 4104 ? 0 : 3;
            }));
}

TEST(Recorder, KeepsEveryCountOfMoreThreadsThanBlocks) {
  constexpr int threads = 2 * thread_blocks;
  constexpr int calls = 2000;
  Folder folder;
  ASSERT_EQ(0, in_child([&] {
              if (!open_record(folder.path.c_str(), tables).ok()) return 1;
              std::latch start(threads);
              std::vector<std::thread> all;
              for (int t = 0; t < threads; ++t) {
                all.emplace_back([&] {
                  count_call(1, 1, 1);  // has its block before the others end
                  start.arrive_and_wait();
                  for (int i = 1; i < calls; ++i) count_call(1, 1, 1), count_passed(0, i % 2 ? 4 : 0);
                });
              }
              for (std::thread& thread : all) thread.join();
              return 0;
            }));
  const Reader record = only_record(folder);
  EXPECT_EQ(record.total(record.calls(1)), uint64_t(threads) * calls);
  EXPECT_EQ(record.total(record.bytes(1)), uint64_t(threads) * calls);
  EXPECT_EQ(record.total(record.calls(0)), uint64_t(threads) * (calls - 1));
  EXPECT_EQ(record.total(record.ticks(0)), uint64_t(threads) * calls / 2 * 4);
  EXPECT_EQ(record.word(0, record.calls(1)), uint64_t(calls));
  EXPECT_EQ(record.word(thread_blocks - 1, record.calls(1)), uint64_t(threads - int(thread_blocks) + 1) * calls);
  EXPECT_EQ(record.header.blocks_used, thread_blocks);
}

TEST(Recorder, ThreadsThatComeAndGoShareFewBlocks) {
  Folder folder;
  ASSERT_EQ(0, in_child([&] {
              if (!open_record(folder.path.c_str(), tables).ok()) return 1;
              for (int i = 0; i < 500; ++i) std::thread([] { count_call(0, 1, 0); }).join();
              return 0;
            }));
  const Reader record = only_record(folder);
  EXPECT_EQ(record.total(record.calls(0)), 500u);
  EXPECT_LE(record.header.blocks_used, 2u);
}

TEST(Recorder, CountsBeforeOpeningAreHarmless) {
  Folder folder;
  ASSERT_EQ(0, in_child([&] {
              count_call(0, 1, 1);
              count_declined(1, 0, 1, 1);
              header()->world_rank = 1;
              if (!open_record(folder.path.c_str(), tables).ok()) return 1;
              count_call(0, 1, 1);
              return 0;
            }));
  const Reader record = only_record(folder);
  EXPECT_EQ(record.total(record.calls(0)), 1u);
  EXPECT_EQ(record.header.world_rank, -1);
}

TEST(Recorder, IgnoresNumbersBeyondItsTables) {
  Folder folder;
  ASSERT_EQ(0, in_child([&] {
              if (!open_record(folder.path.c_str(), tables).ok()) return 1;
              count_call(3, 1, 1);
              count_accelerated(32, 0, 1, 1);
              count_declined(1, 2, 1, 1);
              return 0;
            }));
  const Reader record = only_record(folder);
  const uint32_t words = 3 * 3 + 32 * (6 + 2 + 2);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < words; ++i) sum += record.total(i);
  EXPECT_EQ(sum, 3u);  // the decline of kind 1: one call, one byte, one tick, no reason
}

TEST(Recorder, OpensOnce) {
  Folder folder;
  EXPECT_EQ(0, in_child([&] {
              if (!open_record(folder.path.c_str(), tables).ok()) return 1;
              return open_record(folder.path.c_str(), tables).code == Code::invalid ? 0 : 2;
            }));
  EXPECT_EQ(folder.files().size(), 1u);
}

}  // namespace
}  // namespace stretto::trace
