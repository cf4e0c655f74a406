#include "trace/recorder.hpp"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include "trace/layout.hpp"
#include "trace/memory.hpp"

namespace stretto::trace {

__attribute__((tls_model("initial-exec"))) constinit thread_local FunctionCell* own_functions = nullptr;

namespace {

constexpr uint32_t shared_block = thread_blocks - 1;
constexpr uint64_t owned_blocks = (uint64_t(1) << shared_block) - 1;

Header no_record;
Layout layout;
std::atomic<char*> memory{nullptr};               // the record, once it is open
std::atomic<uint64_t> free_blocks{owned_blocks};  // bit i: block i belongs to no thread
bool loose = false;                               // it was to be a file, and is none
pthread_key_t thread_end;

// The block this thread counts into.
struct OwnBlock {
  char* base;
  bool shared;
};
__attribute__((tls_model("initial-exec"))) thread_local OwnBlock own{nullptr, false};

char* block_at(uint32_t index) {
  return memory.load(std::memory_order_acquire) + layout.blocks() + index * layout.block_bytes();
}

void note_block_used(uint32_t index) {
  std::atomic_ref<uint32_t> used(header()->blocks_used);
  uint32_t seen = used.load(std::memory_order_relaxed);
  while (seen <= index && !used.compare_exchange_weak(seen, index + 1, std::memory_order_relaxed)) {
  }
}

// Takes the first free block, or the shared one when all have owners.
uint32_t take_block() {
  uint64_t free = free_blocks.load(std::memory_order_acquire);
  while (free != 0) {
    const uint64_t first = free & -free;
    if (free_blocks.compare_exchange_weak(free, free & ~first, std::memory_order_acquire))
      return uint32_t(__builtin_ctzll(first));
  }
  return shared_block;
}

// A thread that ends leaves its block, counts and all, to the next thread.
void give_block_back(void* numbered) {
  own = {nullptr, false};
  own_functions = nullptr;
  const uint64_t index = reinterpret_cast<uintptr_t>(numbered) - 1;
  free_blocks.fetch_or(uint64_t(1) << index, std::memory_order_release);
}

// False before open_record: such counts are lost.
__attribute__((noinline)) bool join() {
  if (!memory.load(std::memory_order_acquire)) return false;
  const uint32_t index = take_block();
  if (index != shared_block) pthread_setspecific(thread_end, reinterpret_cast<void*>(uintptr_t(index) + 1));
  note_block_used(index);
  own = {block_at(index), index == shared_block};
  own_functions = own.shared ? nullptr : reinterpret_cast<FunctionCell*>(own.base);
  return true;
}

inline bool joined() {
  return __builtin_expect(own.base != nullptr, 1) || join();
}

// The owner of a block is its only writer, so no read-modify-write is needed; readers see whole words.
inline void add(const OwnBlock& block, uint64_t& cell, uint64_t amount) {
  std::atomic_ref<uint64_t> word(cell);
  if (__builtin_expect(block.shared, 0)) {
    word.fetch_add(amount, std::memory_order_relaxed);
  } else {
    word.store(word.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
}

template <class Cell>
inline Cell& cell_at(const OwnBlock& block, size_t offset, size_t index) {
  return reinterpret_cast<Cell*>(block.base + offset)[index];
}

void write_names(char* to, const char* const* names, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) snprintf(to + i * name_bytes, name_bytes, "%s", names[i]);
}

void write_header(Header* header, const Tables& tables) {
  header->version = record_version;
  header->header_bytes = sizeof(Header);
  header->world_rank = -1;
  header->pid = getpid();
  header->start_ticks = header->last_ticks = ticks();
  header->start_ns = header->last_ns = now_ns();
  header->functions = tables.function_count;
  header->reasons = tables.reason_count;
  header->algorithms = tables.algorithm_count;
  header->blocks = thread_blocks;
}

// The magic comes last: a file without it is not complete.
void write_tables(char* base, const Tables& tables) {
  Header* header = reinterpret_cast<Header*>(base);
  write_header(header, tables);
  write_names(base + layout.function_names(), tables.functions, tables.function_count);
  write_names(base + layout.reason_names(), tables.reasons, tables.reason_count);
  write_names(base + layout.algorithm_names(), tables.algorithms, tables.algorithm_count);
  uint64_t magic;
  static_assert(sizeof magic == sizeof record_magic);
  memcpy(&magic, record_magic, sizeof magic);
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(header->magic)).store(magic, std::memory_order_release);
}

}  // namespace

Status open_record(const char* directory, const Tables& tables) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (memory.load(std::memory_order_relaxed)) return invalid("the record is open already");
  if (pthread_key_create(&thread_end, give_block_back) != 0) return no_memory("no thread-specific key for the record");
  layout = {tables.function_count, tables.reason_count, tables.algorithm_count};
  void* base = nullptr;
  const Status status = directory ? map_new_file(directory, layout.total(), &base) : Status::good();
  if (!base) STRETTO_TRY(map_anonymous(layout.total(), &base));
  loose = !status.ok();
  write_tables(static_cast<char*>(base), tables);
  memory.store(static_cast<char*>(base), std::memory_order_release);
  return status;
}

LooseRecord loose_record() {
  const char* base = memory.load(std::memory_order_acquire);
  return base && loose ? LooseRecord{base, layout.total()} : LooseRecord{};
}

Header* header() {
  char* base = memory.load(std::memory_order_acquire);
  return base ? reinterpret_cast<Header*>(base) : &no_record;
}

void calibrate() {
  header()->last_ticks = ticks();
  header()->last_ns = now_ns();
}

void after_fork_child() {
  loose = false;  // the parent's to send
  char* base = memory.load(std::memory_order_relaxed);
  if (!base) return;
  if (!make_private(base, layout.total(), layout.blocks()).ok()) {
    memory.store(nullptr, std::memory_order_relaxed);
    own = {nullptr, false};
    own_functions = nullptr;
    return;
  }
  // Only the forking thread lives on; it keeps its block.
  const bool owner = own.base && !own.shared;
  const size_t index = owner ? size_t(own.base - block_at(0)) / layout.block_bytes() : shared_block;
  free_blocks.store(owner ? owned_blocks & ~(uint64_t(1) << index) : owned_blocks, std::memory_order_relaxed);
  header()->pid = getpid();
}

namespace {

// `block`: a copy of `own`, which the compiler need not read again behind every store.
inline void add_call(const OwnBlock block, uint32_t function, uint64_t spent_ticks, uint64_t bytes) {
  if (function >= layout.functions) return;
  FunctionCell& cell = cell_at<FunctionCell>(block, 0, function);
  add(block, cell.calls, 1);
  add(block, cell.ticks, spent_ticks);
  if (bytes) add(block, cell.bytes, bytes);
}

inline void add_declined(const OwnBlock block, uint32_t kind, uint32_t reason, uint64_t spent_ticks, uint64_t bytes) {
  if (kind >= kinds) return;
  KindCell& cell = cell_at<KindCell>(block, layout.kind_cells(), kind);
  add(block, cell.declined_calls, 1);
  if (bytes) add(block, cell.declined_bytes, bytes);
  add(block, cell.declined_ticks, spent_ticks);
  if (reason < layout.reasons) add(block, cell_at<uint64_t>(block, layout.declines(), size_t(kind) * layout.reasons + reason), 1);
}

inline void add_accelerated(const OwnBlock block, uint32_t kind, uint32_t algorithm, uint64_t spent_ticks, uint64_t bytes) {
  if (kind >= kinds) return;
  KindCell& cell = cell_at<KindCell>(block, layout.kind_cells(), kind);
  add(block, cell.accelerated_calls, 1);
  add(block, cell.accelerated_bytes, bytes);
  add(block, cell.accelerated_ticks, spent_ticks);
  if (algorithm < layout.algorithms)
    add(block, cell_at<uint64_t>(block, layout.ran(), size_t(kind) * layout.algorithms + algorithm), 1);
}

}  // namespace

ArrivalCell* arrival_cell(uint64_t identity, uint32_t rank, uint32_t size) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  char* base = memory.load(std::memory_order_acquire);
  if (!base) return nullptr;
  auto* cells = reinterpret_cast<ArrivalCell*>(base + layout.arrivals());
  for (ArrivalCell* cell = cells; cell < cells + arrival_cells; ++cell) {
    if (cell->size == 0) {
      cell->identity = identity;
      cell->rank = rank;
      cell->size = size;
    }
    if (cell->identity == identity && cell->rank == rank && cell->size == size) return cell;
  }
  return nullptr;
}

Totals totals() {
  Totals sum;
  if (!memory.load(std::memory_order_acquire)) return sum;
  for (uint32_t block = 0; block < std::atomic_ref<uint32_t>(header()->blocks_used).load(std::memory_order_relaxed); ++block) {
    auto* cells = reinterpret_cast<FunctionCell*>(block_at(block));
    for (FunctionCell* cell = cells; cell < cells + layout.functions; ++cell) {
      sum.ticks += std::atomic_ref<uint64_t>(cell->ticks).load(std::memory_order_relaxed);
      sum.bytes += std::atomic_ref<uint64_t>(cell->bytes).load(std::memory_order_relaxed);
    }
  }
  return sum;
}

void tell_turn(const void* whose, uint64_t number, uint32_t calls_each, uint32_t size, Turn turn) {
  static std::mutex mutex;
  static const void* kept = nullptr;
  static uint64_t next = 0;
  const std::lock_guard<std::mutex> lock(mutex);
  char* base = memory.load(std::memory_order_acquire);
  if (!base) return;
  auto* cell = reinterpret_cast<TurnsCell*>(base + layout.turns());
  if (whose != kept || number != next) {  // a new communicator may stand where an old one stood
    if (number % 4 != 0 || (kept && number <= cell->count)) return;
    kept = whose;
    cell->calls_each = calls_each;
    cell->size = size;
    cell->count = 0;
  }
  cell->newest[cell->count % kept_turns] = turn;
  ++cell->count;
  next = number + 1;
}

void count_call(uint32_t function, uint64_t spent_ticks, uint64_t bytes) {
  if (joined()) add_call(own, function, spent_ticks, bytes);
}

void count_declined(uint32_t kind, uint32_t reason, uint64_t spent_ticks, uint64_t bytes) {
  if (joined()) add_declined(own, kind, reason, spent_ticks, bytes);
}

void count_declined_call(uint32_t function, uint32_t kind, uint32_t reason, uint64_t spent_ticks, uint64_t bytes) {
  if (!joined()) return;
  add_call(own, function, spent_ticks, bytes);
  add_declined(own, kind, reason, spent_ticks, bytes);
}

void count_accelerated(uint32_t kind, uint32_t algorithm, uint64_t spent_ticks, uint64_t bytes) {
  if (joined()) add_accelerated(own, kind, algorithm, spent_ticks, bytes);
}

// Apart, so that the first call of a thread costs the others no registers.
__attribute__((noinline, cold)) static void join_and_count_accelerated(uint32_t function, uint32_t kind, uint32_t algorithm,
                                                                       uint64_t spent_ticks, uint64_t bytes) {
  if (join()) count_accelerated_call(function, kind, algorithm, spent_ticks, bytes);
}

void count_accelerated_call(uint32_t function, uint32_t kind, uint32_t algorithm, uint64_t spent_ticks, uint64_t bytes) {
  const OwnBlock block = own;
  if (__builtin_expect(block.base == nullptr, 0))
    return join_and_count_accelerated(function, kind, algorithm, spent_ticks, bytes);
  add_call(block, function, spent_ticks, bytes);
  add_accelerated(block, kind, algorithm, spent_ticks, bytes);
}

}  // namespace stretto::trace
