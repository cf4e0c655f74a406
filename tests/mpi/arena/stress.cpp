// A program that does to its allocator what programs do: threads that take, resize, clear, pass on and free blocks of all sizes,
// some by the wrong thread, with children forked in between. Every block holds a pattern that is compared before it goes.
//
// usage: stress STEPS. Prints who serves large blocks, then "right" or what was wrong.
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace {

struct Block {
  char* data = nullptr;
  size_t bytes = 0;
  uint64_t seed = 0;
};

std::atomic<int> wrong{0};
std::atomic<uint64_t> next_seed{1};
std::mutex shelf_lock;
std::vector<Block> shelf;  // blocks that change hands

void fail(const char* what) {
  if (wrong++ < 10) fprintf(stderr, "FAILED: %s\n", what);
}

char byte_at(uint64_t seed, size_t i) {
  return char(seed * 31 + i / 4096 * 7 + 1);
}

// The ends and one byte a page.
template <class Visit>
void each(const Block& block, Visit visit) {
  for (size_t i = 0; i < block.bytes; i += 4096) visit(i);
  if (block.bytes > 0) visit(block.bytes - 1);
}

void fill(Block& block) {
  block.seed = next_seed++;
  each(block, [&](size_t i) { block.data[i] = byte_at(block.seed, i); });
}

bool intact(const Block& block, size_t upto) {
  bool good = true;
  each({block.data, std::min(block.bytes, upto), block.seed}, [&](size_t i) {
    if (i != std::min(block.bytes, upto) - 1 || upto >= block.bytes) good = good && block.data[i] == byte_at(block.seed, i);
  });
  return good;
}

size_t random_size(std::mt19937_64& random) {
  size_t limits[] = {100, 70'000, 200'000, 3'000'000};
  return 1 + random() % limits[random() % 4];
}

Block take(std::mt19937_64& random) {
  Block block;
  block.bytes = random_size(random);
  size_t alignment = size_t(1) << (4 + random() % 14);
  switch (random() % 7) {
    case 0:
      block.data = static_cast<char*>(calloc(block.bytes, 1));
      for (size_t i = 0; i < block.bytes; i += 61)
        if (block.data[i] != 0) return fail("calloc gave a byte that is not zero"), block;
      break;
    case 1:
      block.data = static_cast<char*>(aligned_alloc(alignment, (block.bytes + alignment - 1) / alignment * alignment));
      if (reinterpret_cast<uintptr_t>(block.data) % alignment != 0) fail("aligned_alloc did not align");
      break;
    case 2: {
      void* data = nullptr;
      if (posix_memalign(&data, alignment, block.bytes) != 0) fail("posix_memalign");
      block.data = static_cast<char*>(data);
      if (reinterpret_cast<uintptr_t>(data) % alignment != 0) fail("posix_memalign did not align");
      break;
    }
    case 3:
      block.data = static_cast<char*>(memalign(alignment, block.bytes));
      break;
    case 4:
      block.data = static_cast<char*>(valloc(block.bytes));
      if (reinterpret_cast<uintptr_t>(block.data) % 4096 != 0) fail("valloc did not align");
      break;
    default:
      block.data = static_cast<char*>(malloc(block.bytes));
  }
  if (block.data == nullptr) return fail("no memory"), Block{};
  if (malloc_usable_size(block.data) < block.bytes) fail("malloc_usable_size");
  fill(block);
  return block;
}

void drop(Block& block) {
  if (!intact(block, SIZE_MAX)) fail("a block changed before it was freed");
  free(block.data);
}

void resize(std::mt19937_64& random, Block& block) {
  size_t bytes = random_size(random), old = block.bytes;
  char* moved = static_cast<char*>(realloc(block.data, bytes));
  if (moved == nullptr) return fail("realloc");
  block.data = moved;
  block.bytes = std::min(old, bytes);
  Block kept = block;
  if (bytes < old) kept.bytes = bytes / 4096 * 4096;  // the old last byte is gone
  if (bytes < old ? !intact({kept.data, old, kept.seed}, kept.bytes) : !intact(kept, SIZE_MAX)) fail("realloc lost bytes");
  block.bytes = bytes;
  fill(block);
}

bool forked = false;  // a child knows nothing of what the other threads were doing

void swap_with_shelf(std::mt19937_64& random, Block& block) {
  if (forked) return;
  std::lock_guard<std::mutex> guard(shelf_lock);
  if (shelf.size() < 16) shelf.push_back(take(random));
  std::swap(shelf[random() % shelf.size()], block);
}

void work(unsigned seed, int steps) {
  std::mt19937_64 random(seed);
  std::vector<Block> own;
  for (int step = 0; step < steps; ++step) {
    if (own.size() < 4 || (own.size() < 40 && random() % 2)) own.push_back(take(random));
    std::swap(own[random() % own.size()], own.back());
    switch (random() % 4) {
      case 0:
        drop(own.back());
        own.pop_back();
        break;
      case 1:
        resize(random, own.back());
        break;
      case 2:
        swap_with_shelf(random, own.back());
        break;
      default:
        if (!intact(own.back(), SIZE_MAX)) fail("a block changed");
    }
  }
  for (Block& block : own) drop(block);
}

// A child that frees, changes and makes blocks of its own; the parent's stay as they are.
void fork_once(std::mt19937_64& random) {
  std::vector<Block> mine;
  for (int i = 0; i < 6; ++i) mine.push_back(take(random));
  pid_t child = fork();
  if (child == 0) {
    wrong = 0;
    forked = true;
    for (Block& block : mine) {
      if (!intact(block, SIZE_MAX)) fail("a block differs in the child");
      memset(block.data, 0x77, block.bytes);
    }
    for (size_t i = 0; i < mine.size(); i += 2) free(mine[i].data);
    work(unsigned(getpid()), 60);
    _exit(wrong != 0);
  }
  for (Block& block : mine) fill(block);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) fail("the child");
  for (Block& block : mine) drop(block);
}

// Whether a large block lies in the arena.
bool served() {
  void* block = malloc(1 << 20);
  uintptr_t address = reinterpret_cast<uintptr_t>(block);
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512];
  bool found = false;
  while (maps != nullptr && fgets(line, sizeof line, maps) != nullptr) {
    unsigned long from, to;
    if (strstr(line, "memfd:stretto-arena") != nullptr && sscanf(line, "%lx-%lx", &from, &to) == 2)
      found = found || (from <= address && address < to);
  }
  if (maps != nullptr) fclose(maps);
  free(block);
  return found;
}

}  // namespace

int main(int, char** arguments) {
  int steps = atoi(arguments[1]);
  puts(served() ? "served by the arena" : "served by libc");
  fflush(stdout);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) threads.emplace_back(work, t + 1, steps);
  std::mt19937_64 random(99);
  for (int i = 0; i < 8 + steps / 500; ++i) fork_once(random);
  for (auto& thread : threads) thread.join();
  for (Block& block : shelf) drop(block);
  puts(wrong == 0 ? "right" : "wrong");
  return wrong != 0;
}
