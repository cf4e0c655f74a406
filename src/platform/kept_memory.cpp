#include "platform/kept_memory.hpp"

#include <stdlib.h>
#include <sys/mman.h>

#include <bit>
#include <mutex>

namespace stretto::platform {
namespace {

struct Block {
  char* begin = nullptr;
  size_t bytes = 0;
  bool taken = false, asked = false;
};

constexpr int most_blocks = 64;
constexpr size_t huge_from = 4 << 20;
constexpr size_t page = 4096;

std::mutex mutex;  // of what follows
Block blocks[most_blocks];
int count = 0;
size_t total = 0;

// In steps of a quarter of a power of two, so that calls of similar sizes share blocks.
size_t rounded(size_t bytes) {
  const size_t step = std::bit_ceil(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

// Short ones do not take what long ones may want beside them.
Block* smallest_free(size_t bytes) {
  constexpr size_t most_times = 4;
  Block* best = nullptr;
  for (Block* block = blocks; block != blocks + count; ++block) {
    if (block->taken || block->bytes < bytes || block->bytes / most_times > bytes) continue;
    if (best == nullptr || block->bytes < best->bytes) best = block;
  }
  return best;
}

Block* make(size_t bytes) {
  if (count == most_blocks || bytes > most_kept - total) return nullptr;
  void* begin = aligned_alloc(page, bytes);  // in the arena, where there is one
  if (begin == nullptr) return nullptr;
  if (bytes >= huge_from) madvise(begin, bytes, MADV_HUGEPAGE);  // peers copy twice as fast from there
  madvise(begin, bytes, MADV_DONTFORK);                          // else this process might go on with copies of what is locked
  total += bytes;
  blocks[count] = {static_cast<char*>(begin), bytes};
  return &blocks[count++];
}

}  // namespace

char* take_kept(size_t bytes) {
  if (bytes < least_kept || bytes > most_kept) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  Block* block = smallest_free(bytes);
  if (block == nullptr) block = make(rounded(bytes));
  if (block == nullptr) return nullptr;
  block->taken = true;
  return block->begin;
}

void give_back_kept(char* block) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (int i = 0; i < count; ++i)
    if (blocks[i].begin == block) blocks[i].taken = false;
}

Pages not_yet_locked(const void* host) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (Block* block = blocks; block != blocks + count; ++block) {
    if (host < block->begin || host >= block->begin + block->bytes || block->asked) continue;
    block->asked = true;
    return {block->begin, block->bytes};
  }
  return {};
}

}  // namespace stretto::platform
