#include "engine/pool.hpp"

#include <errno.h>
#include <string.h>

#include <bit>

#include "base/clock.hpp"
#include "platform/shared_memory.hpp"

namespace stretto::engine {
namespace {

constexpr uint64_t most_idle = uint64_t(64) << 20;  // freed memory beyond this goes back to the system
constexpr uint64_t page = 4096;

int class_of(uint64_t bytes) {
  int bits = bytes <= 1 ? 0 : std::bit_width(bytes - 1);
  return bits < smallest_class ? 0 : bits - smallest_class;
}

uint64_t extent_bytes(int size_class) {
  return uint64_t(1) << (size_class + smallest_class);
}

}  // namespace

Status Pool::initialise(PoolHeader* header, uint64_t first, uint64_t cap, uint64_t bytes) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  int error = pthread_mutex_init(&header->lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
  if (error) return refused("no process-shared lock", error);
  header->next = first;
  header->cap = cap;
  header->bytes = bytes;
  return Status::good();
}

// Held for a moment only: to sleep would take longer.
bool Pool::lock() {
  constexpr int looks = 500;
  int error = pthread_mutex_trylock(&header_->lock);
  for (int look = 0; error == EBUSY && look < looks; ++look) {
    cpu_relax();
    error = pthread_mutex_trylock(&header_->lock);
  }
  if (error == EBUSY) error = pthread_mutex_lock(&header_->lock);
  if (error == EOWNERDEAD) {
    header_->broken = 1;  // the lists may be half changed: leave them alone from now on
    pthread_mutex_consistent(&header_->lock);
    error = 0;
  }
  if (error) return false;
  if (header_->broken) pthread_mutex_unlock(&header_->lock);
  return !header_->broken;
}

// Under the lock: the newest free extent of the class, else a new one. *used: it is not.
uint64_t Pool::take(int size_class, bool* used) {
  uint64_t offset = header_->free[size_class], size = extent_bytes(size_class);
  *used = offset != 0;
  if (offset != 0) {
    auto* first_word = static_cast<uint64_t*>(segment_->at(offset));
    if (first_word == nullptr) return 0;
    header_->free[size_class] = *first_word;
    header_->idle -= size;
    return offset;
  }
  offset = (header_->next + size - 1) / size * size;
  if (offset + size > header_->bytes) return 0;
  header_->next = offset + size;
  return offset;
}

// Under the lock. *used: somebody has had it before.
uint64_t Pool::take_within_cap(uint64_t bytes, bool* used) {
  *used = false;
  const int size_class = class_of(bytes);
  if (size_class >= class_count || header_->in_use + bytes > header_->cap) return 0;
  const uint64_t offset = take(size_class, used);
  if (offset != 0) header_->in_use += bytes;
  return offset;
}

// Of what was used before, and so is mapped here.
void Pool::clear(uint64_t offset, uint64_t bytes) {
  memset(segment_->at(offset), 0, bytes);
}

uint64_t Pool::allocate(uint64_t bytes, bool* used) {
  if (!lock()) return 0;
  bool had;
  const uint64_t offset = take_within_cap(bytes, &had);
  pthread_mutex_unlock(&header_->lock);
  if (used != nullptr) *used = had;
  return offset;
}

uint64_t Pool::allocate_once(std::atomic<uint64_t>& place, uint64_t bytes, Contents contents, uint32_t note, uint32_t none) {
  if (!lock()) return place.load(std::memory_order_acquire);
  uint64_t found = place.load(std::memory_order_acquire);
  if (found == 0) {
    bool used;
    const uint64_t offset = take_within_cap(bytes, &used);
    if (offset != 0 && used && contents == Contents::zeros) clear(offset, bytes);
    found = offset != 0 ? offset | note : none;
    place.store(found, std::memory_order_release);
  }
  pthread_mutex_unlock(&header_->lock);
  return found;
}

void Pool::release(uint64_t offset, uint64_t bytes) {
  int size_class = class_of(bytes);
  char* address = static_cast<char*>(segment_->at(offset));
  if (!lock()) return;
  uint64_t size = extent_bytes(size_class);
  header_->in_use -= bytes;
  if (address == nullptr) {  // this process cannot map it, so nothing can be written there: it is not used again
    pthread_mutex_unlock(&header_->lock);
    return;
  }
  header_->idle += size;
  bool discard = header_->idle > most_idle && size > page;
  if (discard) platform::discard_shared_pages(address + page, size - page);
  *reinterpret_cast<uint64_t*>(address) = header_->free[size_class];
  header_->free[size_class] = offset;
  pthread_mutex_unlock(&header_->lock);
}

}  // namespace stretto::engine
