#include "trace/trace_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/memory.hpp"

namespace stretto::trace {

namespace {

// Growing a file beyond this raises SIGXFSZ, which ends a process that does not expect it.
bool beyond_size_limit(uint64_t bytes) {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur;
}

int fallocate_patiently(int fd, uint64_t from, size_t bytes) {
  int error = EINTR;
  for (int attempt = 0; attempt < 100 && error == EINTR; ++attempt) error = posix_fallocate(fd, off_t(from), off_t(bytes));
  return error;
}

constexpr const char* cannot_open = "the trace file cannot be opened again";

Status write_all(int fd, const Piece& piece) {
  for (size_t done = 0; done < piece.bytes;) {
    const ssize_t wrote = pwrite(fd, static_cast<const char*>(piece.data) + done, piece.bytes - done, off_t(piece.offset + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return no_memory("the trace cannot be written", wrote < 0 ? errno : ENOSPC);
    done += size_t(wrote);
  }
  return Status::good();
}

}  // namespace

Status TraceFile::create(const char* directory, const char* tail) {
  char absolute[PATH_MAX];  // the program may change its folder
  if (realpath(directory, absolute) == nullptr) return refused("the trace's folder cannot be used", errno);
  const int fd = create_rank_file(absolute, tail, path_);
  if (fd < 0) return refused("the trace file cannot be created", errno);
  struct stat found{};
  fstat(fd, &found);
  close(fd);
  device_ = found.st_dev;
  inode_ = found.st_ino;
  end_ = 0;
  return Status::good();
}

// Another file of that name is not ours.
int TraceFile::reopen() const {
  const int fd = open(path_, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  struct stat found{};
  if (fd < 0 || (fstat(fd, &found) == 0 && found.st_dev == device_ && found.st_ino == inode_)) return fd;
  close(fd);
  errno = ENOENT;
  return -1;
}

Status TraceFile::allocate(int fd, size_t bytes) const {
  if (beyond_size_limit(end_ + bytes)) return no_memory("no room for the trace", EFBIG);
  const int error = fallocate_patiently(fd, end_, bytes);
  return error == 0 ? Status::good() : no_memory("no room for the trace", error);
}

template <class Fill>
Status TraceFile::append(size_t bytes, Fill&& fill) {
  const int fd = reopen();
  if (fd < 0) return refused(cannot_open, errno);
  Status status = allocate(fd, bytes);
  if (status.ok()) status = fill(fd);
  if (status.ok()) {
    end_ += bytes;
  } else {
    [[maybe_unused]] const int ignored = ftruncate(fd, off_t(end_));
  }
  close(fd);
  return status;
}

Status TraceFile::grow(size_t bytes, void** address) {
  return append(bytes, [&](int fd) {
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, off_t(end_));
    if (mapped == MAP_FAILED) return no_memory("the trace cannot be mapped", errno);
    *address = mapped;
    return Status::good();
  });
}

Status TraceFile::extend(size_t bytes, const Piece& beginning, uint64_t* offset) {
  return append(bytes, [&](int fd) {
    *offset = end_;
    return write_all(fd, {end_ + beginning.offset, beginning.data, beginning.bytes});
  });
}

Status TraceFile::write(std::span<const Piece> pieces) const {
  const int fd = reopen();
  if (fd < 0) return refused(cannot_open, errno);
  Status status = Status::good();
  for (const Piece& piece : pieces)
    if (status.ok()) status = write_all(fd, piece);
  close(fd);
  return status;
}

void TraceFile::remove() const {
  unlink(path_);
}

}  // namespace stretto::trace
