// The layout of a record is frozen: today's code writes, byte for byte, the example kept in tests/golden. A change of
// layout needs a new record_version and a new example; STRETTO_WRITE_GOLDEN=1 writes it.
#include <gtest/gtest.h>

#include "unit/trace/record_reader.hpp"

namespace stretto::trace {
namespace {

using testing::Folder;
using testing::in_child;
using testing::read_file;
using testing::tables;

// What differs from run to run is replaced by fixed values.
void fix_header(Header* h) {
  h->stage = uint32_t(Stage::finalized);
  h->world_rank = 1;
  h->world_size = 4;
  h->pid = 4242;
  h->start_ticks = 1000000;
  h->start_ns = 500000;
  h->last_ticks = 21000000;
  h->last_ns = 10500000;
  h->init_ns = 700000;
  h->finalize_ns = 10500000;
  h->accelerating = 1;
  strcpy(h->mpi_library, "Example MPI 1.0");
  strcpy(h->host, "node1");
  strcpy(h->verdict, "accelerating: 4 ranks on this node");
}

void fix_counts() {
  count_call(0, 2000, 0);
  for (int i = 0; i < 3; ++i) count_call(2, 5000, 1024);
  count_accelerated(3, 0, 4000, 1024);
  count_accelerated(3, 1, 4500, 1024);
  count_declined(3, 1, 5000, 1024);
  *arrival_cell(4096, 1, 4) = {4096, 1, 4, 10, 50000, 9000, 20000, 3, 6};
  for (uint32_t i = 0; i < 5; ++i) tell_turn(&tables, i, 11, 4, {60 + i, 20 - i, 1000 * i});
}

TEST(GoldenRecord, CurrentCodeWritesVersion4) {
  Folder folder;
  ASSERT_EQ(0, in_child([&] {
              if (!open_record(folder.path.c_str(), tables).ok()) return 1;
              fix_counts();
              fix_header(header());
              return 0;
            }));
  const std::vector<char> written = read_file(folder.files().at(0));
  if (getenv("STRETTO_WRITE_GOLDEN"))
    std::ofstream(GOLDEN_RECORD, std::ios::binary).write(written.data(), std::streamsize(written.size()));
  const std::vector<char> golden = read_file(GOLDEN_RECORD);
  ASSERT_EQ(written.size(), golden.size());
  EXPECT_EQ(0, memcmp(written.data(), golden.data(), golden.size()));
}

}  // namespace
}  // namespace stretto::trace
