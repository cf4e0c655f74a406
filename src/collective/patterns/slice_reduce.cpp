#include "collective/patterns/rounds.hpp"
#include "collective/patterns/staged.hpp"

namespace stretto::collective {
namespace {

constexpr size_t block_bytes = 16 << 10;  // reduced, and copied on while it is in the first-level cache

class SliceReduction {
 public:
  SliceReduction(Team& team, const Request& request, Consumers consumers)
      : team_(team),
        request_(request),
        rounds_(team, request),
        idle_(consumers == Consumers::root && team.size > 2 ? request.root : -1),
        consumer_(consumes(consumers, request, team.rank)) {}

  Status run() {
    return in_three_stages(
        rounds_.count(), [&](uint32_t i) { return stage(i); }, [&](uint32_t i) { return reduce_own(i); },
        [&](uint32_t i) { return collect(i); });
  }

 private:
  // A root that collects alone has more to do than the others, and owns no slice (16 ranks, 1 MiB: 295 us instead of 360).
  Range slice(uint32_t i, int owner) const {
    if (idle_ < 0) return rounds_.slice(i, owner);
    const Range whole = rounds_.range(i);
    return owner == idle_ ? Range{whole.end, whole.end} : rounds_.slice(i, owner - (owner > idle_), team_.size - 1);
  }

  char* output(const Range& range) const { return static_cast<char*>(request_.output) + rounds_.at(range); }

  // Everything but the own slice: that is two runs, before and after it.
  Status stage(uint32_t i) {
    STRETTO_TRY(rounds_.free(i));
    Range whole = rounds_.range(i), own = slice(i, team_.rank);
    for (const Range& run : {Range{whole.begin, own.begin}, Range{own.end, whole.end}})
      STRETTO_TRY(rounds_.put(i, run, request_.input));
    rounds_.filled(i);
    return Status::good();
  }

  Status reduce_own(uint32_t i) {
    Range own = slice(i, team_.rank);
    const void** inputs = team_.pointers();
    for (int k = 1; k < team_.size; ++k) {
      int r = (team_.rank + k) % team_.size;
      if (own.size() == 0 && i > 0) break;  // that all make the same call has been seen
      STRETTO_TRY(rounds_.wait_filled(r, i));
      STRETTO_TRY(rounds_.get(r, i, own, &inputs[r]));
    }
    inputs[team_.rank] = static_cast<const char*>(request_.input) + rounds_.at(own);
    reduce_blocks(i, own);
    rounds_.reduced(i);
    return Status::good();
  }

  // Each block of the result is made in the cell and copied on while it is in the first-level cache; or, where what is staged
  // goes past the caches, made where it is wanted and copied to the cell. (A user's function must not find its input in the
  // output.)
  void reduce_blocks(uint32_t i, const Range& own) {
    const void** inputs = team_.pointers();
    const kernels::Store store = team_.store_of(2 * request_.bytes());
    const Range whole = rounds_.range(i);
    const size_t staged = std::max(own.begin - whole.begin, whole.end - own.end) * request_.element;
    const bool past_caches = consumer_ && rounds_.goes_past_caches(staged) && request_.op != kernels::Op::user;
    const size_t elements = std::max<size_t>(block_bytes / request_.element, 1);
    for (size_t begin = own.begin; begin < own.end; begin += elements) {
      const Range block{begin, std::min(begin + elements, own.end)};
      const size_t length = rounds_.bytes(block);
      char* place = rounds_.in_cell(i, block);
      char* result = consumer_ ? output(block) : nullptr;
      combine(request_, inputs, team_.size, past_caches ? result : place, block.size());
      if (past_caches)
        kernels::copy(place, result, length, kernels::Store::stream);
      else if (consumer_)
        kernels::copy(result, place, length, store);
      for (int r = 0; r < team_.size; ++r) inputs[r] = static_cast<const char*>(inputs[r]) + length;
    }
  }

  Status collect(uint32_t i) {
    for (int k = 1; consumer_ && k < team_.size; ++k) {
      int r = (team_.rank + k) % team_.size;
      Range theirs = slice(i, r);
      const void* data;
      STRETTO_TRY(rounds_.wait_reduced(r, i));
      STRETTO_TRY(rounds_.get(r, i, theirs, &data));
      kernels::copy(output(theirs), data, rounds_.bytes(theirs), team_.store_of(2 * request_.bytes()));
    }
    rounds_.drained(i);
    return Status::good();
  }

  Team& team_;
  const Request& request_;
  Rounds rounds_;
  const int idle_;  // who owns no slice; -1: all do
  const bool consumer_;
};

}  // namespace

Status slice_reduce(Team& team, const Request& request, Consumers consumers) {
  return SliceReduction(team, request, consumers).run();
}

}  // namespace stretto::collective
