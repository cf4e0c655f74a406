// Runs of bytes with gaps between them, as the elements of a datatype leave them, and how they repeat.
#pragma once
#include <cstddef>
#include <span>

namespace stretto::platform {

// `bytes` bytes from `offset` on.
struct Run {
  size_t offset = 0, bytes = 0;
};

// Tells runs one after the other: ascending, apart from each other. One without bytes ends them.
class Runs {
 public:
  virtual Run next() = 0;

 protected:
  ~Runs() = default;
};

// The first `runs` runs of a row: `period` of them, which come back in the same lengths, all `distance` bytes further on.
// The last repetition may be cut short.
struct Pattern {
  size_t runs = 1, period = 1, distance = 0;

  // How many of the runs are the one at `place` (below the period) and its repetitions.
  size_t rows(size_t place) const { return (runs - place + period - 1) / period; }
};

inline constexpr size_t longest_period = 8;  // runs of an element

// That with the most repetitions; of a row that does not repeat its first run alone. At least one run is needed.
Pattern pattern_of(std::span<const Run> runs);

}  // namespace stretto::platform
