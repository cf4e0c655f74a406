#include "collective/patterns/rounds.hpp"
#include "collective/patterns/staged.hpp"

namespace stretto::collective {
namespace {

constexpr size_t block_bytes =
    16 << 10;  // reduced into the cell and copied on to the output while it is in the first-level cache

class SliceReduction {
 public:
  SliceReduction(Team& team, const Request& request, bool consumer)
      : team_(team), request_(request), rounds_(team, request), consumer_(consumer) {}

  Status run() {
    return in_three_stages(
        rounds_.count(), [&](uint32_t i) { return stage(i); }, [&](uint32_t i) { return reduce_own(i); },
        [&](uint32_t i) { return collect(i); });
  }

 private:
  char* output(const Range& range) const { return static_cast<char*>(request_.output) + rounds_.at(range); }

  // Everything but the own slice: that is two runs, before and after it.
  Status stage(uint32_t i) {
    STRETTO_TRY(rounds_.free(i));
    Range whole = rounds_.range(i), own = rounds_.slice(i, team_.rank);
    for (const Range& run : {Range{whole.begin, own.begin}, Range{own.end, whole.end}})
      STRETTO_TRY(rounds_.put(i, run, request_.input));
    rounds_.filled(i);
    return Status::good();
  }

  Status reduce_own(uint32_t i) {
    Range own = rounds_.slice(i, team_.rank);
    const void** inputs = team_.pointers();
    for (int k = 1; k < team_.size; ++k) {
      int r = (team_.rank + k) % team_.size;
      STRETTO_TRY(rounds_.wait_filled(r, i));
      STRETTO_TRY(rounds_.get(r, i, own, &inputs[r]));
    }
    inputs[team_.rank] = static_cast<const char*>(request_.input) + rounds_.at(own);
    reduce_blocks(own, rounds_.in_cell(i, own));
    rounds_.reduced(i);
    return Status::good();
  }

  void reduce_blocks(const Range& own, char* place) {
    const void** inputs = team_.pointers();
    size_t elements = std::max<size_t>(block_bytes / request_.element, 1);
    for (size_t begin = 0; begin < own.size(); begin += elements) {
      size_t n = std::min(elements, own.size() - begin), done = begin * request_.element, length = n * request_.element;
      combine(request_, inputs, team_.size, place + done, n);
      if (consumer_) kernels::copy(output(own) + done, place + done, length, team_.store_of(2 * request_.bytes()));
      for (int r = 0; r < team_.size; ++r) inputs[r] = static_cast<const char*>(inputs[r]) + length;
    }
  }

  Status collect(uint32_t i) {
    for (int k = 1; consumer_ && k < team_.size; ++k) {
      int r = (team_.rank + k) % team_.size;
      Range theirs = rounds_.slice(i, r);
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
  const bool consumer_;
};

}  // namespace

Status slice_reduce(Team& team, const Request& request, Consumers consumers) {
  return SliceReduction(team, request, consumes(consumers, request, team.rank)).run();
}

}  // namespace stretto::collective
