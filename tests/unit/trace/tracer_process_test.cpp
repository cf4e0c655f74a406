// The trace against what happens to processes: threads, a kill, a fork, a limit, a full disk.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <fstream>
#include <latch>
#include <thread>

#include "unit/trace/trace_reader.hpp"

namespace stretto::trace {
namespace {

using testing::allreduce;
using testing::call;
using testing::Folder;
using testing::in_child;
using testing::options_in;
using testing::send;
using testing::tables;
using testing::TraceReader;

// What the child wrote to standard error is kept in `path`.
void redirect_errors(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(fd, STDERR_FILENO);
  close(fd);
}

size_t lines_of(const std::string& path) {
  std::ifstream file(path);
  size_t lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  return lines;
}

TEST(TracerProcess, ThreadsCountExactly) {
  constexpr uint32_t threads = 8, calls = 5000;
  Folder folder;
  ASSERT_EQ(0, in_child([&] {
              if (!open_trace(options_in(folder, Mode::full), tables).ok()) return 1;
              std::latch start(threads);
              std::vector<std::thread> all;
              for (uint32_t t = 0; t < threads; ++t) {
                all.emplace_back([&, t] {
                  for (uint32_t i = 0; i < calls; ++i) {
                    if (i == 1) start.arrive_and_wait();  // each has its lane
                    call(allreduce(i, 8 << (i % 10), uint16_t(t)), i, 3);
                    call(send(int32_t(i % 7), 10), i, 1);
                    if (i % 1000 == 0) add_datatype({"MPI_INT", t, i});
                  }
                });
              }
              for (std::thread& thread : all) thread.join();
              return 0;
            }));
  const TraceReader trace(folder);
  ASSERT_TRUE(trace.complete && trace.consistent);
  EXPECT_EQ(trace.calls(), 2u * threads * calls);
  EXPECT_EQ(trace.events().size(), 2u * threads * calls);
  EXPECT_EQ(trace.all<DatatypeEntry>(SectionType::datatypes).size(), threads * 5);
  uint64_t ticks = 0, partner_bytes = 0;
  for (const Cell& cell : trace.cells()) ticks += cell.ticks;
  for (const PartnerCell& cell : trace.partners()) partner_bytes += cell.bytes;
  EXPECT_EQ(ticks, 4u * threads * calls);
  EXPECT_EQ(partner_bytes, 10u * threads * calls);
  ASSERT_EQ(trace.all<ThreadEntry>(SectionType::threads).size(), threads);
  for (uint32_t t = 0; t < threads; ++t) {
    const auto events = trace.events(int(t));
    ASSERT_EQ(events.size(), 2u * calls);
    for (uint32_t i = 0; i < calls; ++i) ASSERT_EQ(events[2 * i].event.sequence, i);
  }
}

TEST(TracerProcess, ThreadsThatComeAndGoShareALane) {
  Folder folder;
  ASSERT_EQ(0, in_child([&] {
              if (!open_trace(options_in(folder, Mode::full), tables).ok()) return 1;
              for (uint32_t i = 0; i < 2000; ++i) std::thread([i] { call(allreduce(i, 8), i, 1); }).join();
              return 0;
            }));
  const TraceReader trace(folder);
  EXPECT_TRUE(trace.consistent);
  EXPECT_EQ(trace.all<ThreadEntry>(SectionType::threads).size(), 1u);
  EXPECT_EQ(trace.all<ThreadEntry>(SectionType::threads)[0].events, 2000u);
  EXPECT_EQ(trace.events().size(), 2000u);
  EXPECT_EQ(trace.calls(), 2000u);
  EXPECT_LT(trace.size(), 300000u);
}

// Lanes with sums whose threads have ended.
void leave_idle_lanes(int number) {
  std::latch all_called(number);
  std::vector<std::thread> all;
  for (int i = 0; i < number; ++i) {
    all.emplace_back([&] {
      call(allreduce(0, 8), 1, 1);
      all_called.arrive_and_wait();
    });
  }
  for (std::thread& thread : all) thread.join();
}

// Sums are reset while threads count, without harm, and when they are quiet, exactly.
TEST(TracerProcess, ResetReachesRunningAndIdleThreads) {
  constexpr int threads = 4;
  Folder folder;
  ASSERT_EQ(0, in_child([&] {
              if (!open_trace(options_in(folder, Mode::aggregate), tables).ok()) return 1;
              leave_idle_lanes(2 * threads);
              std::atomic<bool> stop{false};
              std::latch counted(threads), left(threads), after(1);
              std::vector<std::thread> all;
              for (int t = 0; t < threads; ++t) {
                all.emplace_back([&] {
                  for (int i = 0; i < 1000; ++i) call(allreduce(0, 8), 1, 1);
                  counted.count_down();
                  while (!stop.load()) call(allreduce(0, 8), 1, 1);
                  left.count_down();
                  after.wait();
                  for (int i = 0; i < 10; ++i) call(allreduce(0, 8), 1, 1);
                });
              }
              counted.wait();
              for (int i = 0; i < 20; ++i) reset_sums();
              stop = true;
              left.wait();
              reset_sums();
              after.count_down();
              for (std::thread& thread : all) thread.join();
              return 0;
            }));
  const TraceReader trace(folder);
  EXPECT_EQ(trace.calls(), 10u * threads);
}

TEST(TracerProcess, IsReadableWhenKilledInTheMiddle) {
  for (int round = 0; round < 10; ++round) {
    Folder folder;
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      if (!open_trace(options_in(folder, Mode::full), tables).ok()) _exit(1);
      for (uint32_t i = 0;; ++i) {
        call(allreduce(i, 8), i, i % 3 ? 5 : uint64_t(1) << 40);
        if (i == 3000 && write(ready[1], "x", 1) != 1) _exit(2);
      }
    }
    char byte;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(ready[0]);
    close(ready[1]);
    const TraceReader trace(folder);
    ASSERT_TRUE(trace.complete && trace.consistent);
    const auto events = trace.events();
    ASSERT_GT(events.size(), 3000u);
    for (uint32_t i = 0; i < events.size(); ++i) {
      ASSERT_EQ(events[i].event.sequence, i);
      ASSERT_EQ(events[i].spent, i % 3 ? 5 : uint64_t(1) << 40);
    }
    EXPECT_LE(events.size(), trace.calls());
    EXPECT_LE(trace.calls(), events.size() + trace.header.dropped_events + 1);
  }
}

TEST(TracerProcess, TheChildOfAForkTracesNothing) {
  Folder folder;
  ASSERT_EQ(0, in_child([&] {
              if (!open_trace(options_in(folder, Mode::full), tables).ok()) return 1;
              CommunicatorEntry world{};
              const uint16_t index = add_communicator(world, nullptr, 0);
              QueueEntry* queue = add_queue("length", "messages", "");
              TraceHeader* header = trace_header();
              call(allreduce(0, 8), 1, 1);
              const int child = in_child([&] {
                trace_after_fork_child();
                if (recording != Mode::off || trace_header()) return 1;
                call(allreduce(1, 8), 1, 1);
                std::thread([] { call(allreduce(2, 8), 1, 1); }).join();
                mark(3, 1);
                switch_recording(true);
                reset_sums();
                add_note("child");
                calibrate_trace();
                communicator_entry(index)->freed_ticks = 5;  // pointers from before the fork
                queue->samples = 5;
                header->world_rank = 77;
                return add_datatype({}) == none16 && recording == Mode::off ? 0 : 2;
              });
              call(allreduce(3, 8), 1, 1);
              return child == 0 ? 0 : 2;
            }));
  ASSERT_EQ(folder.files().size(), 1u);
  const TraceReader trace(folder);
  ASSERT_TRUE(trace.consistent);
  EXPECT_EQ(trace.calls(), 2u);
  EXPECT_EQ(trace.events().size(), 2u);
  EXPECT_EQ(trace.header.world_rank, -1);
  EXPECT_EQ(trace.all<CommunicatorEntry>(SectionType::communicators)[0].freed_ticks, 0u);
  EXPECT_EQ(trace.all<QueueEntry>(SectionType::queues)[0].samples, 0u);
  EXPECT_TRUE(trace.all<NoteEntry>(SectionType::notes).empty());
  EXPECT_EQ(trace.all<ThreadEntry>(SectionType::threads).size(), 1u);
}

// Opens a trace in a child, makes 100000 calls there on one thread and a few on another, and expects that nothing is lost
// of the sums, events are dropped and counted, and one line says so.
void expect_goes_on(const Folder& folder, const TraceOptions& options, const std::function<void()>& restrict) {
  constexpr uint32_t calls = 100000;
  Folder of_errors;
  const std::string errors = of_errors.path + "/errors";
  ASSERT_EQ(0, in_child([&] {
              redirect_errors(errors);
              if (!open_trace(options, tables).ok()) return 1;
              call(allreduce(0, 8), 0, 1);
              call(send(0, 8), 0, 1);
              restrict();
              for (uint32_t i = 1; i < calls; ++i) call(allreduce(i, 8 << (i % 8)), i, 1);
              return 0;
            }));
  const TraceReader trace(folder);
  ASSERT_TRUE(trace.complete && trace.consistent);
  EXPECT_EQ(trace.calls(), calls + 1);
  EXPECT_GT(trace.header.dropped_events, 0u);
  EXPECT_EQ(trace.events().size() + trace.header.dropped_events, calls + 1);
  EXPECT_LE(trace.size(), options.limit_bytes);
  EXPECT_EQ(lines_of(errors), 1u);
}

TEST(TracerProcess, StopsEventsAtTheLimit) {
  Folder folder;
  TraceOptions options = options_in(folder, Mode::full);
  options.limit_bytes = 1 << 20;
  expect_goes_on(folder, options, [] {});
  const TraceReader trace(folder);
  EXPECT_GT(trace.size(), size_t(700) << 10);
}

// A file-size limit stands for a full disk; its signal is not ignored, and must not come.
TEST(TracerProcess, GoesOnWhenTheFileMayNotGrow) {
  Folder folder;
  expect_goes_on(folder, options_in(folder, Mode::full), [] {
    const rlimit small{300000, 300000};
    setrlimit(RLIMIT_FSIZE, &small);
  });
}

// Another file under the name is not ours.
TEST(TracerProcess, GoesOnWhenTheFileWasMoved) {
  Folder folder, elsewhere;
  const std::string moved = elsewhere.path + "/moved";
  expect_goes_on(elsewhere, options_in(folder, Mode::full), [&] {
    const std::string name = folder.files().at(0);
    if (rename(name.c_str(), moved.c_str()) != 0) abort();
    std::ofstream(name) << "somebody else's";
  });
  EXPECT_EQ(testing::read_file(folder.files().at(0)).size(), strlen("somebody else's"));
}

// Mounts of our own, where the kernel lets us have them: as root, or as root of a name space of our own.
bool own_mounts() {
  const std::string map = "0 " + std::to_string(getuid()) + " 1";
  if (unshare(CLONE_NEWNS) == 0) return true;
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  std::ofstream("/proc/self/uid_map") << map;
  return true;
}

bool mount_small(const Folder& folder) {
  return own_mounts() && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", folder.path.c_str(), "tmpfs", 0, "size=400k") == 0;
}

TEST(TracerProcess, GoesOnWhenTheDiskIsFull) {
  Folder folder;
  const int status = in_child([&] {
    if (!mount_small(folder)) return 77;
    redirect_errors("/dev/null");
    if (!open_trace(options_in(folder, Mode::full), tables).ok()) return 1;
    for (uint32_t i = 0; i < 100000; ++i) call(allreduce(i, 8), i, 1);
    const TraceReader trace(folder);
    if (!trace.consistent || trace.calls() != 100000 || trace.events().size() < 1000) return 2;
    return trace.events().size() + trace.header.dropped_events == 100000 ? 0 : 3;
  });
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no mount of our own here";
  EXPECT_EQ(status, 0);
}

// A thread that comes when nothing can be had any more is counted as what it is: lost calls.
TEST(TracerProcess, CountsCallsOfThreadsWithoutRoom) {
  Folder folder;
  ASSERT_EQ(0, in_child([&] {
              if (!open_trace(options_in(folder, Mode::full), tables).ok()) return 1;
              redirect_errors("/dev/null");
              const rlimit small{4096, 4096};
              setrlimit(RLIMIT_FSIZE, &small);
              for (int i = 0; i < 10; ++i) std::thread([] { call(allreduce(0, 8), 1, 1); }).join();
              return trace_header()->dropped_cells == 10 ? 0 : 2;
            }));
  const TraceReader trace(folder);
  EXPECT_TRUE(trace.consistent);
  EXPECT_EQ(trace.header.dropped_cells, 10u);
}

// Programs close descriptors that they do not know and change their folder.
TEST(TracerProcess, SurvivesClosedDescriptorsAndAnotherFolder) {
  Folder folder;
  ASSERT_EQ(0, in_child([&] {
              if (chdir(folder.path.c_str()) != 0) return 1;
              TraceOptions options = options_in(folder, Mode::full);
              options.directory = ".";
              if (!open_trace(options, tables).ok()) return 2;
              for (int fd = 3; fd < 100; ++fd) close(fd);
              if (chdir("/") != 0) return 3;
              for (uint32_t i = 0; i < 10000; ++i) call(allreduce(i, 8), i, 1);
              return 0;
            }));
  EXPECT_EQ(TraceReader(folder).events().size(), 10000u);
}

TEST(TracerProcess, NeverWritesOverAnotherTrace) {
  Folder folder;
  ASSERT_EQ(0, in_child([&] {
              std::ofstream(folder.path + "/rank-" + std::to_string(getpid()) + ".trace") << "another host's";
              return open_trace(options_in(folder, Mode::full), tables).ok() ? 0 : 1;
            }));
  ASSERT_EQ(folder.files().size(), 2u);
  for (const std::string& file : folder.files()) {
    const bool ours = file.find("-1.trace") != std::string::npos;
    EXPECT_EQ(TraceReader(testing::read_file(file)).complete, ours) << file;
  }
}

}  // namespace
}  // namespace stretto::trace
