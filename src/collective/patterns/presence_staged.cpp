#include <algorithm>

#include "collective/patterns/merge.hpp"
#include "collective/patterns/presence.hpp"
#include "collective/patterns/rounds.hpp"
#include "collective/patterns/scatter_reduce.hpp"

namespace stretto::collective {
namespace {

constexpr size_t block_bytes = 16 << 10;  // finished into the cell and copied on while it is in the first-level cache

// The vector in rounds of which each rank is at home in a slice: parts of the round's range, or, where each rank gets a block of
// the result, the same slice of every block.
class Homes {
 public:
  Homes(Team& team, const Request& request)
      : team_(team),
        request_(request),
        per_block_(std::max<size_t>(team.staged->cell_bytes() / request.element / size_t(team.size), 1)),
        rounds_(by_block() ? Rounds(team, longest_block(), per_block_ * request.element, team.size) : Rounds(team, request)) {}

  bool by_block() const { return request_.gives != nullptr; }
  Rounds& rounds() { return rounds_; }

  // Of the vector, in elements. Parts begin on cache lines where elements allow.
  Range slice(uint32_t i, int home) const {
    const Range range = rounds_.range(i);
    if (!by_block()) return part_of(range, home, team_.size, line_grain(request_.element));
    const size_t first = begin_of(home), count = count_of(home);
    return {first + std::min(range.begin, count), first + std::min(range.end, count)};
  }
  Range block(int r) const { return {begin_of(r), begin_of(r) + count_of(r)}; }
  // Where it stands in the cells.
  Rounds::Place place(uint32_t i, int home) const {
    return by_block() ? rounds_.place(i, home) : rounds_.place(i, slice(i, home));
  }

 private:
  size_t count_of(int r) const { return request_.gives[r].bytes / request_.element; }
  size_t begin_of(int block) const {
    size_t elements = 0;
    for (int r = 0; r < block; ++r) elements += count_of(r);
    return elements;
  }
  Request longest_block() const {
    Request longest;
    longest.element = request_.element;
    for (int r = 0; r < team_.size; ++r) longest.count = std::max(longest.count, count_of(r));
    return longest;
  }

  Team& team_;
  const Request& request_;
  const size_t per_block_;  // elements of each block in a round
  Rounds rounds_;
};

// What becomes of finished slices.
enum class Finished : uint8_t { all_collected, none_collected, own_kept };

class StagedPresence {
 public:
  StagedPresence(Team& team, const Request& request, Finished finished)
      : team_(team),
        request_(request),
        homes_(team, request),
        rounds_(homes_.rounds()),
        finished_(finished),
        epochs_{Epoch(team), Epoch(team), Epoch(team), Epoch(team)} {}

  Status run() {
    while (collected_ < rounds_.count()) {
      const bool others_here = staged_ > collected_ && epoch(collected_).all_here();
      if (staged_ < rounds_.count() && staged_ < collected_ + (others_here ? 2 : Rounds::lag)) {
        STRETTO_TRY(stage());
        finish_own();
        continue;
      }
      STRETTO_TRY(epoch(collected_).all_here() ? collect() : meanwhile());
    }
    return Status::good();
  }

 private:
  Epoch& epoch(uint32_t i) { return epochs_[i % epoch_ring]; }

  Range slice(uint32_t i, int home) const { return homes_.slice(i, home); }
  size_t at(const Range& range) const { return range.begin * request_.element; }
  size_t bytes(const Range& range) const { return range.size() * request_.element; }
  const char* input(size_t position) const { return static_cast<const char*>(request_.input) + position; }

  // Everything but what this rank is at home in; that too where the result may lie on top of it.
  Status stage() {
    const uint32_t i = staged_++;
    STRETTO_TRY(rounds_.free(i));
    for (int home = 0; home < team_.size; ++home) {
      const Range range = slice(i, home);
      if (range.size() == 0 || (home == team_.rank && !stages_own())) continue;
      STRETTO_TRY(rounds_.put_at(homes_.place(i, home), input(at(range)), bytes(range)));
    }
    STRETTO_TRY(epoch(i).begin(request_, 0, rounds_.number(i)));
    epoch(i).arrive({});
    return Status::good();
  }

  bool stages_own() const { return homes_.by_block() && result_in_input(request_); }

  // Finishes what this rank is at home in, where all are there. What is claimed by somebody else is tried again later.
  void finish_own() {
    for (uint32_t i = collected_; i < staged_; ++i) {
      epoch(i).look();
      if (epoch(i).all_here()) work_on(i, team_.rank);
    }
  }

  // Somebody has not come to the oldest round: combines what has arrived of the others' slices, then waits.
  Status meanwhile() {
    // Who is nearly there is waited for: one pass over more contributions is less work than two.
    const auto looks = uint32_t(bytes(slice(collected_, 0)) / 512);
    if (!epoch(collected_).glance(std::min(looks, 200u)) && combine_others()) return Status::good();
    STRETTO_TRY(epoch(collected_).next_arrival());
    finish_own();
    return Status::good();
  }

  bool combine_others() {
    bool worked = false;
    for (uint32_t i = collected_; i < staged_; ++i) {
      Epoch& e = epoch(i);
      for (int k = 1; k < team_.size && !e.all_here(); ++k) {
        worked = work_on(i, (team_.rank + k) % team_.size) || worked;
        e.look();
      }
    }
    finish_own();
    return worked;
  }

  bool work_on(uint32_t i, int home) {
    Epoch& e = epoch(i);
    const SliceState seen = e.state(uint32_t(home));
    const int from = int(seen.level), to = e.level();
    if (seen.owner != 0 || from >= to || (home != team_.rank && to == team_.size)) return false;
    Merge merge(team_, request_, e);
    merge.keep_apart(home);
    const Range range = slice(i, home);
    for (int ticket = 0; ticket < to; ++ticket) {
      const int r = e.arrived(ticket);
      char* staged = cell(r, i, home);
      merge.place(r, r == home && !stages_own() ? input(at(range)) : staged, staged, true);
    }
    if (!merge.gains(from, to) || !e.claim(uint32_t(home), seen)) return false;
    if (to == team_.size)
      finish(merge, from, range, i);
    else
      merge.advance(from, to, range.size());
    e.release(uint32_t(home), seen, to);
    e.look();
    return true;
  }

  // Cells are in memory that all ranks map; who has claimed a slice may store in it.
  char* cell(int r, uint32_t i, int home) {
    const void* data = nullptr;
    if (!rounds_.get_at(r, homes_.place(i, home), bytes(slice(i, home)), &data).ok()) return nullptr;
    return static_cast<char*>(const_cast<void*>(data));
  }

  // This rank's slice; into its cell for those who collect it, a block straight to where it belongs.
  void finish(const Merge& merge, int from, const Range& range, uint32_t i) {
    if (finished_ == Finished::own_kept) return merge.finish(from, result(range), 0, range.size());
    char* place = cell(team_.rank, i, team_.rank);
    const size_t step = std::max<size_t>(block_bytes / request_.element, 1);
    for (size_t begin = 0; begin < range.size(); begin += step) {
      const size_t n = std::min(step, range.size() - begin), offset = begin * request_.element;
      merge.finish(from, place + offset, begin, n);
      if (finished_ == Finished::all_collected)
        kernels::copy(result(range) + offset, place + offset, n * request_.element, store_);
    }
  }
  // Of a block, the result is all that the output holds.
  char* result(const Range& range) const {
    return static_cast<char*>(request_.output) + at(range) - (homes_.by_block() ? at(homes_.block(team_.rank)) : 0);
  }

  // All have come to the oldest round: brings it to its end for this rank.
  Status collect() {
    const uint32_t i = collected_;
    Epoch& e = epoch(i);
    while (!e.is_final(e.state(uint32_t(team_.rank))) && !work_on(i, team_.rank)) {
      const SliceState seen = e.state(uint32_t(team_.rank));  // who is at work on it goes beyond that
      if (seen.owner != 0) STRETTO_TRY(e.beyond(uint32_t(team_.rank), seen.level, int(seen.owner) - 1));
    }
    for (int k = 1; k < team_.size && finished_ != Finished::own_kept; ++k) {
      const int r = (team_.rank + k) % team_.size;
      STRETTO_TRY(e.beyond(uint32_t(r), uint32_t(team_.size) - 1, r));
      const Range theirs = slice(i, r);
      if (finished_ == Finished::all_collected && theirs.size() > 0)
        kernels::copy(result(theirs), cell(r, i, r), bytes(theirs), store_);
    }
    rounds_.drained(collected_++);
    return Status::good();
  }

  Team& team_;
  const Request& request_;
  Homes homes_;
  Rounds& rounds_;
  const Finished finished_;
  const kernels::Store store_ = team_.store_of(2 * request_.bytes());
  uint32_t staged_ = 0, collected_ = 0;
  Epoch epochs_[epoch_ring];
};

}  // namespace

Status presence_staged_reduce(Team& team, const Request& request, Consumers consumers) {
  const bool collects = consumes(consumers, request, team.rank);
  return StagedPresence(team, request, collects ? Finished::all_collected : Finished::none_collected).run();
}

Status scatter_reduce_presence(Team& team, const Request& request) {
  return StagedPresence(team, request, Finished::own_kept).run();
}

}  // namespace stretto::collective
