#include <algorithm>
#include <atomic>

#include "collective/patterns/comers.hpp"
#include "collective/patterns/exchange.hpp"
#include "collective/patterns/joint.hpp"
#include "collective/patterns/meeting.hpp"
#include "collective/patterns/offer.hpp"
#include "collective/patterns/parcels.hpp"
#include "collective/patterns/shipment.hpp"

namespace stretto::collective {
namespace {

using transport::Reach;
using transport::Window;

// What a rank shows another: a piece that it gives, or the room for one.
struct Entry {
  Window window;  // 0: cannot be reached
  uint64_t bytes;
};

// What a rank posts.
struct Note {
  static constexpr size_t head = 24;
  static constexpr int most_entries = int((slot_payload - head) / sizeof(Entry));
  uint64_t label;
  Reach reach;
  uint32_t reserved;
  uint64_t posted_ns;
  union {
    Entry entries[most_entries];  // of the root's: for every rank
    struct {                      // of another's
      Entry own;
      uint64_t reserved_too;
      uint64_t steps;    // that have been taken to copy, in a line of its own
      uint64_t by_root;  // that the root has copied
    } other;
  };
  std::atomic_ref<uint64_t> steps() { return std::atomic_ref<uint64_t>(other.steps); }
  std::atomic_ref<uint64_t> by_root() { return std::atomic_ref<uint64_t>(other.by_root); }
  size_t bytes(int count) const { return count > 1 ? head + size_t(count) * sizeof(Entry) : sizeof other + head; }
};
static_assert(sizeof(Note) <= slot_payload && offsetof(Slot, payload) + offsetof(Note, other.steps) == cache_line);

// Between the root, which gives, and each of the others.
class JointScatter {
 public:
  JointScatter(Team& team, const Request& request, Route route)
      : team_(team),
        request_(request),
        is_root_(team.rank == request.root),
        route_(route),
        parcels_(team, request, route),
        exchange_(team),
        notes_(team.lists),
        done_(team.lists) {}

  // Everything that is shown fits.
  static bool fits(const Team& team) { return team.size <= Note::most_entries; }

  Status run() {
    STRETTO_TRY(post());
    if (!is_root_) STRETTO_TRY(read_note(request_.root));
    if (note(request_.root).reach.bits() == 0) {
      exchange_.finish();
      return ship_staged(team_, request_, route_);
    }
    parcels_.keep_own();
    STRETTO_TRY(is_root_ ? copy_with_all() : copy_with(request_.root));
    const uint32_t served = served_;
    PerRank<uint32_t> all_served(team_.lists);
    const Status met = exchange_all(team_, served, all_served);  // all may leave
    if (!met.ok()) return leave_root(), met;
    if (!served) team_.direct.reset();  // refused once: never asked again
    if (std::count(all_served.of, all_served + team_.size, 0u) > 0) return ship_staged(team_, request_, route_);
    return parcels_.outcome();
  }

 private:
  Piece own_piece(int r) const { return is_root_ ? parcels_.given(r) : parcels_.room(r); }
  Note& note(int r) { return *notes_[r]; }

  Status post() {
    void* payload;
    STRETTO_TRY(exchange_.claim(&payload));
    Note& own = *(notes_[team_.rank] = static_cast<Note*>(payload));
    own.label = label_of(request_.kind, Form::swapped, 0);
    own.reach = team_.direct ? team_.direct->reach() : Reach();
    own.posted_ns = now_ns();
    for (int r = 0; r < team_.size && is_root_; ++r) own.entries[r] = shown(own_piece(r));
    if (!is_root_) own.other.own = shown(own_piece(request_.root)), own.other.steps = own.other.by_root = 0;
    exchange_.post(own.bytes(is_root_ ? team_.size : 1));
    return Status::good();
  }
  Entry shown(const Piece& piece) const {
    return {team_.direct && piece.bytes > 0 ? team_.direct->window(piece.data) : Window{}, piece.bytes};
  }

  Status read_note(int r) {
    const void* payload;
    STRETTO_TRY(exchange_.read(r, &payload));
    notes_[r] = static_cast<Note*>(const_cast<void*>(payload));
    STRETTO_TRY(compare_labels(note(team_.rank).label, note(r).label, r));
    if (!is_root_) parcels_.expect(r, shown_by(r).bytes);
    return is_root_ ? expect_alive_since(team_, r, note(r).posted_ns) : Status::good();
  }

  const Entry& shown_by(int r) const { return is_root_ ? notes_[r]->other.own : notes_[r]->entries[team_.rank]; }
  const Entry& shown_to(int r) const { return is_root_ ? notes_[team_.rank]->entries[r] : notes_[team_.rank]->other.own; }
  size_t bytes_with(int r) const { return std::min(shown_by(r).bytes, shown_to(r).bytes); }

  // Of the root: a step at a time with each that is there.
  Status copy_with_all() {
    Comers comers(team_);
    for (int k = 1; k < team_.size; ++k) {
      const int r = (team_.rank + k) % team_.size;
      notes_[r] = nullptr;
      done_[r] = false;
      comers.expect(r);
    }
    while (!comers.empty()) {
      bool served;
      STRETTO_TRY(comers.serve_present([&](int r) { return exchange_.posted(r); }, [&](int r) { return copy_step_with(r); },
                                       [&](int r) { return done_[r]; }, &served));
      if (!served)
        STRETTO_TRY(comers.wait([&](int r) { return exchange_.posted(r); },
                                [&](int r) { return Awaited{&exchange_.ready(r), exchange_.number()}; }, [] { return false; }));
    }
    return Status::good();
  }
  Status copy_step_with(int r) {
    if (notes_[r] == nullptr) STRETTO_TRY(read_note(r));
    done_[r] = !may_copy(r) || !copy_step(r, note(r));
    return Status::good();
  }

  // Of another rank.
  Status copy_with(int root) {
    while (may_copy(root) && copy_step(root, note(team_.rank))) continue;
    return Status::good();
  }

  // Of another rank that ends the call with an error: the root writes nothing more to it.
  void leave_root() {
    if (is_root_) return;
    Note& own = note(team_.rank);
    const size_t bytes = bytes_with(request_.root);
    uint64_t i;
    while (take_step(own.steps(), false, steps_of(bytes), &i)) continue;
    const uint64_t by_root = TakenSteps{own.steps().load(std::memory_order_relaxed)}.back();
    team_.waiter.stay([&] { return own.by_root().load(std::memory_order_acquire) >= by_root; });
  }

  // Whether this rank can copy; where neither of the two can, nobody is served.
  bool may_copy(int r) {
    if (bytes_with(r) == 0) return false;
    const Reach mine = note(team_.rank).reach, theirs = note(r).reach;
    const bool can = is_root_ ? mine.gives(shown_by(r).window) : mine.reads(shown_by(r).window);
    const bool other_can = is_root_ ? theirs.reads(shown_to(r).window) : theirs.gives(shown_to(r).window);
    served_ &= can || other_can;
    if (is_root_ && other_can && !steps_are_shared()) return false;
    return can && served_;
  }

  // On a shared CPU the root would only keep another rank from copying.
  bool steps_are_shared() const { return team_.waiter.has_own_cpu(); }

  // `counted`: the note with the steps. False: there is none left, or it was refused.
  bool copy_step(int r, Note& counted) {
    const size_t bytes = bytes_with(r), step = step_of(bytes);
    uint64_t i;
    if (!take_step(counted.steps(), is_root_, steps_of(bytes), &i)) return false;
    served_ = copy(r, i * step, std::min(step, bytes - i * step));
    if (is_root_) counted.by_root().fetch_add(1, std::memory_order_release);
    return served_;
  }
  size_t step_of(size_t bytes) const { return steps_are_shared() ? joint_step(bytes) : std::max<size_t>(bytes, 1); }
  uint64_t steps_of(size_t bytes) const { return (bytes + step_of(bytes) - 1) / step_of(bytes); }

  bool copy(int r, size_t at, size_t bytes) {
    char* own = static_cast<char*>(own_piece(r).data) + at;
    if (is_root_) return team_.direct->give(r, shown_by(r).window, at, own, bytes).ok();
    return read_part(team_, r, shown_by(r).window, at, bytes, own, parcels_.store());
  }

  Team& team_;
  const Request& request_;
  const bool is_root_;
  const Route route_;
  Parcels parcels_;
  Exchange exchange_;
  bool served_ = true;    // what this rank has taken to copy
  PerRank<Note*> notes_;  // in the slots, until the next exchange
  PerRank<bool> done_;    // of the root: nothing is left to copy with each
};

}  // namespace

Status ship_joint(Team& team, const Request& request, Route route) {
  if (team.size > 2 && route.ends == Ends::to_root && offers_pieces(team)) return ship_offered(team, request);
  if (team.size > 2 && route.ends == Ends::from_root && JointScatter::fits(team)) return JointScatter(team, request, route).run();
  return ship_direct(team, request, route);
}

}  // namespace stretto::collective
