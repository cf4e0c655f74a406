#include "platform/process.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <numeric>
#include <thread>
#include <vector>

#include "platform/parse.hpp"
#include "unit/platform/child.hpp"
#include "unit/platform/deny.hpp"

namespace stretto::platform {
namespace {

using namespace stretto::testing;

ProcessId identity_of(pid_t pid) {
  char text[1024];
  ProcessStat stat;
  EXPECT_TRUE(parse_stat(read_text(("/proc/" + std::to_string(pid) + "/stat").c_str(), text, sizeof text), &stat));
  ProcessId process;
  process.pid = pid;
  process.start = stat.start;
  return process;
}

int sleep_until_killed() {
  for (;;) pause();
}

TEST(ProcessAlive, ThisOne) {
  ProcessId self = self_process();
  EXPECT_EQ(self.pid, getpid());
  EXPECT_GT(self.start, 0u);
  EXPECT_TRUE(process_alive(self));
}

TEST(ProcessAlive, RunningThenZombieThenGone) {
  pid_t pid = start_child(sleep_until_killed);
  ProcessId process = identity_of(pid);
  EXPECT_TRUE(process_alive(process));
  kill(pid, SIGKILL);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT), 0);  // dead, not reaped: a zombie
  EXPECT_FALSE(process_alive(process));
  EXPECT_EQ(finish_child(pid), 128 + SIGKILL);
  EXPECT_FALSE(process_alive(process));
}

TEST(ProcessAlive, ReusedNumbersAreOtherProcesses) {
  ProcessId process = self_process();
  process.start -= 1;
  EXPECT_FALSE(process_alive(process));
  process.start = 0;  // unknown
  EXPECT_TRUE(process_alive(process));
}

TEST(ProcessAlive, NobodyCannotBeTold) {
  EXPECT_TRUE(process_alive(ProcessId{}));
}

// The state of such a process reads 'Z', but its other threads compute on.
TEST(ProcessAlive, WhenOnlyTheFirstThreadHasExited) {
  pid_t pid = start_child([] {
    std::thread(sleep_until_killed).detach();
    syscall(SYS_exit, 0);
    return 1;
  });
  ProcessId process = identity_of(pid);
  char text[1024];
  ProcessStat stat;
  std::string path = "/proc/" + std::to_string(pid) + "/stat";
  do ASSERT_TRUE(parse_stat(read_text(path.c_str(), text, sizeof text), &stat));
  while (stat.state != 'Z');
  EXPECT_TRUE(process_alive(process));
  kill(pid, SIGKILL);
  EXPECT_EQ(finish_child(pid), 128 + SIGKILL);
}

TEST(ReadProcessMemory, OfAnotherProcess) {
  std::vector<uint8_t> theirs((3 << 20) + 5), ours(theirs.size());
  std::iota(theirs.begin(), theirs.end(), uint8_t(0));
  std::vector<uint8_t> expected(theirs.begin() + 3, theirs.end());
  pid_t pid = start_child(sleep_until_killed);  // has a copy of `theirs` at the same address
  std::fill(theirs.begin(), theirs.end(), uint8_t(0xEE));
  Status status = read_process_memory(pid, reinterpret_cast<uintptr_t>(theirs.data() + 3), ours.data(), expected.size());
  kill(pid, SIGKILL);
  finish_child(pid);
  if (status.detail == EPERM || status.detail == ENOSYS) GTEST_SKIP() << "process_vm_readv is denied on this machine";
  ASSERT_TRUE(status.ok()) << status.what << ": " << strerror(status.detail);
  ours.resize(expected.size());
  EXPECT_TRUE(ours == expected);
  status = read_process_memory(pid, reinterpret_cast<uintptr_t>(theirs.data()), ours.data(), 1);
  EXPECT_EQ(status.code, Code::refused);
  EXPECT_EQ(status.detail, ESRCH);
}

TEST(ReadProcessMemory, PartlyUnmappedIsRefused) {
  size_t page = size_t(sysconf(_SC_PAGESIZE));
  void* pages = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(munmap(static_cast<char*>(pages) + page, page), 0);
  std::vector<char> to(2 * page);
  uintptr_t from = reinterpret_cast<uintptr_t>(pages);
  Status whole = read_process_memory(getpid(), from, to.data(), page);
  if (whole.detail == EPERM || whole.detail == ENOSYS) GTEST_SKIP() << "process_vm_readv is denied on this machine";
  EXPECT_TRUE(whole.ok());
  Status partly = read_process_memory(getpid(), from + 1, to.data(), page);
  EXPECT_EQ(partly.code, Code::refused);
  EXPECT_EQ(partly.detail, EFAULT);
  EXPECT_TRUE(read_process_memory(getpid(), 0, nullptr, 0).ok());
  munmap(pages, page);
}

TEST(ReadProcessMemory, DeniedBySeccomp) {
  int code = exit_code_of([] {
    if (!deny({SYS_process_vm_readv}, EPERM)) return child_skipped;
    char from = 1, to = 0;
    Status status = read_process_memory(getpid(), reinterpret_cast<uintptr_t>(&from), &to, 1);
    CHILD_REQUIRE(status.code == Code::refused);
    CHILD_REQUIRE(status.detail == EPERM);
    return 0;
  });
  if (code == child_skipped) GTEST_SKIP() << "seccomp filters cannot be installed";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace stretto::platform
