// Where the parts of a record lie (docs/record_format.md).
#pragma once
#include "base/cacheline.hpp"
#include "trace/record.hpp"

namespace stretto::trace {

inline constexpr uint32_t thread_blocks = 64;

struct Layout {
  uint32_t functions = 0, reasons = 0, algorithms = 0;

  constexpr size_t function_names() const { return sizeof(Header); }
  constexpr size_t reason_names() const { return function_names() + functions * name_bytes; }
  constexpr size_t algorithm_names() const { return reason_names() + reasons * name_bytes; }
  constexpr size_t blocks() const { return round_up(algorithm_names() + algorithms * name_bytes, cache_line); }

  // Within a block.
  constexpr size_t kind_cells() const { return functions * sizeof(FunctionCell); }
  constexpr size_t declines() const { return kind_cells() + kinds * sizeof(KindCell); }
  constexpr size_t ran() const { return declines() + size_t(kinds) * reasons * sizeof(uint64_t); }
  constexpr size_t block_bytes() const { return round_up(ran() + size_t(kinds) * algorithms * sizeof(uint64_t), cache_line); }

  constexpr size_t arrivals() const { return blocks() + thread_blocks * block_bytes(); }
  constexpr size_t turns() const { return arrivals() + arrival_cells * sizeof(ArrivalCell); }
  constexpr size_t total() const { return turns() + sizeof(TurnsCell); }
};

}  // namespace stretto::trace
