// Ranges of elements, and how they are cut into parts.
#pragma once
#include <stddef.h>

#include <algorithm>

#include "base/cacheline.hpp"

namespace stretto::collective {

// The elements [begin, end) of a vector.
struct Range {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
};

// So many elements fill cache lines; 1 where they do not.
constexpr size_t line_grain(size_t element) {
  return cache_line % element == 0 ? cache_line / element : 1;
}

// Part i of `range` in `parts` parts as equal as whole `grain`s of elements allow.
inline Range part_of(const Range& range, int i, int parts, size_t grain) {
  const size_t grains = (range.size() + grain - 1) / grain;
  const auto edge = [&](int part) { return std::min(range.begin + grains * size_t(part) / size_t(parts) * grain, range.end); };
  return {edge(i), edge(i + 1)};
}

}  // namespace stretto::collective
