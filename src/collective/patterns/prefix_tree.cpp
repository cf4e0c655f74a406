#include <bit>

#include "collective/patterns/prefix_reduce.hpp"
#include "collective/patterns/rounds.hpp"

namespace stretto::collective {
namespace {

constexpr size_t piece_bytes = 32 << 10;

// The fixed association of so many inputs is a tree of blocks: of 2^l ranks, from a multiple of that on. The last rank of a block
// makes it of its two halves, and shows it in its cell; so of what comes before a rank it reads a few blocks and not every rank.
// (The contribution of a rank is its block of level 0.) Each range of the vector takes a round for each level.
class TreePrefix {
 public:
  TreePrefix(Team& team, const Request& request, Prefix prefix)
      : team_(team),
        request_(request),
        levels_(uint32_t(std::bit_width(unsigned(team.size - 1)))),
        elements_(std::clamp<size_t>(most_bytes(team, levels_) / request.element, 1, request.count)),
        ranges_(uint32_t((request.count + elements_ - 1) / elements_)),
        rounds_(team, all_rounds(), elements_ * request.element),
        prefix_(prefix),
        shows_(team.rank + 1 < team.size) {}

  // Ranks whose own contribution is all they show do so ahead.
  Status run() {
    const bool ahead = team_.rank % 2 == 0;
    if (ahead) STRETTO_TRY(stage(0));
    for (uint32_t i = 0; i < ranges_; ++i) {
      Sum own{input(i), 0};
      if (ahead) STRETTO_TRY(stage(i + 1));
      if (!ahead && shows_) STRETTO_TRY(make_blocks(i, &own));
      STRETTO_TRY(reduce(i, own));
      rounds_.drained(round(i, levels_ - 1));
    }
    return Status::good();
  }

 private:
  // A block that ends with this rank.
  struct Sum {
    const void* data;
    uint32_t level;
  };

  // Two ranges of all levels are in a ring at a time, and then some.
  static size_t most_bytes(const Team& team, uint32_t levels) {
    return std::min({piece_bytes, team.staged->cell_bytes(), Rounds::most_held(team) / (4 * levels)});
  }

  // The last one is as short as the vector's end: by this count ranks see whether they have vectors of one length.
  Request all_rounds() const {
    Request all = request_;
    all.count = (size_t(ranges_) * levels_ - 1) * elements_ + range(ranges_ - 1).size();
    return all;
  }
  uint32_t round(uint32_t i, uint32_t level) const { return i * levels_ + level; }
  Range range(uint32_t i) const { return {i * elements_, std::min((i + 1) * elements_, request_.count)}; }
  Range in_round(uint32_t i, uint32_t level) const {
    const size_t begin = rounds_.range(round(i, level)).begin;
    return {begin, begin + range(i).size()};
  }
  const char* input(uint32_t i) const { return static_cast<const char*>(request_.input) + rounds_.at(range(i)); }
  char* output(uint32_t i) const { return static_cast<char*>(request_.output) + rounds_.at(range(i)); }

  Status stage(uint32_t i) {
    if (!shows_ || i >= ranges_) return Status::good();
    STRETTO_TRY(rounds_.free(round(i, 0)));
    STRETTO_TRY(rounds_.put_at(rounds_.place(round(i, 0)), input(i), rounds_.bytes(range(i))));
    rounds_.filled(round(i, 0));
    rounds_.filled(round(i, levels_ - 1));
    return Status::good();
  }

  // The block that ends with rank r.
  Status get(int r, uint32_t i, uint32_t level, const void** data) {
    STRETTO_TRY(team_.waiter.until(rounds_.filled_by(r), rounds_.number(round(i, level)), r));
    if (i == 0) STRETTO_TRY(rounds_.compare(r));
    return rounds_.get(r, round(i, level), in_round(i, level), data);
  }

  Status make_blocks(uint32_t i, Sum* own) {
    rounds_.filled(round(i, 0));  // which nobody reads
    for (uint32_t l = 0; (team_.rank + 1) % (2 << l) == 0; ++l) {
      const void* halves[2] = {nullptr, own->data};
      STRETTO_TRY(get(team_.rank - (1 << l), i, l, &halves[0]));
      STRETTO_TRY(rounds_.free(round(i, l + 1)));
      char* block = rounds_.in_cell(round(i, l + 1), in_round(i, l + 1));
      combine(request_, halves, 2, block, range(i).size());
      rounds_.filled(round(i, l + 1));
      *own = {block, l + 1};
    }
    rounds_.filled(round(i, levels_ - 1));
    return Status::good();
  }

  // From the right: what comes before the own block, from the smallest block to the largest.
  Status reduce(uint32_t i, const Sum& own) {
    const bool with_own = prefix_ == Prefix::with_own;
    const void* sum = with_own ? own.data : nullptr;
    for (int before = with_own ? team_.rank + 1 - (1 << own.level) : team_.rank; before > 0; before &= before - 1) {
      const void* inputs[2] = {nullptr, sum};
      STRETTO_TRY(get(before - 1, i, uint32_t(std::countr_zero(unsigned(before))), &inputs[0]));
      if (sum != nullptr) combine(request_, inputs, 2, output(i), range(i).size());
      sum = sum != nullptr ? output(i) : inputs[0];
    }
    if (sum != nullptr && sum != output(i)) kernels::copy(output(i), sum, rounds_.bytes(range(i)));
    return Status::good();
  }

  Team& team_;
  const Request& request_;
  const uint32_t levels_;  // of blocks that others may want
  const size_t elements_;  // of a range
  const uint32_t ranges_;
  Rounds rounds_;
  const Prefix prefix_;
  const bool shows_;
};

}  // namespace

Status prefix_tree(Team& team, const Request& request, Prefix prefix) {
  if (request.op == kernels::Op::user || team.size == 1 || request.count == 0) return prefix_staged(team, request, prefix);
  return TreePrefix(team, request, prefix).run();
}

}  // namespace stretto::collective
