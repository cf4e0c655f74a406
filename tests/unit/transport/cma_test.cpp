#include "transport/cma/cma.hpp"

#include <errno.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "unit/platform/child.hpp"
#include "unit/platform/deny.hpp"

namespace stretto::transport {
namespace {

using namespace stretto::testing;

uint64_t address_of(const void* p) {
  return reinterpret_cast<uintptr_t>(p);
}

TEST(ProbeCma, ReadsTheExpectedNumber) {
  uint64_t number = 0x0123456789abcdef;
  Status status = probe_cma(getpid(), address_of(&number), number);
  if (status.detail == EPERM || status.detail == ENOSYS) GTEST_SKIP() << "process_vm_readv is denied on this machine";
  EXPECT_TRUE(status.ok());
}

TEST(ProbeCma, AnotherProcessBehindTheNumberIsRefused) {
  uint64_t number = 1;
  EXPECT_EQ(probe_cma(getpid(), address_of(&number), 2).code, Code::refused);
}

TEST(ProbeCma, UnreadableIsRefused) {
  EXPECT_EQ(probe_cma(getpid(), 8, 0).code, Code::refused);
  uint64_t number = 1;
  pid_t gone = start_child([] { return 0; });
  finish_child(gone);
  EXPECT_EQ(probe_cma(gone, address_of(&number), 1).code, Code::refused);
}

TEST(Cma, DenialIsRefusedWithItsErrno) {
  int code = exit_code_of([] {
    if (!deny({SYS_process_vm_readv}, EPERM)) return child_skipped;
    int32_t pids[] = {getpid(), getpid()};
    auto transport = make_cma(pids, 2, 0);
    uint64_t number = 5, copy = 0;
    CHILD_REQUIRE(probe_cma(getpid(), address_of(&number), number).code == Code::refused);
    const void* data = nullptr;
    Status status = transport->get(1, transport->window(&number), {}, 0, sizeof number, &copy, &data);
    CHILD_REQUIRE(status.code == Code::refused && status.detail == EPERM);
    // A rank's own bytes need no permission.
    CHILD_REQUIRE(transport->get(0, transport->window(&number), {}, 0, sizeof number, &copy, &data).ok() && copy == 5);
    return 0;
  });
  if (code == child_skipped) GTEST_SKIP() << "seccomp filters cannot be installed";
  EXPECT_EQ(code, 0);
}

TEST(Cma, KeepsItsOwnCopyOfTheNumbers) {
  int32_t pids[] = {getpid(), getpid()};
  auto transport = make_cma(pids, 2, 0);
  pids[1] = -1;
  uint64_t number = 7, copy = 0;
  const void* data = nullptr;
  Status status = transport->get(1, transport->window(&number), {}, 0, sizeof number, &copy, &data);
  if (status.detail == EPERM || status.detail == ENOSYS) GTEST_SKIP() << "process_vm_readv is denied on this machine";
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(copy, 7u);
}

TEST(Cma, StrangersAreInvalid) {
  int32_t pid = getpid();
  auto transport = make_cma(&pid, 1, 0);
  char byte = 0;
  const void* data = nullptr;
  for (int peer : {-1, 1}) EXPECT_EQ(transport->get(peer, {1}, {}, 0, 1, &byte, &data).code, Code::invalid);
  EXPECT_EQ(make_cma(&pid, 0, 0), nullptr);
}

}  // namespace
}  // namespace stretto::transport
