#include "platform/shared_memory.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string_view>

#include "platform/cgroup.hpp"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace stretto::platform {
namespace {

// Beyond RLIMIT_FSIZE, growing a file raises SIGXFSZ, which kills: look before the leap.
bool within_file_limit(size_t bytes) {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

int retry_ftruncate(int fd, size_t bytes) {
  int result;
  do result = ftruncate(fd, off_t(bytes));
  while (result != 0 && errno == EINTR);
  return result;
}

Status create_memfd(const char* name, size_t bytes, int* fd) {
  int made = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
  if (made < 0 && errno == EINVAL) made = memfd_create(name, MFD_CLOEXEC);  // kernels before 6.3
  if (made < 0) return refused("memfd_create is refused", errno);
  if (retry_ftruncate(made, bytes) != 0) {
    int error = errno;
    ::close(made);
    return no_memory("the shared object cannot be made that large", error);
  }
  *fd = made;
  return Status::good();
}

// What is committed from the start must be modest.
constexpr size_t most_allocated = size_t(256) << 20;

// A file system in memory may be smaller than it says yes to (64 MiB in a container), and then kills with SIGBUS when it
// is touched: take all of it now or not at all.
Status allocate_all(int fd, size_t bytes) {
  struct statvfs room;
  if (bytes > most_allocated) return no_memory("without memfd_create, shared objects are small", EFBIG);
  if (fstatvfs(fd, &room) != 0) return refused("/dev/shm does not tell its size", errno);
  if (room.f_bavail < (bytes + room.f_frsize - 1) / room.f_frsize) return no_memory("/dev/shm is too small", ENOSPC);
  if (bytes > physical_memory() / 2) return no_memory("half of the memory is less than the shared object needs", ENOMEM);
  int result;
  do result = fallocate(fd, 0, 0, off_t(bytes));
  while (result != 0 && errno == EINTR);
  return result == 0 ? Status::good() : no_memory("/dev/shm has no room for the shared object", errno);
}

// A file without a name, so that nothing is left behind, however the process ends.
Status create_unnamed_file(size_t bytes, int* fd) {
  int made = open("/dev/shm", O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (made < 0) return refused("memfd_create is refused and /dev/shm cannot hold unnamed files", errno);
  Status status = allocate_all(made, bytes);
  if (!status.ok()) {
    ::close(made);
    return status;
  }
  *fd = made;
  return Status::good();
}

// Set once this process has mapped an object that was allocated in full: its pages are then kept, because nobody promises
// that they can be had again.
std::atomic<bool> keep_pages{false};

}  // namespace

bool is_memfd(int fd) {
  constexpr std::string_view memfd = "/memfd:";
  char link[32], target[sizeof "/memfd:"];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, target, sizeof target);
  return n >= ssize_t(memfd.size()) && std::string_view(target, memfd.size()) == memfd;
}

Status create_shared_object(const char* name, size_t bytes, int* fd) {
  if (bytes == 0 || bytes > size_t(INT64_MAX)) return invalid("size of a shared object");
  if (!within_file_limit(bytes)) return refused("the file size limit (ulimit -f) is smaller than the shared object", EFBIG);
  Status status = create_memfd(name, bytes, fd);
  return status.code == Code::refused ? create_unnamed_file(bytes, fd) : status;
}

Status map_shared_object(int fd, size_t offset, size_t bytes, void** address) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, off_t(offset));
  if (mapped == MAP_FAILED) return no_memory("the shared object cannot be mapped", errno);
  if (madvise(mapped, bytes, MADV_DONTFORK) != 0) {
    int error = errno;
    munmap(mapped, bytes);
    return refused("the shared object would be inherited by fork", error);
  }
  madvise(mapped, bytes, MADV_DONTDUMP);
  if (!is_memfd(fd)) keep_pages.store(true, std::memory_order_relaxed);
  *address = mapped;
  return Status::good();
}

void unmap_shared_object(void* address, size_t bytes) {
  if (address != nullptr) munmap(address, bytes);
}

void discard_shared_pages(void* address, size_t bytes) {
  if (keep_pages.load(std::memory_order_relaxed))
    memset(address, 0, bytes);
  else
    madvise(address, bytes, MADV_REMOVE);
}

void populate_pages(void* address, size_t bytes) {
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // since Linux 5.14
#endif
  madvise(address, bytes, MADV_POPULATE_WRITE);
}

size_t physical_memory() {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  size_t installed = pages > 0 && page > 0 ? size_t(pages) * size_t(page) : SIZE_MAX;
  return std::min(installed, cgroup_memory_limit(find_own_cgroup("memory")));
}

}  // namespace stretto::platform
