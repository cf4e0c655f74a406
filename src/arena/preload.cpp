// libstretto_arena.so: stands in front of libc's allocator and serves large blocks from the arena.
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "arena/arena.hpp"
#include "arena/next.hpp"
#include "platform/parse.hpp"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace stretto::arena {
namespace {

size_t large = 64 << 10;  // bytes; smaller requests are libc's

// untried until the first large block: most processes that inherit the preload (shells, launchers) never ask for one.
enum State : int { off, untried, open };
std::atomic<int> state{off};
const char* why = "libstretto_arena.so has not been initialised";
constinit pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
__attribute__((tls_model("initial-exec"))) constinit thread_local bool inside = false;

// Never destroyed: blocks are used until the very end.
union Forever {
  Arena arena;
  constexpr Forever() : arena() {}
  ~Forever() {}
};
constinit Forever forever;
Arena& arena() {
  return forever.arena;
}

// What opening the arena allocates comes from libc.
bool open_now() {
  if (inside) return false;
  inside = true;
  int error = errno;
  pthread_mutex_lock(&opening);
  if (state.load() == untried) {
    Status status = platform::may_reserve();
    if (status.ok()) status = arena().open(default_limits());
    if (!status.ok()) why = status.what;
    state.store(status.ok() ? open : off);
  }
  pthread_mutex_unlock(&opening);
  errno = error;
  inside = false;
  return state.load() == open;
}

bool ready() {
  int now = state.load(std::memory_order_acquire);
  return now == open || (now == untried && open_now());
}

bool is_power_of_two(size_t value) {
  return value != 0 && (value & (value - 1)) == 0;
}

// Null: libc's affair.
void* allocate(size_t bytes, size_t alignment, bool* zeroed) {
  return ready() ? arena().allocate(bytes, alignment, zeroed) : nullptr;
}

void* allocate_large(size_t bytes, size_t alignment = page_bytes) {
  bool zeroed;
  return bytes >= large && is_power_of_two(alignment) ? allocate(bytes, alignment, &zeroed) : nullptr;
}

[[noreturn]] void wrong_pointer(const char* function) {
  constexpr char text[] = "(): invalid pointer, or freed before (in Stretto's arena)\n";
  if (write(STDERR_FILENO, function, strlen(function)) < 0 || write(STDERR_FILENO, text, sizeof text - 1) < 0) abort();
  abort();
}

void before_fork() {
  pthread_mutex_lock(&opening);
  arena().before_fork();
}
void after_fork_in_parent() {
  pthread_mutex_unlock(&opening);
  arena().after_fork_in_parent();
}
void after_fork_in_child() {
  arena().after_fork_in_child();
  pthread_mutex_unlock(&opening);
}

// From the arena to libc, or from one place in the arena to another.
void* moved(void* block, size_t bytes, size_t usable) {
  void* made = malloc(bytes);
  if (made == nullptr) return nullptr;
  memcpy(made, block, std::min(bytes, usable));
  free(block);
  return made;
}

void* resize_in_arena(void* block, size_t bytes) {
  size_t usable = arena().usable(block);
  if (usable == 0) wrong_pointer("realloc");
  if (bytes == 0) {
    free(block);
    return nullptr;
  }
  if (bytes >= large && arena().resize(block, bytes)) return block;
  return moved(block, bytes, usable);
}

// Null: it stays with libc.
void* resize_into_arena(void* block, size_t bytes) {
  void* made = allocate_large(bytes);
  if (made == nullptr) return nullptr;
  memcpy(made, block, std::min(bytes, next_allocator().malloc_usable_size(block)));
  free(block);
  return made;
}

}  // namespace
}  // namespace stretto::arena

using namespace stretto::arena;

EXPORTED void* malloc(size_t bytes) {
  void* block = allocate_large(bytes);
  return block != nullptr ? block : next_allocator().malloc(bytes);
}

EXPORTED void free(void* block) {
  if (arena().holds(block)) {
    if (!arena().release(block)) wrong_pointer("free");
    return;
  }
  if (block != nullptr && !is_early(block)) next_allocator().free(block);
}

EXPORTED void* calloc(size_t count, size_t bytes) {
  size_t all;
  bool zeroed = false;
  if (__builtin_mul_overflow(count, bytes, &all) || all < large) return next_allocator().calloc(count, bytes);
  void* block = allocate(all, page_bytes, &zeroed);
  if (block == nullptr) return next_allocator().calloc(count, bytes);
  return zeroed ? block : memset(block, 0, all);
}

EXPORTED void* realloc(void* block, size_t bytes) {
  if (block == nullptr) return malloc(bytes);
  if (arena().holds(block)) return resize_in_arena(block, bytes);
  if (is_early(block)) return moved(block, bytes, 0);
  void* made = bytes >= large ? resize_into_arena(block, bytes) : nullptr;
  return made != nullptr ? made : next_allocator().realloc(block, bytes);
}

EXPORTED void* aligned_alloc(size_t alignment, size_t bytes) {
  void* block = allocate_large(bytes, alignment);
  return block != nullptr ? block : next_allocator().aligned_alloc(alignment, bytes);
}

EXPORTED int posix_memalign(void** result, size_t alignment, size_t bytes) {
  void* block = alignment % sizeof(void*) == 0 ? allocate_large(bytes, alignment) : nullptr;
  if (block == nullptr) return next_allocator().posix_memalign(result, alignment, bytes);
  *result = block;
  return 0;
}

EXPORTED void* memalign(size_t alignment, size_t bytes) {
  void* block = allocate_large(bytes, alignment);
  return block != nullptr ? block : next_allocator().memalign(alignment, bytes);
}

EXPORTED void* valloc(size_t bytes) {
  void* block = allocate_large(bytes);
  return block != nullptr ? block : next_allocator().valloc(bytes);
}

EXPORTED void* pvalloc(size_t bytes) {
  void* block = allocate_large(bytes);
  return block != nullptr ? block : next_allocator().pvalloc(bytes);
}

EXPORTED size_t malloc_usable_size(void* block) {
  if (arena().holds(block)) return arena().usable(block);
  return block == nullptr || is_early(block) ? 0 : next_allocator().malloc_usable_size(block);
}

// Newer C libraries free by size; they would take such a block for one of their own.
EXPORTED void free_sized(void* block, size_t) {
  free(block);
}
EXPORTED void free_aligned_sized(void* block, size_t, size_t) {
  free(block);
}

EXPORTED void stretto_arena(View* view) {
  if (view->version != interface_version) return;
  if (ready())
    *view = arena().view();
  else
    view->why = why;
}

namespace stretto::arena {
namespace {

// Also STRETTO_ARENA_KIB; a value that is no number is complained of where all settings are read.
bool is_on(char** environment) {
  constexpr char from[] = "STRETTO_ARENA_KIB=";
  bool on = false;
  for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    on = on || strcmp(*entry, "STRETTO_ARENA=on") == 0;
    if (strncmp(*entry, from, sizeof from - 1) != 0) continue;
    uint64_t kib;
    if (platform::parse_number(*entry + sizeof from - 1, &kib) && kib >= 1 && kib <= 1 << 20) large = kib << 10;
  }
  return on;
}

// Runs before the initialisers of all other libraries (linked with -z initfirst): so the handlers around fork stand first, and in
// a child no other handler writes to the arena before it is private.
// Also before libc's own, so getenv does not work yet.
__attribute__((constructor)) void begin(int, char**, char** environment) {
  void* const own[] = {reinterpret_cast<void*>(&::malloc),        reinterpret_cast<void*>(&::free),
                       reinterpret_cast<void*>(&::calloc),        reinterpret_cast<void*>(&::realloc),
                       reinterpret_cast<void*>(&::aligned_alloc), reinterpret_cast<void*>(&::posix_memalign),
                       reinterpret_cast<void*>(&::memalign),      reinterpret_cast<void*>(&::valloc),
                       reinterpret_cast<void*>(&::pvalloc),       reinterpret_cast<void*>(&::malloc_usable_size)};
  if (!is_on(environment))
    why = "STRETTO_ARENA is not on";
  else if (!alone(own))
    why = "the program brings an allocator of its own";
  else if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)
    why = "no memory for the handlers around fork";
  else
    state.store(untried, std::memory_order_release);
}

}  // namespace
}  // namespace stretto::arena
