// Counting calls: cheap enough for every MPI call, thread-safe without locks, alive after a kill.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "trace/record.hpp"

namespace stretto::trace {

struct Tables {
  const char* const* functions;
  uint32_t function_count;
  const char* const* reasons;
  uint32_t reason_count;
  const char* const* algorithms;
  uint32_t algorithm_count;
};

// Opens the process's record: a file `rank-<pid>.record` in `directory`, fully allocated first so that a full disk cannot kill
// the process; anonymous memory when directory is null or cannot be used (the Status says why; counting works all the same).
Status open_record(const char* directory, const Tables& tables);

// The record of a process that was to have a file and could not; empty of any other.
struct LooseRecord {
  const char* base = nullptr;
  size_t bytes = 0;
};
LooseRecord loose_record();

Header* header();         // never null after open_record; before, a static dummy
void calibrate();         // stamps last_ticks / last_ns
void after_fork_child();  // the child counts into memory of its own

// Hot path. `function` indexes Tables::functions.
void count_call(uint32_t function, uint64_t spent_ticks, uint64_t bytes);
void count_accelerated(uint32_t kind, uint32_t algorithm, uint64_t spent_ticks, uint64_t bytes);
void count_declined(uint32_t kind, uint32_t reason, uint64_t spent_ticks, uint64_t bytes);
// Together with count_call().
void count_accelerated_call(uint32_t function, uint32_t kind, uint32_t algorithm, uint64_t spent_ticks, uint64_t bytes);
void count_declined_call(uint32_t function, uint32_t kind, uint32_t reason, uint64_t spent_ticks, uint64_t bytes);

// The cells that the calling thread alone counts into; null: it has counted nothing yet, or shares them.
__attribute__((tls_model("initial-exec"))) extern constinit thread_local FunctionCell* own_functions;

// The same as count_call(function, spent_ticks, 0).
inline void count_passed(uint32_t function, uint64_t spent_ticks) {
  if (__builtin_expect(own_functions == nullptr, 0)) return count_call(function, spent_ticks, 0);
  FunctionCell& cell = own_functions[function];
  const auto add = [](uint64_t& word, uint64_t amount) {
    const std::atomic_ref<uint64_t> shown(word);
    shown.store(shown.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  };
  add(cell.calls, 1);
  if (spent_ticks) add(cell.ticks, spent_ticks);
}

// Where a communicator's arrivals are counted, by one thread at a time; the same cell for the same three numbers. Null: there is
// no record, or no cell left.
ArrivalCell* arrival_cell(uint64_t identity, uint32_t rank, uint32_t size);

// Of all MPI calls so far, in all threads.
struct Totals {
  uint64_t ticks = 0, bytes = 0;
};
Totals totals();
// Turn `number` of those that `whose` takes has ended. The record keeps the turns of one, and goes over to another that has had
// more.
void tell_turn(const void* whose, uint64_t number, uint32_t calls_each, uint32_t size, Turn turn);

}  // namespace stretto::trace
