#include "arena/next.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <atomic>

namespace stretto::arena {
namespace {

constexpr const char* names[] = {"malloc",         "free",     "calloc", "realloc", "aligned_alloc",
                                 "posix_memalign", "memalign", "valloc", "pvalloc", "malloc_usable_size"};
constexpr size_t name_count = sizeof names / sizeof names[0];
static_assert(sizeof(Allocator) == name_count * sizeof(void*));

// Serves what dlsym asks for while it looks up. Zeroed, and handed out once.
alignas(64) char early_buffer[64 << 10];
std::atomic<size_t> early_used{0};
constexpr size_t header = 16;  // holds the size

void* early_malloc(size_t bytes) {
  size_t room = (bytes + header + 63) / 64 * 64;
  size_t at = bytes > sizeof early_buffer ? sizeof early_buffer : early_used.fetch_add(room);
  if (at + room > sizeof early_buffer) {
    errno = ENOMEM;
    return nullptr;
  }
  char* block = early_buffer + at;
  memcpy(block, &bytes, sizeof bytes);
  return block + header;
}

void early_free(void*) {}

void* early_calloc(size_t count, size_t bytes) {
  size_t all;
  return __builtin_mul_overflow(count, bytes, &all) ? nullptr : early_malloc(all);
}

size_t early_size(void* block) {
  size_t bytes = 0;
  if (block != nullptr) memcpy(&bytes, static_cast<char*>(block) - header, sizeof bytes);
  return bytes;
}

void* early_realloc(void* block, size_t bytes) {
  void* moved = early_malloc(bytes);
  if (moved != nullptr && block != nullptr) memcpy(moved, block, std::min(bytes, early_size(block)));
  return moved;
}

void* early_aligned(size_t, size_t) {
  errno = ENOMEM;
  return nullptr;
}
int early_posix(void**, size_t, size_t) {
  return ENOMEM;
}
void* early_page(size_t bytes) {
  return early_aligned(0, bytes);
}

constexpr Allocator early = {early_malloc, early_free,    early_calloc, early_realloc, early_aligned,
                             early_posix,  early_aligned, early_page,   early_page,    early_size};

Allocator next;
std::atomic<bool> known{false};
__attribute__((tls_model("initial-exec"))) constinit thread_local bool looking = false;

const Allocator& look_up() {
  if (looking) return early;
  looking = true;
  int error = errno;
  void* found[name_count];
  for (size_t i = 0; i < name_count; ++i) found[i] = dlsym(RTLD_NEXT, names[i]);
  memcpy(&next, found, sizeof next);
  errno = error;
  looking = false;
  known.store(true, std::memory_order_release);
  return next;
}

const void* object_with(void* address) {
  Dl_info info;
  return address != nullptr && dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

}  // namespace

const Allocator& next_allocator() {
  return __builtin_expect(known.load(std::memory_order_acquire), true) ? next : look_up();
}

bool is_early(const void* address) {
  auto* byte = static_cast<const char*>(address);
  return byte >= early_buffer && byte < early_buffer + sizeof early_buffer;
}

bool alone(void* const (&functions)[10]) {
  void* behind[name_count];
  memcpy(behind, &next_allocator(), sizeof behind);
  const void* libc = object_with(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
  for (size_t i = 0; i < name_count; ++i) {
    if (dlsym(RTLD_DEFAULT, names[i]) != functions[i]) return false;
    if (behind[i] == nullptr || object_with(behind[i]) != libc) return false;
  }
  return libc != nullptr;
}

}  // namespace stretto::arena
