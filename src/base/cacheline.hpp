// The unit in which cores exchange memory. Lines that different cores write stand apart by this much.
#pragma once
#include <cstddef>

namespace stretto {

inline constexpr size_t cache_line = 64;

constexpr size_t round_up(size_t value, size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace stretto
