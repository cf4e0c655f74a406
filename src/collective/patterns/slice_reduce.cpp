#include "collective/patterns/rounds.hpp"
#include "collective/patterns/staged.hpp"

namespace stretto::collective {
namespace {

constexpr size_t block_bytes =
    16 << 10;  // reduced into the cell and copied on to the output while it is in the first-level cache

class SliceReduction {
 public:
  SliceReduction(Team& team, const Request& request, bool consumer)
      : team_(team), request_(request), rounds_(team, request), consumer_(consumer), grain_(grain_of(request.element)) {}

  Status run() {
    for (uint32_t step = 0; step < rounds_.count() + 2; ++step) {
      if (step < rounds_.count()) STRETTO_TRY(stage(step));
      if (step >= 1 && step - 1 < rounds_.count()) STRETTO_TRY(reduce_own(step - 1));
      if (step >= 2) STRETTO_TRY(collect(step - 2));
    }
    return Status::good();
  }

 private:
  // Slices begin on cache lines where elements allow.
  static size_t grain_of(size_t element) { return cache_line % element == 0 ? cache_line / element : 1; }

  Range slice(uint32_t i, int owner) const { return part_of(rounds_.range(i), owner, team_.size, grain_); }
  size_t at(const Range& range) const { return range.begin * request_.element; }
  size_t bytes(const Range& range) const { return range.size() * request_.element; }
  const char* input(size_t position) const { return static_cast<const char*>(request_.input) + position; }
  char* output(size_t position) const { return static_cast<char*>(request_.output) + position; }

  // Everything but the own slice: that is two runs, before and after it.
  Status stage(uint32_t i) {
    STRETTO_TRY(rounds_.free(i));
    Range whole = rounds_.range(i), own = slice(i, team_.rank);
    for (const Range& run : {Range{whole.begin, own.begin}, Range{own.end, whole.end}})
      if (run.size() > 0) STRETTO_TRY(team_.staged->put(rounds_.cell(i), at(run), input(at(run)), bytes(run)));
    rounds_.filled(i);
    return Status::good();
  }

  Status reduce_own(uint32_t i) {
    Range own = slice(i, team_.rank);
    const void** inputs = team_.pointers();
    for (int k = 1; k < team_.size; ++k) {
      int r = (team_.rank + k) % team_.size;
      STRETTO_TRY(rounds_.wait_filled(r, i));
      STRETTO_TRY(team_.staged->get(r, {}, rounds_.cell(i), at(own), bytes(own), nullptr, &inputs[r]));
    }
    inputs[team_.rank] = input(at(own));
    reduce_blocks(own, static_cast<char*>(team_.staged->place(rounds_.cell(i), at(own), bytes(own))));
    rounds_.reduced(i);
    return Status::good();
  }

  void reduce_blocks(const Range& own, char* place) {
    const void** inputs = team_.pointers();
    size_t elements = std::max<size_t>(block_bytes / request_.element, 1);
    for (size_t begin = 0; begin < own.size(); begin += elements) {
      size_t n = std::min(elements, own.size() - begin), done = begin * request_.element, length = n * request_.element;
      combine(request_, inputs, team_.size, place + done, n);
      if (consumer_) kernels::copy(output(at(own) + done), place + done, length);
      for (int r = 0; r < team_.size; ++r) inputs[r] = static_cast<const char*>(inputs[r]) + length;
    }
  }

  Status collect(uint32_t i) {
    for (int k = 1; consumer_ && k < team_.size; ++k) {
      int r = (team_.rank + k) % team_.size;
      Range theirs = slice(i, r);
      const void* data;
      STRETTO_TRY(rounds_.wait_reduced(r, i));
      STRETTO_TRY(team_.staged->get(r, {}, rounds_.cell(i), at(theirs), bytes(theirs), nullptr, &data));
      kernels::copy(output(at(theirs)), data, bytes(theirs));
    }
    rounds_.drained(i);
    return Status::good();
  }

  Team& team_;
  const Request& request_;
  Rounds rounds_;
  const bool consumer_;
  const size_t grain_;
};

}  // namespace

Status slice_reduce(Team& team, const Request& request, Consumers consumers) {
  return SliceReduction(team, request, consumes(consumers, request, team.rank)).run();
}

}  // namespace stretto::collective
