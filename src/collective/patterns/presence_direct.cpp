#include <algorithm>

#include "collective/patterns/merge.hpp"
#include "collective/patterns/presence.hpp"
#include "collective/patterns/resume.hpp"
#include "collective/patterns/rounds.hpp"
#include "collective/patterns/staged.hpp"

namespace stretto::collective {
namespace {

constexpr size_t block_bytes = 32 << 10;      // finished and stored to all while it is in cache
constexpr size_t smallest_slice = 4 << 10;    // one per rank; below, claiming one costs more than what it balances
constexpr size_t shared_slice = 64 << 10;     // several per rank
constexpr size_t largest_slice = 256 << 10;   // a claimant that loses its core holds up no more than that
constexpr uint32_t slices_per_rank = 4;       // more where slices would be larger than that
constexpr uint64_t largest_room = 16u << 20;  // for partial results at a rank that gets no result

class DirectPresence {
 public:
  DirectPresence(Team& team, const Request& request, Consumers consumers)
      : team_(team),
        request_(request),
        consumers_(consumers),
        consumer_(consumes(consumers, request, team.rank)),
        epoch_(team),
        outputs_(team.lists),
        rooms_(team.lists) {}

  Status run() {
    if (request_.count == 0) return Status::good();
    STRETTO_TRY(epoch_.begin(request_, slices_of(request_.bytes(), team_.size)));
    epoch_.arrive(own_facts());
    look();
    for (int patient = -1;;) {
      // Who is nearly there is waited for: one pass over more contributions is less work than two.
      while (!epoch_.all_here() && patient < epoch_.level()) {
        patient = epoch_.level();
        if (epoch_.glance(looks())) look();
      }
      if (pass()) continue;
      epoch_.tell_ended();
      if (epoch_.all_here()) break;
      const Status arrived = epoch_.next_arrival();
      if (arrived.code == Code::disagreed) leave_alone();
      STRETTO_TRY(arrived);
      look();
    }
    STRETTO_TRY(epoch_.until_complete());
    return finish_stopped();
  }

 private:
  static uint32_t slices_of(size_t bytes, int ranks) {
    const size_t one_each = std::min(bytes / smallest_slice, size_t(ranks));
    const size_t wanted =
        std::max({one_each, std::min(bytes / shared_slice, size_t(ranks) * slices_per_rank), bytes / largest_slice});
    return uint32_t(std::clamp<size_t>(wanted, 1, most_slices));
  }

  Range slice(uint32_t i) const {
    return part_of({0, request_.count}, int(i), int(epoch_.slices()), line_grain(request_.element));
  }
  size_t at(const Range& range) const { return range.begin * request_.element; }
  size_t bytes(const Range& range) const { return range.size() * request_.element; }
  uint32_t looks() const { return uint32_t(std::min<size_t>(bytes(slice(0)) / 512, 400)); }

  // Room for a finished block, and for partial results where there is no output.
  ArrivalFacts own_facts() {
    room_ = consumer_ ? request_.bytes() : std::min<uint64_t>(request_.bytes(), team_.rank % 2 == 0 ? largest_room : 0);
    block_ = static_cast<char*>(team_.scratch.get(block_size() + (consumer_ ? 0 : room_)));
    own_result_ = consumer_ ? static_cast<char*>(request_.output) : block_ + block_size();
    if (team_.direct == nullptr || block_ == nullptr) return {};
    ArrivalFacts facts{team_.direct->window(request_.input), team_.direct->window(own_result_), room_, 0};
    if (!reaches(facts.result)) facts.room = 0;
    return facts;
  }
  size_t block_size() const { return std::max(block_bytes, round_up(request_.element, cache_line)); }

  bool reaches(transport::Window window) const { return team_.direct != nullptr && team_.direct->reach().writes(window); }

  // All that this rank would have to touch of rank r's.
  bool reachable(int r) const {
    const ArrivalFacts& facts = epoch_.facts(r);
    const bool result_needed = facts.room > 0 || consumes(consumers_, request_, r);
    return reaches(facts.input) && (!result_needed || reaches(facts.result));
  }

  void look() {
    epoch_.look();
    for (; examined_ < epoch_.level(); ++examined_)
      if (!reachable(epoch_.arrived(examined_))) unreachable_ = true;
    if (unreachable_) epoch_.stop_all();
  }

  // Nobody begins any more to work on what this rank may leave then; who is at work ends with a slice, or has died.
  void leave_alone() {
    epoch_.stop_all();
    for (uint32_t i = 0; i < epoch_.slices(); ++i) team_.waiter.stay([&] { return epoch_.state(i).owner == 0; });
  }

  // Works on all slices that are free, beginning with those that would be this rank's if all had come together.
  bool pass() {
    bool worked = false;
    const uint32_t n = epoch_.slices(), first = uint32_t(size_t(n) * size_t(team_.rank) / size_t(team_.size));
    for (uint32_t k = 0; k < n && !unreachable_; ++k) {
      worked = work_on((first + k) % n) || worked;
      if (!epoch_.all_here()) look();
    }
    return worked;
  }

  bool work_on(uint32_t i) {
    const SliceState seen = epoch_.state(i);
    const int from = int(seen.level), to = epoch_.level();
    if (seen.owner != 0 || seen.stopped || from >= to) return false;
    Merge merge(team_, request_, epoch_);
    const Range range = slice(i);
    if (!find_places(range, &merge)) return unreachable_ = true, epoch_.stop_all(), true;
    if (!merge.gains(from, to) || !epoch_.claim(i, seen)) return false;
    if (to == team_.size)
      finish(merge, from, range);
    else
      merge.advance(from, to, range.size());
    epoch_.release(i, seen, to);
    return true;
  }

  bool find_places(const Range& range, Merge* merge) {
    for (int i = 0; i < epoch_.level(); ++i) {
      const int r = epoch_.arrived(i);
      const ArrivalFacts& facts = epoch_.facts(r);
      const bool has_room = at(range) + bytes(range) <= facts.room;
      const void* input = r == team_.rank ? static_cast<const char*>(request_.input) + at(range)
                                          : team_.direct->place_at(r, facts.input, at(range), bytes(range));
      const bool needed = has_room || (epoch_.all_here() && consumes(consumers_, request_, r));
      outputs_[r] = needed ? result_at(r, facts, range) : nullptr;
      if (input == nullptr || (needed && outputs_[r] == nullptr)) return false;
      merge->place(r, input, outputs_[r], has_room);
    }
    return true;
  }

  char* result_at(int r, const ArrivalFacts& facts, const Range& range) {
    if (r == team_.rank) return own_result_ + at(range);
    return static_cast<char*>(team_.direct->place_at(r, facts.result, at(range), bytes(range)));
  }

  void finish(const Merge& merge, int from, const Range& range) {
    const kernels::Store store = team_.store_of(2 * request_.bytes());
    const bool apart = request_.op == kernels::Op::user || !consumer_ || store == kernels::Store::stream;
    const size_t step = std::max<size_t>(block_bytes / request_.element, 1);
    for (size_t begin = 0; begin < range.size(); begin += step) {
      const size_t n = std::min(step, range.size() - begin), offset = begin * request_.element;
      char* out = apart ? block_ : outputs_[team_.rank] + offset;
      merge.finish(from, out, begin, n);
      for (int k = 0; k < team_.size; ++k) {
        const int r = (team_.rank + k) % team_.size;
        if (!consumes(consumers_, request_, r) || outputs_[r] + offset == out) continue;
        kernels::copy(outputs_[r] + offset, out, n * request_.element, store);
      }
    }
  }

  // The same ranges on all ranks, since nobody changes the slices any more.
  Status finish_stopped() {
    Range untouched;
    for (uint32_t i = 0; i < epoch_.slices(); ++i) {
      const SliceState state = epoch_.state(i);
      if (!state.stopped) continue;
      if (state.level > 0) {
        STRETTO_TRY(resume_staged(team_, request_, consumers_, {epoch_, slice(i), int(state.level), room_of(i), own_result_}));
        continue;
      }
      if (untouched.size() > 0 && untouched.end != slice(i).begin) STRETTO_TRY(redo(untouched));
      untouched = {untouched.size() > 0 && untouched.end == slice(i).begin ? untouched.begin : slice(i).begin, slice(i).end};
    }
    return untouched.size() > 0 ? redo(untouched) : Status::good();
  }
  const bool* room_of(uint32_t i) {
    const Range range = slice(i);
    for (int r = 0; r < team_.size; ++r) rooms_[r] = at(range) + bytes(range) <= epoch_.facts(r).room;
    return rooms_;
  }

  Status redo(const Range& range) {
    Request part = request_;
    part.count = range.size();
    part.input = static_cast<const char*>(request_.input) + at(range);
    part.output = consumer_ ? static_cast<char*>(request_.output) + at(range) : nullptr;
    return slice_reduce(team_, part, consumers_);
  }

  Team& team_;
  const Request& request_;
  const Consumers consumers_;
  const bool consumer_;
  uint64_t room_ = 0;
  char* block_ = nullptr;
  char* own_result_ = nullptr;
  int examined_ = 0;  // arrivals
  bool unreachable_ = false;
  Epoch epoch_;
  PerRank<char*> outputs_;
  PerRank<bool> rooms_;
};

}  // namespace

Status presence_direct_reduce(Team& team, const Request& request, Consumers consumers) {
  return DirectPresence(team, request, consumers).run();
}

}  // namespace stretto::collective
