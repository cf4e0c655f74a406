#include "arena/arena.hpp"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "platform/shared_memory.hpp"

namespace stretto::arena {
namespace {

constexpr uint64_t smallest_range = uint64_t(256) << 20;
constexpr uint64_t least_range = uint64_t(64) << 30;
constexpr uint64_t largest_range = uint64_t(256) << 30;  // of the 128 TiB there are, 400 ranks of a node map 400 of them
constexpr uint64_t most_idle = uint64_t(256) << 20;

class Locked {
 public:
  explicit Locked(pthread_mutex_t& lock) : lock_(lock), error_(errno) { pthread_mutex_lock(&lock_); }
  ~Locked() {
    pthread_mutex_unlock(&lock_);
    errno = error_;
  }
  Locked(const Locked&) = delete;

 private:
  pthread_mutex_t& lock_;
  int error_;
};

constexpr uint64_t pages_for(size_t bytes) {
  return bytes / page_bytes + (bytes % page_bytes != 0);
}

}  // namespace

Limits default_limits() {
  uint64_t memory = platform::physical_memory();
  uint64_t range = least_range;
  while (range < largest_range && range < memory) range *= 2;
  return {.range = range, .used = memory, .idle = std::min(most_idle, memory / 64)};
}

Status Arena::open(const Limits& limits) {
  // What is given back, or copied on a fork, is so by the system's pages.
  if (sysconf(_SC_PAGESIZE) != long(page_bytes)) return refused("the arena needs pages of 4 KiB");
  int fd = -1;
  Status status;
  uint64_t range = limits.range;
  for (;; range /= 4) {  // a limit on file sizes may ask for less
    status = platform::create_sparse_object("stretto-arena", range, &fd);
    if (status.ok() || range / 4 < smallest_range) break;
  }
  STRETTO_TRY(status);
  char* base = nullptr;
  status = platform::map_sparse_object(fd, range, platform::Inherited::yes, &base);
  if (status.ok() && !pages_.open(PageIndex(range / page_bytes))) {
    status = no_memory("no memory for the arena's table", ENOMEM);
    munmap(base, range);
  }
  if (!status.ok()) {
    ::close(fd);
    return status;
  }
  limits_ = limits;
  limits_.used = std::min(limits.used, range);
  fd_ = fd;
  object_ = platform::object_of(fd);
  base_.store(base, std::memory_order_relaxed);
  range_.store(range, std::memory_order_release);
  return Status::good();
}

void Arena::close() {
  if (range_ == 0) return;
  munmap(base_, range_);
  if (platform::object_of(fd_) == object_) ::close(fd_);
  range_ = 0;
}

// no_page: no used block begins there. Under the lock.
PageIndex Arena::page_of(const void* block) const {
  size_t offset = size_t(static_cast<const char*>(block) - base_.load(std::memory_order_relaxed));
  if (!holds(block) || offset % page_bytes != 0) return no_page;
  PageIndex page = PageIndex(offset / page_bytes);
  return pages_.is_block(page) ? page : no_page;
}

void* Arena::allocate(size_t bytes, size_t alignment, bool* zeroed) {
  size_t range = range_.load(std::memory_order_acquire);
  if (bytes == 0 || bytes > range || alignment > platform::huge_page) return nullptr;  // as the arena itself is aligned
  Locked guard(lock_);
  uint64_t pages = pages_for(bytes), between = std::max<uint64_t>(pages_for(alignment), 1);
  if ((pages_.used() + pages) * page_bytes > limits_.used) return nullptr;
  PageIndex first = pages_.take(PageIndex(pages), PageIndex(between), zeroed);
  if (first == no_page && pages_.idle() > 0) {  // ranges of several kinds lie beside one another: make them one kind
    discard_idle();
    first = pages_.take(PageIndex(pages), PageIndex(between), zeroed);
  }
  if (holds_parents_ && zeroed != nullptr) *zeroed = false;
  return first == no_page ? nullptr : at(first);
}

bool Arena::release(void* block) {
  PageIndex first, length;
  {
    Locked guard(lock_);
    first = page_of(block);
    if (first == no_page) return false;
    length = pages_.length(first);
    if ((pages_.idle() + length) * page_bytes <= limits_.idle) {
      pages_.give_back(first, false);
      return true;
    }
  }
  int error = errno;
  discard(first, length);  // while the block still counts as used, so that others need not wait
  errno = error;
  Locked guard(lock_);
  pages_.give_back(first, true);
  return true;
}

size_t Arena::usable(const void* block) const {
  Locked guard(lock_);
  PageIndex first = page_of(block);
  return first == no_page ? 0 : size_t(pages_.length(first)) * page_bytes;
}

bool Arena::resize(void* block, size_t bytes) {
  if (bytes == 0 || bytes > range_.load(std::memory_order_relaxed)) return false;
  Locked guard(lock_);
  PageIndex first = page_of(block);
  uint64_t pages = pages_for(bytes);
  if (first == no_page) return false;
  PageIndex length = pages_.length(first);
  if (pages > length && (pages_.used() + pages - length) * page_bytes > limits_.used) return false;
  if (!pages_.resize(first, PageIndex(pages))) return false;
  if (pages_.idle() * page_bytes > limits_.idle) discard_idle();
  return true;
}

// By address and not by descriptor, whose number may be another file's by now.
void Arena::discard(PageIndex first, PageIndex pages) {
  size_t bytes = size_t(pages) * page_bytes;
  if (madvise(at(first), bytes, shared_ ? MADV_REMOVE : MADV_DONTNEED) != 0) memset(at(first), 0, bytes);
}

void Arena::discard_idle() {
  for (PageIndex idle = pages_.next_idle(); idle != no_page; idle = pages_.next_idle()) {
    discard(idle, pages_.length(idle));
    pages_.now_clean(idle);
  }
}

View Arena::view() const {
  View view;
  Locked guard(lock_);
  view.base = base_.load(std::memory_order_relaxed);
  view.bytes = range_.load(std::memory_order_relaxed);
  if (view.bytes == 0)
    view.why = "there is no arena";
  else if (!shared_)
    view.why = "the process is a fork: its arena is private";
  else if (!(platform::object_of(fd_) == object_))
    view.why = "the program has closed the arena's descriptor";
  else
    view.fd = fd_;
  return view;
}

// Holes stay holes.
size_t Arena::copy_block(char* to, size_t begin, size_t end, bool sparse) const {
  const char* from = base_.load(std::memory_order_relaxed);
  size_t copied = 0;
  while (begin < end) {
    off_t data = sparse ? lseek(fd_, off_t(begin), SEEK_DATA) : off_t(begin);
    if (data < 0 && errno == ENXIO) break;  // none behind
    if (data < 0) sparse = false, data = off_t(begin);
    off_t hole = sparse ? lseek(fd_, data, SEEK_HOLE) : off_t(end);
    if (hole < 0) hole = off_t(end);
    size_t first = std::min(size_t(data), end), last = std::min(size_t(hole), end);
    memcpy(to + first, from + first, last - first);
    copied += last - first;
    begin = std::max(last, begin + 1);
  }
  return copied;
}

size_t Arena::copy_used(char* to) const {
  size_t copied = 0;
  bool sparse = platform::object_of(fd_) == object_;
  for (PageIndex page = pages_.next_used(0); page != no_page;) {
    PageIndex length = pages_.length(page);
    copied += copy_block(to, size_t(page) * page_bytes, (size_t(page) + length) * page_bytes, sparse);
    page = pages_.next_used(page + length);
  }
  return copied;
}

void Arena::before_fork() {
  if (shared_ && holds(__builtin_frame_address(0))) {
    constexpr char text[] =
        "stretto: fork() on a stack that lies in the arena: parent and child would share it; run without --arena\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) > 0) abort();
    abort();
  }
  pthread_mutex_lock(&lock_);
  if (range_ == 0 || !shared_) return;
  int error = errno;
  void* room = mmap(nullptr, range_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room != MAP_FAILED) {
    snapshot_ = static_cast<char*>(room);
    const uint64_t began = now_ns();
    fork_bytes_ += copy_used(snapshot_);
    fork_ns_ += now_ns() - began;
  }
  errno = error;
}

void Arena::after_fork_in_parent() {
  int error = errno;
  if (snapshot_ != nullptr) munmap(snapshot_, range_);
  snapshot_ = nullptr;
  const bool tells = shared_ && !told_ && fork_ns_ >= limits_.untold_ns;
  told_ |= tells;
  const double gib = double(fork_bytes_) * 0x1p-30, seconds = double(fork_ns_) * 1e-9;
  pthread_mutex_unlock(&lock_);
  if (tells)
    log(Level::warning,
        "forks of process %d have copied %.1f GiB of the arena in all, in %.1f s: see docs/arena.md, or run without --arena",
        int(getpid()), gib, seconds);
  errno = error;
}

void Arena::after_fork_in_child() {
  int error = errno;
  if (range_ != 0 && shared_) {
    void* base = base_;
    void* moved = MAP_FAILED;
    if (snapshot_ != nullptr) moved = mremap(snapshot_, range_, range_, MREMAP_MAYMOVE | MREMAP_FIXED, base);
    bool own_object = platform::object_of(fd_) == object_;
    // No room for a copy: then writes at least are the child's own, page by page.
    holds_parents_ = moved == MAP_FAILED;
    if (moved == MAP_FAILED && own_object)
      moved = mmap(base, range_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, fd_, 0);
    if (moved == MAP_FAILED) {
      constexpr char text[] = "stretto: no memory to give a forked process an arena of its own\n";
      if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(126);
      _exit(126);
    }
    if (own_object) ::close(fd_);
    fd_ = -1;
    shared_ = false;
    snapshot_ = nullptr;
  }
  errno = error;
  pthread_mutex_unlock(&lock_);
}

}  // namespace stretto::arena
