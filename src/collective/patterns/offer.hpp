// Offers: a rank that has a long piece for the root shows where it is. If the root is there, or comes in a moment, the two copy
// it together (patterns/joint.hpp), of which nobody else needs to know. Else the giver withdraws its offer, stages the piece, and
// may leave; and so it does where a copy is refused.
//
// What both write stands in the giver's slot, each word in a line of its own, until its next exchange.
#pragma once
#include <atomic>
#include <cstddef>

#include "collective/board.hpp"
#include "collective/request.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

struct alignas(cache_line) Offer {
  static constexpr size_t at = cache_line - offsetof(Slot, payload);  // of the payload

  // The giver's, before it posts.
  transport::Window given;
  transport::Reach reach;
  uint64_t posted_ns = 0;
  // The root's, before it answers.
  transport::Reach root_reach;
  transport::Window room;
  uint64_t room_bytes = 0, answered_ns = 0;

  enum Answer : uint64_t { open, accepted, withdrawn };  // withdrawn: by either
  alignas(cache_line) Signal answer;
  alignas(cache_line) uint64_t steps = 0;  // taken; by both
  // Steps that each has copied. A number that no count reaches: it was refused one.
  static constexpr uint64_t refused = uint64_t(1) << 30;
  alignas(cache_line) Signal by_giver;
  alignas(cache_line) Signal by_root;
};
static_assert(Offer::at + sizeof(Offer) <= slot_payload);

// Pieces of so many bytes are offered, or all are staged: the same for all pieces and on all ranks.
inline constexpr size_t offered_from = 48 << 10;
inline bool offers_pieces(const Team& team) {
  return team.size > 2 && team.waiter.has_own_cpu();
}

// Of the giver, in the payload that it is about to post.
void make_offer(Team& team, const Piece& piece, void* payload);

// Of the giver, once it has posted. *served: the root has the piece; else it is to be staged.
Status give_as_offered(Team& team, int root, const Piece& piece, void* payload, bool* served);

// Of the root.
class TakenOffer {
 public:
  TakenOffer(Team& team, int giver, const void* payload, size_t bytes, const Piece& room, kernels::Store store);

  // *accepted: the piece comes so, unless a copy is refused. Then step() is to be called, when is_ready(), which `signal` brings
  // about by reaching by_giver(), until it returns false: it is over, and all is there where served().
  Status accept(bool* accepted);
  bool is_ready() const { return taking_ || !giver_can_ || reached(signal().value.load(std::memory_order_acquire), by_giver()); }
  Signal& signal() const { return offer_.by_giver; }
  uint64_t by_giver() const { return steps_ - taken_; }  // steps that the giver has to copy
  bool step();
  bool served() const { return !refused_ && signal().value.load(std::memory_order_acquire) < Offer::refused; }

  // Where the root ends its call with an error: the giver writes nothing more to the room.
  void abandon();
  static void decline(const void* payload);  // an offer that is not taken up

 private:
  Team& team_;
  const int giver_;
  Offer& offer_;
  const Piece room_;
  const kernels::Store store_;
  const size_t bytes_;
  const uint64_t steps_;
  bool taking_ = false, refused_ = false, giver_can_ = false;
  uint64_t taken_ = 0;
};

}  // namespace stretto::collective
