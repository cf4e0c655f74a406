// The record against what happens to processes: a kill, a fork, a folder that cannot be written, a full disk.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

#include "unit/trace/record_reader.hpp"

namespace stretto::trace {
namespace {

using testing::Folder;
using testing::in_child;
using testing::read_file;
using testing::Reader;
using testing::tables;

TEST(RecorderProcess, LeavesItsCountsWhenKilled) {
  Folder folder;
  const int status = in_child([&] {
    if (!open_record(folder.path.c_str(), tables).ok()) return 1;
    for (int i = 0; i < 12345; ++i) count_call(2, 1, 8);
    kill(getpid(), SIGKILL);
    return 0;
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  const Reader record(read_file(folder.files().at(0)));
  EXPECT_EQ(record.total(record.calls(2)), 12345u);
  EXPECT_EQ(record.header.stage, uint32_t(Stage::loaded));
}

// The child of a fork counts, and neither its counts nor its header reach the parent's file.
TEST(RecorderProcess, ChildOfForkCountsForItself) {
  Folder folder;
  ASSERT_EQ(0, in_child([&] {
              if (!open_record(folder.path.c_str(), tables).ok()) return 1;
              count_call(0, 1, 0);
              const int parent = header()->pid;
              const int child = in_child([&] {
                after_fork_child();
                for (int i = 0; i < 100; ++i) count_call(0, 1, 0);
                std::thread([] { count_call(1, 1, 0); }).join();
                header()->world_rank = 77;
                return header()->pid == getpid() && header()->functions == 3 ? 0 : 1;
              });
              count_call(0, 1, 0);
              return child == 0 && header()->pid == parent ? 0 : 2;
            }));
  ASSERT_EQ(folder.files().size(), 1u);
  const Reader record(read_file(folder.files().at(0)));
  EXPECT_EQ(record.total(record.calls(0)), 2u);
  EXPECT_EQ(record.total(record.calls(1)), 0u);
  EXPECT_EQ(record.header.world_rank, -1);
}

TEST(RecorderProcess, CountsInMemoryWithoutAFolder) {
  EXPECT_EQ(0, in_child([] {
              if (!open_record(nullptr, tables).ok()) return 1;
              count_call(0, 1, 0);
              return header()->blocks_used == 1 ? 0 : 2;
            }));
}

TEST(RecorderProcess, SaysWhyAndGoesOnWhenTheFolderIsUnusable) {
  EXPECT_EQ(0, in_child([] {
              const Status status = open_record("/nonexistent/folder", tables);
              if (status.code != Code::refused || status.detail != ENOENT) return 1;
              count_call(0, 1, 0);
              return header()->functions == 3 && header()->blocks_used == 1 ? 0 : 2;
            }));
}

// RLIMIT_FSIZE stands for a full disk: the file cannot be allocated, so none is left, and nothing dies of SIGBUS.
TEST(RecorderProcess, LeavesNoFileWhenItCannotBeAllocated) {
  Folder folder;
  EXPECT_EQ(0, in_child([&] {
              signal(SIGXFSZ, SIG_IGN);
              const rlimit small{4096, 4096};
              setrlimit(RLIMIT_FSIZE, &small);
              if (open_record(folder.path.c_str(), tables).code != Code::no_memory) return 1;
              count_call(0, 1, 0);
              return header()->blocks_used == 1 ? 0 : 2;
            }));
  EXPECT_TRUE(folder.files().empty());
}

// Hosts that share a folder may have equal process ids.
TEST(RecorderProcess, NeverWritesOverAnotherRecord) {
  Folder folder;
  ASSERT_EQ(0, in_child([&] {
              const std::string taken = folder.path + "/rank-" + std::to_string(getpid()) + ".record";
              std::ofstream(taken) << "another host's";
              return open_record(folder.path.c_str(), tables).ok() ? 0 : 1;
            }));
  std::vector<std::string> files = folder.files();
  ASSERT_EQ(files.size(), 2u);
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  EXPECT_EQ(read_file(files[0]).size(), strlen("another host's"));
  EXPECT_NE(files[1].find("-1.record"), std::string::npos);
}

}  // namespace
}  // namespace stretto::trace
