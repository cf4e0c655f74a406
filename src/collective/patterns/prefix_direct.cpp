#include "collective/patterns/direct.hpp"
#include "collective/patterns/meeting.hpp"
#include "collective/patterns/prefix_reduce.hpp"
#include "collective/patterns/rounds.hpp"

namespace stretto::collective {
namespace {

constexpr size_t block_bytes = 64 << 10;  // read from each rank at a time

class DirectPrefix {
 public:
  DirectPrefix(Team& team, const Request& request, Prefix prefix)
      : team_(team),
        request_(request),
        prefix_(prefix),
        block_(std::max<size_t>(block_bytes / request.element, 1)),
        room_(round_up(block_ * request.element, cache_line)),
        own_(slice(team.rank)),
        facts_(team.lists) {}

  Status run() {
    transport::Reach common;
    STRETTO_TRY(exchange_facts(team_, request_, own_facts(), facts_, &common));
    if (!reachable(common)) return without_direct(team_, request_, [&] { return prefix_staged(team_, request_, prefix_); });
    const uint64_t done = reduce_own();
    PerRank<uint64_t> all_done(team_.lists);
    STRETTO_TRY(exchange_all(team_, done, all_done));  // and nobody touches this rank's buffers any more
    if (done < own_.size()) team_.direct.reset();      // refused once: never asked again
    for (int r = 0; r < team_.size; ++r)
      if (all_done[r] < slice(r).size()) STRETTO_TRY(redo({slice(r).begin + all_done[r], slice(r).end}));
    return Status::good();
  }

 private:
  int inputs_of(int r) const { return collective::inputs_of(r, prefix_); }
  Range slice(int owner) const { return part_of({0, request_.count}, owner, team_.size, line_grain(request_.element)); }
  size_t at(const Range& range) const { return range.begin * request_.element; }
  size_t bytes(const Range& range) const { return range.size() * request_.element; }
  bool is_read(int r) const { return r < inputs_of(team_.size - 1); }

  // Blocks of all ranks, and one for results.
  DirectFacts own_facts() {
    scratch_ = static_cast<char*>(team_.scratch.get(size_t(team_.size + 1) * room_));
    if (team_.direct == nullptr || scratch_ == nullptr) return {};
    return {team_.direct->window(request_.input), team_.direct->window(request_.output), team_.direct->reach()};
  }

  bool reachable(transport::Reach common) const {
    for (int r = 0; r < team_.size; ++r) {
      if (is_read(r) && !common.reads(facts_[r].input)) return false;
      if (inputs_of(r) > 0 && !common.writes(facts_[r].result)) return false;
    }
    return true;
  }

  // How many elements of the own slice are done: fewer than all when a buffer could not be reached.
  uint64_t reduce_own() {
    for (size_t begin = 0; begin < own_.size(); begin += block_)
      if (!reduce_block({own_.begin + begin, std::min(own_.begin + begin + block_, own_.end)})) return begin;
    return own_.size();
  }

  bool reduce_block(const Range& range) {
    PerRank<void*> results(team_.lists);
    if (!find(range, team_.pointers(), results)) return false;
    // From the last rank on: a result may stand where its rank's contribution was, which only later ranks need.
    for (int r = team_.size - 1; r >= 0 && inputs_of(r) > 0; --r) {
      void* out = request_.op == kernels::Op::user ? scratch_ + size_t(team_.size) * room_ : results[r];
      combine_prefix(request_, team_.pointers(), inputs_of(r), out, range.size());
      if (out != results[r]) kernels::copy(results[r], out, bytes(range));
    }
    return true;
  }

  // Everybody's contributions and places for results, before anything is overwritten.
  bool find(const Range& range, const void** inputs, void** results) {
    for (int k = 0; k < team_.size; ++k) {
      const int r = (team_.rank + k) % team_.size;
      if (inputs_of(r) > 0 && (results[r] = place(r, range)) == nullptr) return false;
      if (is_read(r) && !read(r, range, &inputs[r])) return false;
    }
    return true;
  }

  void* place(int r, const Range& range) {
    if (r == team_.rank) return static_cast<char*>(request_.output) + at(range);
    return team_.direct->place_at(r, facts_[r].result, at(range), bytes(range));
  }

  bool read(int r, const Range& range, const void** data) {
    *data = static_cast<const char*>(request_.input) + at(range);
    if (r == team_.rank) return true;
    return team_.direct->get(r, facts_[r].input, {0, 0}, at(range), bytes(range), scratch_ + size_t(r) * room_, data).ok();
  }

  Status redo(const Range& range) {
    Request rest = request_;
    rest.count = range.size();
    rest.input = static_cast<const char*>(request_.input) + at(range);
    if (request_.output != nullptr) rest.output = static_cast<char*>(request_.output) + at(range);
    return prefix_staged(team_, rest, prefix_);
  }

  Team& team_;
  const Request& request_;
  const Prefix prefix_;
  const size_t block_, room_;
  const Range own_;
  char* scratch_ = nullptr;
  PerRank<DirectFacts> facts_;
};

}  // namespace

Status prefix_direct(Team& team, const Request& request, Prefix prefix) {
  return DirectPrefix(team, request, prefix).run();
}

}  // namespace stretto::collective
