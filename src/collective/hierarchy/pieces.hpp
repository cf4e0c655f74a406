// Pieces of memory on their way between nodes.
#pragma once
#include <algorithm>

#include "collective/hierarchy/cluster.hpp"

namespace stretto::collective {

// The bytes of a piece that lie in `range`.
inline Piece cut(const Piece& piece, const Range& range) {
  size_t begin = std::min(range.begin, piece.bytes), end = std::min(range.end, piece.bytes);
  return {begin < end ? static_cast<char*>(piece.data) + begin : piece.data, end - begin};
}

// Bytes for each of `pieces` in `room`, `most` at most and at least one; whole lines where there are any.
inline size_t share_of_room(size_t room, size_t pieces, size_t most) {
  size_t bytes = std::max<size_t>(room / pieces, 1);
  if (bytes >= most) return std::max<size_t>(most, 1);
  return bytes > cache_line ? bytes / cache_line * cache_line : bytes;
}

}  // namespace stretto::collective
