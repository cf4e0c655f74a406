// What one rank sends and receives in a shipment: the pieces of its request, seen by peer, and the label that goes before them.
#pragma once
#include <algorithm>

#include "collective/patterns/shipment.hpp"

namespace stretto::collective {

// The first word of what a rank posts: which call this is, how it travels, and a number of bytes. Peers whose calls do not match
// find it out here.
enum class Form : uint8_t { flat = 1, staged, direct, swapped, offered };

inline uint64_t label_of(Kind kind, Form form, uint64_t bytes) {
  return uint64_t(0x51) << 56 | uint64_t(kind) << 51 | uint64_t(form) << 48 | bytes;
}
inline uint64_t bytes_of(uint64_t label) {
  return label & ((uint64_t(1) << 48) - 1);
}
inline Form form_of(uint64_t label) {
  return Form(label >> 48 & 7);
}
inline Status compare_labels(uint64_t own, uint64_t theirs, int rank) {
  return (own ^ theirs) >> 48 == 0 ? Status::good() : calls_differ(rank);
}

class Parcels {
 public:
  Parcels(const Team& team, const Request& request, Route route)
      : Parcels(team, request, route, team.store_of(buffer_bytes(request, route, team))) {}
  Parcels(const Team& team, const Request& request, Route route, kernels::Store store)
      : request_(request), route_(route), rank_(team.rank), size_(team.size), store_(store) {}

  bool gives_to(int r) const { return r != rank_ && (route_.ends == Ends::to_root ? r == request_.root : gives_any()); }
  bool gets_from(int r) const { return r != rank_ && (route_.ends == Ends::from_root ? r == request_.root : gets_any()); }
  bool gives_any() const { return route_.ends == Ends::all || (rank_ == request_.root) == (route_.ends == Ends::from_root); }
  bool gets_any() const { return route_.ends == Ends::all || (rank_ == request_.root) == (route_.ends == Ends::to_root); }

  Piece given(int r) const { return gives_to(r) ? request_.gives[route_.each ? r : 0] : Piece{nullptr, 0}; }
  Piece room(int r) const { return gets_from(r) ? request_.gets[r] : Piece{nullptr, 0}; }

  // The largest piece that this rank knows of; where the route is known, the largest of all.
  size_t longest() const {
    size_t bytes = 0;
    for (int r = 0; request_.gets && r < size_; ++r) bytes = std::max(bytes, request_.gets[r].bytes);
    for (int r = 0; request_.gives && r < (route_.each ? size_ : 1); ++r) bytes = std::max(bytes, request_.gives[r].bytes);
    return bytes;
  }

  // A piece that is sent from where another is received: nobody may read it there.
  bool overwrites() const {
    for (int r = 0; route_.each && r < size_; ++r)
      if (given(r).bytes > 0 && room(r).bytes > 0 && given(r).data == room(r).data) return true;
    return false;
  }

  // What this rank gives itself.
  void keep_own() {
    if (!request_.gives || !request_.gets) return;
    Piece from = request_.gives[route_.each ? rank_ : 0], to = request_.gets[rank_];
    size_t bytes = std::min(from.bytes, to.bytes);
    expect(rank_, from.bytes);
    if (bytes > 0 && from.data && to.data && from.data != to.data) kernels::copy(to.data, from.data, bytes, store_);
  }

  // Bytes [at, at + bytes) of what rank r gives, which stand at `data`. What there is no room for is left out.
  void receive(int r, size_t at, const void* data, size_t bytes) {
    Piece to = room(r);
    if (at + bytes > to.bytes) {
      outcome_ = truncated("a message is longer than the room for it", r);
      bytes = std::max(at, to.bytes) - at;
    }
    if (bytes > 0 && static_cast<char*>(to.data) + at != data)
      kernels::copy(static_cast<char*>(to.data) + at, data, bytes, store_);
  }
  // Of a piece whose size this rank learns: all that comes from rank r.
  void expect(int r, size_t bytes) {
    if (bytes > request_.gets[r].bytes) outcome_ = truncated("a message is longer than the room for it", r);
    request_.came(r, bytes);
  }

  kernels::Store store() const { return store_; }

  // Good, or that something was truncated.
  Status outcome() const { return outcome_; }

 private:
  // Of what this rank gives and gets. The root of a scatter has as much for every rank as this one gets, which is as much again
  // for each.
  static size_t buffer_bytes(const Request& request, Route route, const Team& team) {
    size_t bytes = 0;
    for (int r = 0; request.gives && r < (route.each ? team.size : 1); ++r) bytes += request.gives[r].bytes;
    for (int r = 0; request.gets && r < team.size; ++r) bytes += request.gets[r].bytes;
    return route.ends == Ends::from_root && team.rank != request.root ? 2 * bytes : bytes;
  }

  const Request& request_;
  const Route route_;
  const int rank_, size_;
  const kernels::Store store_;
  Status outcome_;
};

}  // namespace stretto::collective
