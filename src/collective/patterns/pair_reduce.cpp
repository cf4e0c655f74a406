// Reductions of two ranks: slices whose results stand where the contributions stood.
//
// Each rank owns one half of every round. It stages the other half in its cell; the owner reduces it there, in the other's cell,
// and the other copies the result out, if it consumes it. (What a lone consumer owns it reduces straight to its output.) So a
// line of a cell has but two places: it travels to the owner with the contribution and back with the result, and whoever is going
// to write to it holds it already. (A line that only one rank writes to has to be claimed back from its reader each time, which
// costs as much as reading it: that is what slices does.) Per byte of the vector and rank 4.5 loads and stores.
#include "collective/patterns/rounds.hpp"
#include "collective/patterns/staged.hpp"

namespace stretto::collective {
namespace {

// Worked on at a time: while one block is, the lines of the next are on their way.
constexpr size_t block_bytes = 1 << 10;

// All cells of the two ranks together stay in a second-level cache.
constexpr size_t round_bytes = 64 << 10;

constexpr size_t offered_bytes = 4 << 10;

class PairReduction {
 public:
  PairReduction(Team& team, const Request& request, Consumers consumers)
      : team_(team),
        request_(request),
        rounds_(team, request, round_bytes, 1, Rounds::Course::stay),
        other_(1 - team.rank),
        consumes_(consumes(consumers, request, team.rank)),
        other_consumes_(consumes(consumers, request, other_)) {}

  Status run() {
    return in_three_stages(
        rounds_.count(), [&](uint32_t i) { return stage(i); }, [&](uint32_t i) { return reduce_own(i); },
        [&](uint32_t i) { return collect(i); });
  }

 private:
  char* output(const Range& range) const { return static_cast<char*>(request_.output) + rounds_.at(range); }

  Status stage(uint32_t i) {
    STRETTO_TRY(rounds_.free(i));
    Range theirs = rounds_.slice(i, other_);
    if (consumes_)
      STRETTO_TRY(rounds_.put(i, theirs, request_.input));
    else
      STRETTO_TRY(fetch_and_put(i, theirs));
    rounds_.filled(i);
    offer_few(rounds_.in_cell(i, theirs), rounds_.bytes(theirs));
    return Status::good();
  }

  // Of lines that a lone consumer keeps.
  Status fetch_and_put(uint32_t i, const Range& range) {
    char* place = rounds_.in_cell(i, range);
    if (place == nullptr) return invalid("a range outside its cell", other_);
    const char* input = static_cast<const char*>(request_.input) + rounds_.at(range);
    in_blocks(place, range.size(),
              [&](size_t done, size_t elements) { kernels::copy(place + done, input + done, elements * request_.element); });
    return Status::good();
  }

  Status reduce_own(uint32_t i) {
    Range own = rounds_.slice(i, team_.rank);
    STRETTO_TRY(rounds_.wait_filled(other_, i));
    char* theirs = rounds_.in_cell_of(other_, i, own);
    if (theirs == nullptr) return invalid("cells that only their owner writes to", other_);
    const char* mine = static_cast<const char*>(request_.input) + rounds_.at(own);
    char* out = consumes_ ? output(own) : nullptr;
    in_blocks(theirs, own.size(), [&](size_t done, size_t elements) {
      const void* inputs[2];
      inputs[team_.rank] = mine + done;
      inputs[other_] = theirs + done;
      combine(request_, inputs, 2, other_consumes_ ? theirs + done : out + done, elements);
      if (consumes_ && other_consumes_) kernels::copy(out + done, theirs + done, elements * request_.element);
    });
    if (!other_consumes_) return Status::good();
    rounds_.reduced(i);
    offer_few(theirs, rounds_.bytes(own));
    return Status::good();
  }

  Status collect(uint32_t i) {
    if (!consumes_) return rounds_.drained(i), Status::good();
    Range theirs = rounds_.slice(i, other_);
    STRETTO_TRY(rounds_.wait_reduced(other_, i));
    char* place = rounds_.in_cell(i, theirs);
    char* out = output(theirs);
    in_blocks(place, theirs.size(),
              [&](size_t done, size_t elements) { kernels::copy(out + done, place + done, elements * request_.element); });
    rounds_.drained(i);
    return Status::good();
  }

  // Offering a line takes as long as fetching it, but begins earlier: it pays as long as stores to come need not wait for it.
  static void offer_few(const char* lines, size_t bytes) {
    if (bytes <= offered_bytes) offer(lines, bytes);
  }

  // work(bytes before the block, elements in it) for each block of `count` elements at `lines`, which become this rank's.
  template <typename Work>
  void in_blocks(const char* lines, size_t count, Work work) {
    size_t step = std::max<size_t>(block_bytes / request_.element, 1), step_bytes = step * request_.element;
    size_t total = count * request_.element;
    prefetch_for_write(lines, std::min(step_bytes, total));
    for (size_t begin = 0; begin < count; begin += step) {
      size_t done = begin * request_.element, next = done + step_bytes;
      if (next < total) prefetch_for_write(lines + next, std::min(step_bytes, total - next));
      work(done, std::min(step, count - begin));
    }
  }

  Team& team_;
  const Request& request_;
  Rounds rounds_;
  const int other_;
  const bool consumes_, other_consumes_;
};

}  // namespace

Status pair_reduce(Team& team, const Request& request, Consumers consumers) {
  if (team.size != 2 || request.op == kernels::Op::user) return slice_reduce(team, request, consumers);
  return PairReduction(team, request, consumers).run();
}

}  // namespace stretto::collective
