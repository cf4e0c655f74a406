#include "collective/patterns/direct.hpp"

#include "collective/algorithms.hpp"
#include "collective/patterns/exchange.hpp"
#include "collective/patterns/rounds.hpp"
#include "collective/patterns/staged.hpp"

namespace stretto::collective {
namespace {

constexpr size_t block_bytes = 64 << 10;  // read from each peer at a time

class DirectReduction {
 public:
  DirectReduction(Team& team, const Request& request, Consumers consumers)
      : team_(team),
        request_(request),
        consumers_(consumers),
        consumer_(consumes(consumers, request, team.rank)),
        block_(std::max<size_t>(block_bytes / request.element, 1)),
        own_(slice(team.rank)) {}

  Status run() {
    bool all_able;
    STRETTO_TRY(exchange_facts(team_, own_facts(), facts_, &all_able));
    if (!all_able) return slice_reduce(team_, request_, consumers_);
    uint64_t done = reduce_own();
    STRETTO_TRY(exchange_all(team_, done, done_));
    for (int r = 0; r < team_.size; ++r)
      if (done_[r] < slice(r).size()) STRETTO_TRY(redo_reduction({slice(r).begin + done_[r], slice(r).end}));
    uint32_t collected = collect(), all_collected[max_team];
    STRETTO_TRY(exchange_all(team_, collected, all_collected));  // nobody reads this rank's buffers any more
    if (std::count(all_collected, all_collected + team_.size, 0u) > 0) STRETTO_TRY(redo_collection());
    if (!collected || done < own_.size()) team_.direct.reset();  // refused once: never asked again
    return Status::good();
  }

 private:
  Range slice(int owner) const {
    return part_of({0, request_.count}, owner, team_.size, std::max<size_t>(64 / request_.element, 1));
  }
  size_t at(const Range& range) const { return range.begin * request_.element; }
  size_t bytes(const Range& range) const { return range.size() * request_.element; }
  const char* input(size_t position) const { return static_cast<const char*>(request_.input) + position; }

  // Blocks of all ranks, one more for a user's function, and room for the own slice where there is no output.
  size_t scratch_bytes() const {
    return size_t(team_.size + 1) * round_up(block_ * request_.element, cache_line) + (consumer_ ? 0 : bytes(own_));
  }
  char* block(int r) const { return scratch_ + size_t(r) * round_up(block_ * request_.element, cache_line); }
  char* result() const { return consumer_ ? static_cast<char*>(request_.output) + at(own_) : block(team_.size + 1); }

  DirectFacts own_facts() {
    scratch_ = static_cast<char*>(team_.scratch.get(scratch_bytes()));
    if (team_.direct == nullptr || scratch_ == nullptr) return {};
    return {team_.direct->window(request_.input).base, team_.direct->window(result()).base - at(own_), 1, 0};
  }

  // Returns how many elements of the own slice are done; fewer than all when a peer could not be read.
  uint64_t reduce_own() {
    for (size_t begin = 0; begin < own_.size(); begin += block_) {
      Range range{own_.begin + begin, own_.begin + std::min(begin + block_, own_.size())};
      if (!reduce_block(range)) return begin;
    }
    return own_.size();
  }

  bool reduce_block(const Range& range) {
    const void** inputs = team_.pointers();
    for (int k = 1; k < team_.size; ++k) {
      int r = (team_.rank + k) % team_.size;
      if (!team_.direct->get(r, {facts_[r].input}, {0, 0}, at(range), bytes(range), block(r), &inputs[r]).ok()) return false;
    }
    inputs[team_.rank] = input(at(range));
    char* out = result() + (at(range) - at(own_));
    bool by_user = request_.op == kernels::Op::user;  // whose function must not work in the place of an input
    combine(request_, inputs, team_.size, by_user ? block(team_.size) : out, range.size());
    if (by_user) kernels::copy(out, block(team_.size), bytes(range));
    return true;
  }

  Request part(const Range& range) const {
    Request sub = request_;
    sub.count = range.size();
    sub.input = input(at(range));
    sub.output = consumer_ ? static_cast<char*>(request_.output) + at(range) : nullptr;
    return sub;
  }

  Status redo_reduction(const Range& range) { return slice_reduce(team_, part(range), consumers_); }

  uint32_t collect() {
    for (int k = 1; consumer_ && k < team_.size; ++k) {
      int r = (team_.rank + k) % team_.size;
      Range theirs{slice(r).begin, slice(r).begin + done_[r]};
      char* out = static_cast<char*>(request_.output) + at(theirs);
      const void* data;
      if (!team_.direct->get(r, {facts_[r].result}, {0, 0}, at(theirs), bytes(theirs), out, &data).ok()) return 0;
      if (data != out) kernels::copy(out, data, bytes(theirs));
    }
    return 1;
  }

  Status redo_collection() {
    for (int r = 0; r < team_.size; ++r) {
      Request sub = part({slice(r).begin, slice(r).begin + done_[r]});
      sub.root = r;
      if (r == team_.rank) sub.input = result();
      if (sub.count > 0) STRETTO_TRY(bcast_staged(team_, sub));
    }
    return Status::good();
  }

  Team& team_;
  const Request& request_;
  const Consumers consumers_;
  const bool consumer_;
  const size_t block_;
  const Range own_;
  char* scratch_ = nullptr;
  DirectFacts facts_[max_team];
  uint64_t done_[max_team];
};

}  // namespace

Status exchange_facts(Team& team, const DirectFacts& own, DirectFacts* all, bool* all_able) {
  STRETTO_TRY(exchange_all(team, own, all));
  *all_able = true;
  for (int r = 0; r < team.size; ++r) *all_able = *all_able && all[r].able;
  return Status::good();
}

Status direct_reduce(Team& team, const Request& request, Consumers consumers) {
  return DirectReduction(team, request, consumers).run();
}

}  // namespace stretto::collective
