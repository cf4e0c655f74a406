#include <algorithm>

#include "collective/patterns/merge.hpp"
#include "collective/patterns/presence.hpp"
#include "collective/patterns/rounds.hpp"

namespace stretto::collective {
namespace {

constexpr size_t block_bytes = 16 << 10;  // finished into the cell and copied on while it is in the first-level cache

class StagedPresence {
 public:
  StagedPresence(Team& team, const Request& request, bool consumer)
      : team_(team), request_(request), rounds_(team, request), consumer_(consumer) {}

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

  // Slices begin on cache lines where elements allow. Rank i is at home in slice i.
  Range slice(uint32_t i, int home) const {
    const size_t grain = cache_line % request_.element == 0 ? cache_line / request_.element : 1;
    return part_of(rounds_.range(i), home, team_.size, grain);
  }
  size_t at(const Range& range) const { return range.begin * request_.element; }
  size_t bytes(const Range& range) const { return range.size() * request_.element; }
  const char* input(size_t position) const { return static_cast<const char*>(request_.input) + position; }

  // Everything but what this rank is at home in: two runs, before and after it.
  Status stage() {
    const uint32_t i = staged_++;
    STRETTO_TRY(rounds_.free(i));
    const Range whole = rounds_.range(i), own = slice(i, team_.rank);
    for (const Range& run : {Range{whole.begin, own.begin}, Range{own.end, whole.end}})
      if (run.size() > 0) STRETTO_TRY(team_.staged->put(rounds_.cell(i), at(run), input(at(run)), bytes(run)));
    STRETTO_TRY(epoch(i).begin(team_, 0, rounds_.number(i)));
    epoch(i).arrive({});
    return Status::good();
  }

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
    Merge merge(request_, e, team_.size, team_.arrival_order);
    merge.keep_apart(home);
    const Range range = slice(i, home);
    for (int ticket = 0; ticket < to; ++ticket) {
      const int r = e.arrived(ticket);
      char* staged = cell(r, i, range);
      merge.place(r, r == home ? input(at(range)) : staged, staged, true);
    }
    if (!merge.gains(from, to) || !e.claim(uint32_t(home), seen)) return false;
    if (to == team_.size)
      finish(merge, from, range, cell(home, i, range));
    else
      merge.advance(from, to, range.size());
    e.release(uint32_t(home), seen, to);
    e.look();
    return true;
  }

  // Cells are in memory that all ranks map; who has claimed a slice may store in it.
  char* cell(int r, uint32_t i, const Range& range) {
    const void* data = nullptr;
    if (!team_.staged->get(r, {}, rounds_.cell(i), at(range), bytes(range), nullptr, &data).ok()) return nullptr;
    return static_cast<char*>(const_cast<void*>(data));
  }

  void finish(const Merge& merge, int from, const Range& range, char* place) {
    const size_t step = std::max<size_t>(block_bytes / request_.element, 1);
    for (size_t begin = 0; begin < range.size(); begin += step) {
      const size_t n = std::min(step, range.size() - begin), offset = begin * request_.element;
      merge.finish(from, place + offset, begin, n);
      if (consumer_) kernels::copy(output(at(range)) + offset, place + offset, n * request_.element);
    }
  }
  char* output(size_t position) const { return static_cast<char*>(request_.output) + position; }

  // All have come to the oldest round: brings it to its end for this rank.
  Status collect() {
    const uint32_t i = collected_;
    Epoch& e = epoch(i);
    while (!e.is_final(e.state(uint32_t(team_.rank))) && !work_on(i, team_.rank)) {
      const SliceState seen = e.state(uint32_t(team_.rank));  // who is at work on it goes beyond that
      if (seen.owner != 0) STRETTO_TRY(e.beyond(uint32_t(team_.rank), seen.level, int(seen.owner) - 1));
    }
    for (int k = 1; k < team_.size; ++k) {
      const int r = (team_.rank + k) % team_.size;
      STRETTO_TRY(e.beyond(uint32_t(r), uint32_t(team_.size) - 1, r));
      const Range theirs = slice(i, r);
      if (consumer_ && theirs.size() > 0) kernels::copy(output(at(theirs)), cell(r, i, theirs), bytes(theirs));
    }
    rounds_.drained(collected_++);
    return Status::good();
  }

  Team& team_;
  const Request& request_;
  Rounds rounds_;
  const bool consumer_;
  uint32_t staged_ = 0, collected_ = 0;
  Epoch epochs_[epoch_ring];
};

}  // namespace

Status presence_staged_reduce(Team& team, const Request& request, Consumers consumers) {
  return StagedPresence(team, request, consumes(consumers, request, team.rank)).run();
}

}  // namespace stretto::collective
