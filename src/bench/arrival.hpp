// Arrival patterns: by how much each rank comes late to a call. Every rank computes the delays of all from the seed and the
// number of the call, so that nothing has to be exchanged.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace stretto::bench {

enum class Shape : uint8_t { balanced, ascending, descending, first, last, random, some, half, node, replay };
inline constexpr int shape_count = int(Shape::replay) + 1;
extern const char* const shape_names[shape_count];

struct Pattern {
  Shape shape = Shape::balanced;
  int late = 1;                  // how many ranks are late (Shape::some)
  uint64_t seed = 1;             // of random shares, and of which ranks are late
  bool permuted = false;         // the ranks (or nodes) change places from call to call
  const int* node_of = nullptr;  // of each rank: for Shape::node, over at least two
  int nodes = 1;
  // Shape::replay: recorded delays, `rows` lines of one per rank, in ns.
  std::unique_ptr<double[]> recorded;
  size_t rows = 0;
};

// "last-delayed", "3-late", ...; false: there is no such shape.
bool parse_shape(const char* text, Pattern* pattern);

// Reads recorded delays: one call a line, one number per rank. Null, or what is wrong.
const char* read_recorded(const char* path, int ranks, Pattern* pattern);

// The delay of each rank in call number `call`, as a share 0..1 of the spread; of replayed calls in ns. `delays` has room for
// `ranks`. The same on all ranks.
void delays_of(const Pattern& pattern, uint64_t call, int ranks, double* delays);

}  // namespace stretto::bench
