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

// What the ranks of this node give one another in an alltoall, of whatever kind, of all.
inline Status alltoall_in_node(Cluster& cluster, const Request& request) {
  const Placement& place = cluster.place;
  PerRank<Piece> gives(cluster.lists), gets(cluster.lists);
  for (int l = 0; l < place.local_size; ++l) {
    gives[l] = request.gives[place.rank_at(place.node, l)];
    gets[l] = request.gets[place.rank_at(place.node, l)];
  }
  const size_t block = request.bytes() / size_t(place.size);
  const Status status = cluster.ship_in_node(request.kind, 0, block * size_t(place.local_size), gives, gets);
  for (int l = 0; l < place.local_size; ++l) request.came(place.rank_at(place.node, l), gets[l].bytes);
  return status;
}

// What every rank gives every other one, of which both know the size. (alltoall_messages.cpp; it leaves the room alone.)
Status exchange_messages(Cluster& cluster, const Piece* gives, Piece* gets);

// A message that the node's carrier gets piece by piece, given to its node from piece *given on: the first time all that has
// arrived, which the carrier alone knows, then one piece. `data` is where it is on each rank.
struct Pieces {
  char* data;
  size_t bytes, piece;
};
inline Status give_pieces(Cluster& cluster, int carrier, const Pieces& message, uint32_t arrived, uint32_t* given) {
  const size_t begin = *given * message.piece;
  uint32_t end = *given + 1;
  if (*given == 0 && message.bytes > message.piece) {
    end = arrived;
    STRETTO_TRY(cluster.bcast_in_node(carrier, &end, sizeof end));
  }
  *given = end;
  return cluster.bcast_in_node(carrier, message.data + begin, std::min(end * message.piece, message.bytes) - begin);
}

}  // namespace stretto::collective
