// Handover: one of two ranks gives a piece of its memory, and both copy it to where the other wants it.
//
// A copy through the kernel is slow for the one who makes it, but two ranks can make it at once: the taker reads from the front,
// the giver writes from the back, until they meet. Per byte 1 load and 1 store, shared by both.
//
// The taker says on arrival where it wants the piece. The giver alone decides: if the taker is there, or comes in a moment, and
// that is faster by trial than cells that both hold in their caches, both copy; else the giver stages the piece and need not
// wait, but in the few calls that are timed. One that the cells cannot hold is waited for: its giver could not leave anyway. One
// that is small enough comes with what the giver says; a taker that finds it there says nothing.
#pragma once
#include <algorithm>

#include "collective/patterns/exchange.hpp"
#include "collective/request.hpp"

namespace stretto::collective {

class Handover {
 public:
  // `own`: what this rank gives, or the room for what it gets. `store`: how that is stored if it comes through cells.
  Handover(Team& team, Kind kind, int giver, const Piece& own, kernels::Store store)
      : team_(team),
        kind_(kind),
        giver_(giver),
        gives_(team.rank == giver),
        other_(1 - team.rank),
        own_(own),
        store_(store),
        exchange_(team) {}

  // The taker says where it is, unless it need not; the giver looks whether it has said so.
  Status begin();
  // Whether this rank does better not to go on at once.
  bool has_time() const;

  // Then: how it is done, as both see it; and does it. Room that is too short for the piece may be left as it is.
  Status agree();
  Status move();
  // At last, once this rank has done all it had to: notes how long it took, where that was asked for.
  Status note_time();

  // Once agreed: whether both copy, each as much as it has time for; and of what the giver gives.
  bool is_copied() const;
  size_t given_bytes() const { return gives_ ? own_.bytes : their_bytes_; }

 private:
  struct Note;
  enum Way { copying, staging };

  bool comes_along();
  bool may_copy() const;
  void consider();
  Status write_note(uint32_t how);
  Status read_note();
  Status meet();
  uint32_t choose();
  uint32_t ways_to_copy() const;
  size_t bytes() const { return std::min(own_.bytes, their_bytes_); }
  Status copy_together();
  Status stage();
  bool copy_shares();
  bool copy(size_t at, size_t bytes);

  Team& team_;
  const Kind kind_;
  const int giver_;
  const bool gives_;
  const int other_;
  const Piece own_;
  const kernels::Store store_;
  Exchange exchange_;
  Note *mine_ = nullptr, *theirs_ = nullptr;  // in the slots, until this one ends
  size_t posted_ = 0, their_bytes_ = 0;
  Trials<2>::Choice choice_{staging, false};  // of the giver
  bool copies_ = false;                       // it would, if the taker is there
  uint64_t began_ = 0;                        // where the call is timed: ticks
};

// All of it, where there is nothing to be done meanwhile. *given: the bytes that the giver gives.
Status hand_over(Team& team, Kind kind, int giver, const Piece& own, size_t* given);

}  // namespace stretto::collective
