#include "platform/shared_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "unit/platform/child.hpp"
#include "unit/platform/deny.hpp"

namespace stretto::platform {
namespace {

using namespace stretto::testing;

constexpr size_t mib = size_t(1) << 20;

size_t committed(int fd) {
  struct stat facts;
  return fstat(fd, &facts) == 0 ? size_t(facts.st_blocks) * 512 : SIZE_MAX;
}

// An object of 4 MiB, created and mapped.
class SharedMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(create_shared_object("test", bytes, &fd).ok());
    void* address = nullptr;
    ASSERT_TRUE(map_shared_object(fd, 0, bytes, &address).ok());
    memory = static_cast<char*>(address);
  }
  void TearDown() override {
    unmap_shared_object(memory, bytes);
    close(fd);
  }
  static constexpr size_t bytes = 4 * mib;
  int fd = -1;
  char* memory = nullptr;
};

TEST_F(SharedMemory, IsSeenThroughEveryMapping) {
  void* part = nullptr;
  ASSERT_TRUE(map_shared_object(fd, mib, mib, &part).ok());
  EXPECT_EQ(static_cast<char*>(part)[7], 0);
  memory[mib + 7] = 'x';
  EXPECT_EQ(static_cast<char*>(part)[7], 'x');
  unmap_shared_object(part, mib);
}

TEST_F(SharedMemory, IsSparseAndClosedOnExec) {
  EXPECT_EQ(committed(fd), 0u);
  EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
}

// By the mapping's name: a sanitizer's run-time may have put something of its own at the same address of the child.
bool maps_shared_object() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("/memfd:") != std::string::npos) return true;
  return false;
}

TEST_F(SharedMemory, IsNotInheritedByFork) {
  EXPECT_TRUE(maps_shared_object());
  int code = exit_code_of([&] {
    CHILD_REQUIRE(!maps_shared_object());
    return 0;
  });
  EXPECT_EQ(code, 0);
}

TEST_F(SharedMemory, DiscardedPagesReadAsZero) {
  memset(memory, 1, bytes);
  EXPECT_EQ(committed(fd), bytes);
  discard_shared_pages(memory + mib, 2 * mib);
  EXPECT_EQ(committed(fd), 2 * mib);
  EXPECT_EQ(memory[mib], 0);
  EXPECT_EQ(memory[3 * mib - 1], 0);
  EXPECT_EQ(memory[mib - 1], 1);
  EXPECT_EQ(memory[3 * mib], 1);
}

TEST(CreateSharedObject, RejectsNonsense) {
  int fd = -1;
  EXPECT_EQ(create_shared_object("test", 0, &fd).code, Code::invalid);
  EXPECT_EQ(create_shared_object("test", SIZE_MAX, &fd).code, Code::invalid);
  EXPECT_EQ(fd, -1);
}

TEST(CreateSharedObject, MoreThanFitsTheAddressSpaceIsAStatus) {
  int fd = -1, before = open_descriptors();
  Status status = create_shared_object("test", size_t(1) << 60, &fd);
  void* address = nullptr;
  if (status.ok()) {
    EXPECT_FALSE(map_shared_object(fd, 0, size_t(1) << 60, &address).ok());
    close(fd);
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(CreateSharedObject, FileSizeLimitIsAStatusAndNoSignal) {
  int code = exit_code_of([] {
    rlimit limit = {mib, mib};
    CHILD_REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    int fd = -1, before = open_descriptors();
    Status status = create_shared_object("test", 2 * mib, &fd);
    CHILD_REQUIRE(status.code == Code::refused && status.detail == EFBIG);
    CHILD_REQUIRE(open_descriptors() == before);
    CHILD_REQUIRE(create_shared_object("test", mib, &fd).ok());
    return 0;
  });
  EXPECT_EQ(code, 0);
}

// Where memfd_create is denied, an unnamed file in /dev/shm serves, fully allocated, and leaves nothing behind.
TEST(CreateSharedObject, WithoutMemfd) {
  int code = exit_code_of([] {
    if (!deny({SYS_memfd_create}, EPERM)) return child_skipped;
    int fd = -1;
    Status status = create_shared_object("test", 2 * mib, &fd);
    if (status.code == Code::refused && status.detail == EOPNOTSUPP) return child_skipped;
    CHILD_REQUIRE(status.ok());
    CHILD_REQUIRE(committed(fd) == 2 * mib);
    struct stat facts;
    CHILD_REQUIRE(fstat(fd, &facts) == 0 && facts.st_nlink == 0);  // no name: it goes with its last user, however that ends
    CHILD_REQUIRE((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    void* address = nullptr;
    CHILD_REQUIRE(map_shared_object(fd, 0, 2 * mib, &address).ok());
    memset(address, 1, 2 * mib);
    discard_shared_pages(address, mib);  // zero, but kept: they might not be to be had again
    CHILD_REQUIRE(committed(fd) == 2 * mib);
    CHILD_REQUIRE(static_cast<char*>(address)[mib - 1] == 0 && static_cast<char*>(address)[mib] == 1);
    int large = -1;
    CHILD_REQUIRE(create_shared_object("test", 512 * mib, &large).code == Code::no_memory && large == -1);
    return 0;
  });
  if (code == child_skipped) GTEST_SKIP() << "seccomp filters or unnamed files are not to be had";
  EXPECT_EQ(code, 0);
}

TEST(CreateSharedObject, WithoutAnyWayIsRefused) {
  int code = exit_code_of([] {
    int before = open_descriptors(), fd = -1;
    DIR* listing = opendir("/proc/self/fd");  // opened before, as no file can be opened afterwards
    CHILD_REQUIRE(listing != nullptr);
    if (!deny({SYS_memfd_create, SYS_openat}, EPERM)) return child_skipped;
    Status status = create_shared_object("test", mib, &fd);
    CHILD_REQUIRE(status.code == Code::refused && status.detail == EPERM);
    int after = 0;
    while (dirent* entry = readdir(listing)) after += entry->d_name[0] != '.';
    CHILD_REQUIRE(after == before);
    return 0;
  });
  if (code == child_skipped) GTEST_SKIP() << "seccomp filters cannot be installed";
  EXPECT_EQ(code, 0);
}

// A container's 64 MiB /dev/shm promises any size and kills with SIGBUS on touch; here it has one MiB.
TEST(CreateSharedObject, SmallDevShmIsAStatusAndNoSignal) {
  int code = exit_code_of([] {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1m") != 0 || !deny({SYS_memfd_create}, ENOSYS))
      return child_skipped;
    int before = open_descriptors(), fd = -1;
    CHILD_REQUIRE(create_shared_object("test", 2 * mib, &fd).code == Code::no_memory);
    CHILD_REQUIRE(open_descriptors() == before);
    CHILD_REQUIRE(create_shared_object("test", mib / 2, &fd).ok());
    CHILD_REQUIRE(create_shared_object("test", mib * 3 / 4, &fd).code == Code::no_memory);  // the rest does not do
    return 0;
  });
  if (code == child_skipped) GTEST_SKIP() << "mount namespaces or seccomp filters are not to be had";
  EXPECT_EQ(code, 0);
}

TEST(PhysicalMemory, IsAtMostWhatIsInstalled) {
  size_t installed = size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE));
  EXPECT_GT(physical_memory(), size_t(0));
  EXPECT_LE(physical_memory(), installed);
}

}  // namespace
}  // namespace stretto::platform
