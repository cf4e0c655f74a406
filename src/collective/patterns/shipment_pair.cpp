// Two ranks that give each other something. The lines that carry it change hands: a rank writes to those that it has read before,
// so that it holds them already. (A line that only one rank writes to has to be claimed back from its reader each time, which
// costs as much as reading it.) That also says that they are free: nobody waits for anybody to have read. What is small enough
// comes with the label.
//
// The n-th round that is swapped stands in the first or second cell of one of the two, by the lowest bit of n; by the next bit
// each writes to its own cell and reads the other's, or writes to the other's and reads its own. So what it writes to in n it has
// read in n-2.
//
// Long pieces may be faster staged, or read where they are: rank 0 finds out by trial, and says with its label which way they go.
#include "base/cacheline.hpp"
#include "collective/patterns/exchange.hpp"
#include "collective/patterns/parcels.hpp"
#include "collective/patterns/rounds.hpp"

namespace stretto::collective {
namespace {

constexpr size_t block_bytes = 1 << 10;  // copied at a time, while the lines of the next are on their way

constexpr size_t tried_from = 64 << 10;  // of less that is read through the kernel, entering it takes too long
constexpr size_t untried_direct = 1 << 20;
constexpr size_t lopsided_from = 8 << 10;

class PairShipment {
 public:
  PairShipment(Team& team, const Request& request, Route route)
      : team_(team),
        request_(request),
        route_(route),
        parcels_(team, request, route),
        exchange_(team),
        other_(1 - team.rank),
        given_(parcels_.given(other_)),
        room_(parcels_.room(other_)),
        first_(team.rounds + 1) {}

  Status run() {
    const size_t most = std::max(given_.bytes, room_.bytes);
    const bool tried = most >= tried_from;
    if (tried) Rounds::warm_up(team_);
    if (tried && team_.rank == 0) choose(most);
    STRETTO_TRY(post());
    const bool greets_first = tried || !route_.known;
    if (greets_first) STRETTO_TRY(greet());
    const uint64_t began = choice_.timed ? ticks() : 0;
    STRETTO_TRY(ship(greets_first));
    if (choice_.timed) STRETTO_TRY(note_time(most, began));
    return parcels_.outcome();
  }

 private:
  // Ways to try.
  static constexpr Form forms[] = {Form::swapped, Form::staged, Form::direct};

  // Operations beside others cannot be timed.
  void choose(size_t bytes) {
    constexpr int swapped = 0, direct = 2;
    choice_ = trials().choose(bytes, !team_.waiter.is_beside(), bytes >= untried_direct ? direct : swapped);
    form_ = forms[choice_.way];
    if (choice_.begins && form_ == Form::staged) Rounds::warm_up(team_, true);
  }
  // Where one gives much more than the other, few lines come back with anything.
  Trials<3>& trials() { return team_.swaps[std::max(given_.bytes, room_.bytes) >= 2 * std::min(given_.bytes, room_.bytes)]; }

  // What stands in cells has not been moved before the other has it.
  Status note_time(size_t bytes, uint64_t began) {
    if (form_ != Form::direct) STRETTO_TRY(team_.all_drained(team_.rounds));
    trials().note(bytes, choice_.way, ticks() - began);
    return Status::good();
  }

  Status ship(bool has_greeted) {
    if (form_ == Form::staged) return ship_staged(team_, request_, route_);
    if (form_ == Form::direct) return ship_direct(team_, request_, route_);
    return swap(has_greeted);
  }

  Status swap(bool has_greeted) {
    plan();
    team_.rounds += count_;
    // Whatever else the cells were used for must have ended on both sides.
    if (count_ > 0 && !reached(team_.rounds_swapped, team_.rounds_stayed)) STRETTO_TRY(team_.all_drained(team_.rounds_stayed));
    for (size_t i = 0; i <= count_; ++i) {
      if (i < count_) STRETTO_TRY(put(i));
      if (i == 0) parcels_.keep_own();
      if (i == 0 && !has_greeted) STRETTO_TRY(greet());
      if (i > 0) STRETTO_TRY(get(i - 1));
    }
    if (comes_along(taken_)) parcels_.receive(other_, 0, theirs_->along, taken_);
    if (count_ > 0) leave();
    exchange_.fetch_next(posted_);
    return Status::good();
  }

  struct Note {
    uint64_t label;  // with the bytes that a rank gives
    char along[slot_payload - sizeof(uint64_t)];
  };

  static bool comes_along(size_t bytes) { return bytes <= sizeof(Note::along); }

  Status post() {
    void* payload;
    STRETTO_TRY(exchange_.claim(&payload));
    auto* note = static_cast<Note*>(payload);
    note->label = label_of(request_.kind, form_, given_.bytes);
    const size_t along = comes_along(given_.bytes) ? given_.bytes : 0;
    if (along > 0) __builtin_memcpy(note->along, given_.data, along);
    posted_ = offsetof(Note, along) + along;
    exchange_.post(posted_);
    return Status::good();
  }

  // Both call the same; and where the route is known, what the other gives is what this rank reckons with.
  Status greet() {
    const void* payload;
    STRETTO_TRY(exchange_.read(other_, &payload));
    theirs_ = static_cast<const Note*>(payload);
    const Form theirs = form_of(theirs_->label);
    if (other_ == 0 && std::find(std::begin(forms), std::end(forms), theirs) != std::end(forms)) form_ = theirs;
    STRETTO_TRY(compare_labels(label_of(request_.kind, other_ == 0 ? form_ : Form::swapped, 0), theirs_->label, other_));
    if (route_.known && bytes_of(theirs_->label) != room_.bytes)
      return disagreed("ranks disagree about the size of a message", other_);
    return Status::good();
  }

  // What goes through cells, on both ways: both know.
  void plan() {
    taken_ = route_.known ? room_.bytes : bytes_of(theirs_->label);
    parcels_.expect(other_, taken_);
    for (size_t bytes : {given_.bytes, taken_})
      if (!comes_along(bytes)) longest_ = std::max(longest_, bytes);
    round_ = std::min(staged_piece(team_, longest_, true), team_.staged->cell_bytes());
    count_ = (longest_ + round_ - 1) / round_;
  }

  // Of a piece of so many bytes, in round i.
  size_t length(size_t i, size_t bytes) const {
    return bytes > i * round_ && !comes_along(bytes) ? std::min(bytes - i * round_, round_) : 0;
  }

  // Where `writer` writes in round i.
  char* place(int writer, size_t i, size_t bytes) {
    const uint64_t nth = team_.swapped + i;
    const int host = nth >> 1 & 1 ? 1 - writer : writer;
    const transport::Cell cell{uint32_t(nth & 1), 0};
    void* at = host == team_.rank ? team_.staged->place(cell, 0, bytes) : team_.staged->place_in(host, cell, 0, bytes);
    return static_cast<char*>(at);
  }

  Status put(size_t i) {
    const size_t bytes = length(i, given_.bytes);
    char* to = place(team_.rank, i, bytes);
    if (to == nullptr) return invalid("cells that only their owner writes to", other_);
    kernels::copy(to, static_cast<const char*>(given_.data) + i * round_, bytes);
    team_.waiter.announce(team_.mine().filled, first_ + i);
    return Status::good();
  }

  Status get(size_t i) {
    const size_t bytes = length(i, taken_);
    STRETTO_TRY(team_.waiter.until(team_.board(other_).filled, first_ + i, other_));
    const char* from = place(other_, i, bytes);
    if (from == nullptr) return invalid("cells that only their owner writes to", other_);
    prefetch_for_write(from, std::min(block_bytes, bytes));
    for (size_t at = 0; at < bytes; at += block_bytes) {
      const size_t next = at + block_bytes;
      if (next < bytes) prefetch_for_write(from + next, std::min(block_bytes, bytes - next));
      parcels_.receive(other_, i * round_ + at, from + at, std::min(block_bytes, bytes - at));
    }
    return Status::good();
  }

  void leave() {
    team_.swapped += count_;
    team_.rounds_swapped = team_.rounds;
    team_.waiter.announce(team_.mine().drained, team_.rounds);
  }

  Team& team_;
  const Request& request_;
  const Route route_;
  Parcels parcels_;
  Exchange exchange_;
  const int other_;
  const Piece given_, room_;
  const Note* theirs_ = nullptr;        // in its slot, until the next exchange
  Trials<3>::Choice choice_{0, false};  // of rank 0
  Form form_ = Form::swapped;
  size_t posted_ = 0;  // bytes of this rank's note
  size_t taken_ = 0;   // bytes that the other gives
  size_t longest_ = 0, round_ = 0, count_ = 0;
  const uint64_t first_;
};

// Whether one piece is much longer than the other, as both know: then most of its lines do not come back with anything.
bool is_lopsided(const Team& team, const Request& request, Route route) {
  if (!route.known) return false;
  const size_t ours = request.gives[route.each ? 1 - team.rank : 0].bytes, theirs = request.gets[1 - team.rank].bytes;
  const size_t most = std::max(ours, theirs);
  return most >= lopsided_from && most < tried_from && most >= 2 * std::min(ours, theirs);
}

}  // namespace

Status ship_pair(Team& team, const Request& request, Route route) {
  const bool swaps = team.size == 2 && route.ends == Ends::all && !is_lopsided(team, request, route);
  return swaps ? PairShipment(team, request, route).run() : ship_staged(team, request, route);
}

}  // namespace stretto::collective
