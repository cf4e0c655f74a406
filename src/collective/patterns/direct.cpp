#include "collective/patterns/direct.hpp"

#include "collective/algorithms.hpp"
#include "collective/patterns/meeting.hpp"
#include "collective/patterns/parcels.hpp"
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
        own_(slice(team.rank)),
        facts_(team.lists),
        places_(team.lists),
        done_(team.lists) {}

  Status run() {
    transport::Reach common;
    STRETTO_TRY(exchange_facts(team_, request_, own_facts(), facts_, &common));
    pushes_ = all_consumers_writable(common);
    if (!reachable(common)) return without_direct(team_, request_, [&] { return slice_reduce(team_, request_, consumers_); });
    uint64_t done = reduce_own();
    STRETTO_TRY(exchange_all(team_, done, done_));  // pushing: and nobody touches this rank's buffers any more
    for (int r = 0; r < team_.size; ++r)
      if (done_[r] < slice(r).size()) STRETTO_TRY(redo_reduction({slice(r).begin + done_[r], slice(r).end}));
    uint32_t collected = 1;
    if (!pushes_) STRETTO_TRY(collect_all(&collected));
    if (!collected || done < own_.size()) team_.direct.reset();  // refused once: never asked again
    return Status::good();
  }

 private:
  Range slice(int owner) const { return part_of({0, request_.count}, owner, team_.size, line_grain(request_.element)); }
  size_t at(const Range& range) const { return range.begin * request_.element; }
  size_t bytes(const Range& range) const { return range.size() * request_.element; }
  const char* input(size_t position) const { return static_cast<const char*>(request_.input) + position; }

  // Blocks of all ranks, one more for the result, and room for the own slice where there is no output.
  size_t scratch_bytes() const {
    return size_t(team_.size + 1) * round_up(block_ * request_.element, cache_line) + (consumer_ ? 0 : bytes(own_));
  }
  char* block(int r) const { return scratch_ + size_t(r) * round_up(block_ * request_.element, cache_line); }
  char* result() const { return consumer_ ? static_cast<char*>(request_.output) + at(own_) : block(team_.size + 1); }

  DirectFacts own_facts() {
    scratch_ = static_cast<char*>(team_.scratch.get(scratch_bytes()));
    if (team_.direct == nullptr || scratch_ == nullptr) return {};
    transport::Window result_window = team_.direct->window(result());
    return {team_.direct->window(request_.input), transport::earlier(result_window, at(own_)), team_.direct->reach()};
  }

  bool all_consumers_writable(transport::Reach common) const {
    for (int r = 0; r < team_.size; ++r)
      if (consumes(consumers_, request_, r) && !common.writes(facts_[r].result)) return false;
    return true;
  }

  // Whether all that will be read can be; and, where copying alone is no gain, whether some of the program's
  // memory is mapped.
  bool reachable(transport::Reach common) const {
    bool mapped = team_.unmapped == nullptr;
    for (int r = 0; r < team_.size; ++r) {
      if (!common.reads(facts_[r].input) || (!pushes_ && !common.reads(facts_[r].result))) return false;
      mapped = mapped || common.writes(facts_[r].input) || (consumes(consumers_, request_, r) && common.writes(facts_[r].result));
    }
    return mapped;
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
    if (pushes_ && !find_places(range)) return false;  // before a result overwrites an input
    const void** inputs = team_.pointers();
    for (int k = 1; k < team_.size; ++k) {
      int r = (team_.rank + k) % team_.size;
      if (!team_.direct->get(r, facts_[r].input, {0, 0}, at(range), bytes(range), block(r), &inputs[r]).ok()) return false;
    }
    inputs[team_.rank] = input(at(range));
    kernels::Store store = team_.store_of(2 * request_.bytes());
    bool by_user = request_.op == kernels::Op::user;  // whose function must not work in the place of an input
    bool apart = by_user || (pushes_ && (!consumer_ || store == kernels::Store::stream));
    char* out = apart ? block(team_.size) : result() + (at(range) - at(own_));
    combine(request_, inputs, team_.size, out, range.size());
    if (pushes_)
      push(range, out, store);
    else if (apart)
      kernels::copy(result() + (at(range) - at(own_)), out, bytes(range));
    return true;
  }

  // A finished block, to all that consume it. It stays in the nearest cache meanwhile.
  void push(const Range& range, const char* block, kernels::Store store) {
    for (int k = 0; k < team_.size; ++k) {
      int r = (team_.rank + k) % team_.size;
      if (consumes(consumers_, request_, r) && places_[r] != block) kernels::copy(places_[r], block, bytes(range), store);
    }
  }

  bool find_places(const Range& range) {
    for (int r = 0; r < team_.size; ++r) {
      if (!consumes(consumers_, request_, r)) continue;
      void* place = r == team_.rank ? static_cast<char*>(request_.output) + at(range)
                                    : team_.direct->place_at(r, facts_[r].result, at(range), bytes(range));
      places_[r] = static_cast<char*>(place);
      if (places_[r] == nullptr) return false;
    }
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

  Status collect_all(uint32_t* collected) {
    *collected = collect();
    PerRank<uint32_t> all_collected(team_.lists);
    STRETTO_TRY(exchange_all(team_, *collected, all_collected));  // nobody reads this rank's buffers any more
    return std::count(all_collected.of, all_collected + team_.size, 0u) > 0 ? redo_collection() : Status::good();
  }

  uint32_t collect() {
    for (int k = 1; consumer_ && k < team_.size; ++k) {
      int r = (team_.rank + k) % team_.size;
      Range theirs{slice(r).begin, slice(r).begin + done_[r]};
      char* out = static_cast<char*>(request_.output) + at(theirs);
      const void* data;
      if (!team_.direct->get(r, facts_[r].result, {0, 0}, at(theirs), bytes(theirs), out, &data).ok()) return 0;
      if (data != out) kernels::copy(out, data, bytes(theirs), team_.store_of(2 * request_.bytes()));
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
  bool pushes_ = false;
  PerRank<DirectFacts> facts_;
  PerRank<char*> places_;  // of a block, with those who consume it
  PerRank<uint64_t> done_;
};

}  // namespace

Status exchange_facts(Team& team, const Request& request, DirectFacts own, DirectFacts* all, transport::Reach* common) {
  own.label = label_of(request.kind, Form::direct, request.bytes());
  STRETTO_TRY(exchange_all(team, own, all));
  *common = all[0].reach;
  for (int r = 0; r < team.size; ++r) {
    *common = *common & all[r].reach;
    STRETTO_TRY(compare_labels(own.label, all[r].label, r));
    if (request.kind != Kind::bcast && own.label != all[r].label) return truncated("ranks give messages of different sizes", r);
  }
  return Status::good();
}

bool is_uneven(const Team& team, const Request& request, const DirectFacts* facts) {
  const auto differs = [&](const DirectFacts& one) { return one.label != facts[request.root].label; };
  return std::any_of(facts, facts + team.size, differs);
}

Status broadcast_uneven(Team& team, const Request& request, const DirectFacts* facts) {
  Request message;
  message.kind = Kind::bcast;
  message.count = bytes_of(facts[request.root].label);
  message.root = request.root;
  message.input = request.input;
  const bool fits = message.count <= request.bytes();
  message.output = fits ? request.output : nullptr;
  request.came(0, message.count);
  STRETTO_TRY(bcast_staged(team, message));
  return fits ? Status::good() : truncated("a message is longer than the room for it", request.root);
}

Status direct_reduce(Team& team, const Request& request, Consumers consumers) {
  return DirectReduction(team, request, consumers).run();
}

}  // namespace stretto::collective
