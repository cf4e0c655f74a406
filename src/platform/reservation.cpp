#include "platform/reservation.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "platform/parse.hpp"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace stretto::platform {
namespace {

bool within_file_limit(size_t bytes) {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

// Programs close or redirect low numbers without asking whose they are.
int moved_up(int fd) {
  rlimit limit;
  int from = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? int(std::min<rlim_t>(limit.rlim_cur, 1024)) - 64 : 0;
  int high = from > fd ? fcntl(fd, F_DUPFD_CLOEXEC, from) : -1;
  if (high < 0) return fd;
  close(fd);
  return high;
}

}  // namespace

Status create_sparse_object(const char* name, size_t bytes, int* fd) {
  if (!within_file_limit(bytes)) return refused("the file size limit (ulimit -f) is smaller than the shared object", EFBIG);
  int made = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
  if (made < 0 && errno == EINVAL) made = memfd_create(name, MFD_CLOEXEC);  // kernels before 6.3
  if (made < 0) return refused("memfd_create is refused", errno);
  int result;
  do result = ftruncate(made, off_t(bytes));
  while (result != 0 && errno == EINTR);
  if (result != 0) {
    int error = errno;
    close(made);
    return no_memory("the shared object cannot be made that large", error);
  }
  *fd = moved_up(made);
  return Status::good();
}

Status map_sparse_object(int fd, size_t bytes, Inherited inherited, char** address) {
  void* room = mmap(nullptr, bytes + huge_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return no_memory("no addresses for the shared object", errno);
  char* begin = static_cast<char*>(room);
  char* aligned = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(begin) + huge_page - 1) / huge_page * huge_page);
  void* mapped = mmap(aligned, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0);
  int error = errno;
  bool done = mapped != MAP_FAILED && (inherited == Inherited::yes || madvise(mapped, bytes, MADV_DONTFORK) == 0);
  if (!done) {
    munmap(room, bytes + huge_page);
    return no_memory("the shared object cannot be mapped", error);
  }
  if (aligned > begin) munmap(begin, size_t(aligned - begin));
  if (begin + huge_page > aligned) munmap(aligned + bytes, size_t(begin + huge_page - aligned));
  if (inherited == Inherited::no) madvise(mapped, bytes, MADV_DONTDUMP);
  madvise(mapped, bytes, MADV_HUGEPAGE);
  *address = aligned;
  return Status::good();
}

ObjectId object_of(int fd) {
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

Status may_reserve() {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    return refused("the address space is limited (ulimit -v)");
  char text[16];
  uint64_t mode = 0;
  if (parse_number(read_text("/proc/sys/vm/overcommit_memory", text, sizeof text), &mode) && mode == 2)
    return refused("the system accounts memory strictly (vm.overcommit_memory=2)");
  return Status::good();
}

}  // namespace stretto::platform
