#include "trace/memory.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace stretto::trace {

namespace {

constexpr int name_attempts = 1000;

// A store into a hole of a mapped file kills the process when the disk is full: leave no holes.
Status allocate_and_map(int fd, size_t bytes, void** address) {
  if (const int error = posix_fallocate(fd, 0, off_t(bytes))) return no_memory("no room for the record", error);
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return no_memory("the record cannot be mapped", errno);
  *address = mapped;
  return Status::good();
}

}  // namespace

int create_rank_file(const char* directory, const char* tail, char (&path)[PATH_MAX]) {
  for (int attempt = 0; attempt < name_attempts; ++attempt) {
    char number[16] = "";
    if (attempt > 0) snprintf(number, sizeof number, "-%d", attempt);
    const int length = snprintf(path, sizeof path, "%s/rank-%d%s%s", directory, int(getpid()), number, tail);
    if (length < 0 || size_t(length) >= sizeof path) {
      errno = ENAMETOOLONG;
      return -1;
    }
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

Status map_new_file(const char* directory, size_t bytes, void** address) {
  char path[PATH_MAX];
  const int fd = create_rank_file(directory, ".record", path);
  if (fd < 0) return refused("the record file cannot be created", errno);
  const Status status = allocate_and_map(fd, bytes, address);
  close(fd);
  if (!status.ok()) unlink(path);
  return status;
}

Status map_anonymous(size_t bytes, void** address) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return no_memory("no memory for the record", errno);
  *address = mapped;
  return Status::good();
}

Status make_private(void* address, size_t bytes, size_t kept) {
  void* copy = nullptr;
  STRETTO_TRY(map_anonymous(kept, &copy));
  memcpy(copy, address, kept);
  void* mapped = mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (mapped != MAP_FAILED) memcpy(address, copy, kept);
  const int error = errno;
  munmap(copy, kept);
  return mapped == MAP_FAILED ? no_memory("no memory for the child's record", error) : Status::good();
}

}  // namespace stretto::trace
