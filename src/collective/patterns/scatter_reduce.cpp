#include "collective/patterns/scatter_reduce.hpp"

#include <string.h>

#include "collective/patterns/direct.hpp"
#include "collective/patterns/meeting.hpp"
#include "collective/patterns/rounds.hpp"

namespace stretto::collective {
namespace {

size_t elements_of(const Request& request, int block) {
  return request.gives[block].bytes / request.element;
}

class StagedScatter {
 public:
  StagedScatter(Team& team, const Request& request)
      : team_(team),
        request_(request),
        stages_own_(result_in_input(request)),
        slice_(std::max<size_t>(team.staged->cell_bytes() / request.element / size_t(team.size), 1)),
        rounds_(team, lengths(), slice_ * request.element, team.size) {}

  Status run() {
    STRETTO_TRY(stage(0));
    for (uint32_t i = 0; i < rounds_.count(); ++i) {
      STRETTO_TRY(stage(i + 1));
      STRETTO_TRY(reduce(i));
    }
    rounds_.fetch_next();
    return Status::good();
  }

 private:
  Request lengths() const {
    Request longest;
    longest.element = request_.element;
    for (int r = 0; r < team_.size; ++r) longest.count = std::max(longest.count, elements_of(request_, r));
    return longest;
  }

  // The slice of a block that travels in a round, in elements of the block.
  Range slice(uint32_t i, int block) const {
    Range range = rounds_.range(i);
    size_t end = std::min(range.end, elements_of(request_, block));
    return {std::min(range.begin, end), end};
  }
  const char* input(int block, size_t element) const {
    return static_cast<const char*>(request_.gives[block].data) + element * request_.element;
  }

  Status stage(uint32_t i) {
    if (i >= rounds_.count()) return Status::good();
    STRETTO_TRY(rounds_.free(i));
    for (int block = 0; block < team_.size; ++block) {
      Range range = slice(i, block);
      if (range.size() == 0 || (block == team_.rank && !stages_own_)) continue;
      const char* data = input(block, range.begin);
      STRETTO_TRY(rounds_.put_at(rounds_.place(i, block), data, range.size() * request_.element));
    }
    rounds_.filled(i);
    return Status::good();
  }

  Status reduce(uint32_t i) {
    Range own = slice(i, team_.rank);
    const void** inputs = team_.pointers();
    for (int k = 1; own.size() > 0 && k <= team_.size; ++k) {
      int r = (team_.rank + k) % team_.size;
      inputs[r] = input(team_.rank, own.begin);
      if (r == team_.rank && !stages_own_) continue;
      STRETTO_TRY(rounds_.wait_filled(r, i));
      STRETTO_TRY(rounds_.get_at(r, rounds_.place(i, team_.rank), own.size() * request_.element, &inputs[r]));
    }
    combine(request_, inputs, team_.size, static_cast<char*>(request_.output) + own.begin * request_.element, own.size());
    rounds_.drained(i);
    return Status::good();
  }

  Team& team_;
  const Request& request_;
  const bool stages_own_;
  const size_t slice_;  // elements of each block in a round
  Rounds rounds_;
};

class DirectScatter {
 public:
  DirectScatter(Team& team, const Request& request)
      : team_(team), request_(request), block_(std::max<size_t>(block_bytes / request.element, 1)), facts_(team.lists) {}

  Status run() {
    transport::Reach common;
    STRETTO_TRY(exchange_facts(team_, request_, own_facts(), facts_, &common));
    if (!reachable(common)) return without_direct(team_, request_, [&] { return scatter_reduce_staged(team_, request_); });
    const uint32_t done = reduce_own();
    PerRank<uint32_t> all_done(team_.lists);
    STRETTO_TRY(exchange_all(team_, done, all_done));  // nobody reads this rank's input any more
    if (!done) team_.direct.reset();
    if (std::count(all_done.of, all_done + team_.size, 0u) > 0) return scatter_reduce_staged(team_, request_);
    return Status::good();
  }

 private:
  static constexpr size_t block_bytes = 64 << 10;  // read from each peer at a time

  DirectFacts own_facts() {
    size_t room = round_up(block_ * request_.element, cache_line);
    scratch_ = static_cast<char*>(team_.scratch.get(size_t(team_.size) * room));
    if (team_.direct == nullptr || scratch_ == nullptr || result_in_input(request_)) return {};
    return {team_.direct->window(request_.input), {}, team_.direct->reach()};
  }

  bool reachable(transport::Reach common) const {
    bool mapped = team_.unmapped == nullptr;
    for (int r = 0; r < team_.size; ++r) {
      if (!common.reads(facts_[r].input)) return false;
      mapped = mapped || common.writes(facts_[r].input);
    }
    return mapped;
  }

  uint32_t reduce_own() {
    size_t count = elements_of(request_, team_.rank);
    for (size_t begin = 0; begin < count; begin += block_)
      if (!reduce_block(begin, std::min(block_, count - begin))) return 0;
    return 1;
  }

  bool reduce_block(size_t begin, size_t n) {
    const char* own = static_cast<const char*>(request_.gives[team_.rank].data) + begin * request_.element;
    size_t at = size_t(own - static_cast<const char*>(request_.input)), room = round_up(block_ * request_.element, cache_line);
    const void** inputs = team_.pointers();
    for (int k = 1; k < team_.size; ++k) {
      int r = (team_.rank + k) % team_.size;
      char* scratch = scratch_ + size_t(r) * room;
      if (!team_.direct->get(r, facts_[r].input, {0, 0}, at, n * request_.element, scratch, &inputs[r]).ok()) return false;
    }
    inputs[team_.rank] = own;
    combine(request_, inputs, team_.size, static_cast<char*>(request_.output) + begin * request_.element, n);
    return true;
  }

  Team& team_;
  const Request& request_;
  const size_t block_;
  char* scratch_ = nullptr;
  PerRank<DirectFacts> facts_;
};

}  // namespace

Status scatter_reduce_flat(Team& team, const Request& request) {
  Meeting meeting(team);
  memcpy(meeting.payload(), request.input, request.bytes());
  meeting.post(request.bytes(), note_of(request));
  const Piece& own = request.gives[team.rank];
  size_t at = size_t(static_cast<const char*>(own.data) - static_cast<const char*>(request.input));
  const void** inputs = team.pointers();
  Status alike;
  for (int r = 0; r < team.size; ++r) {
    inputs[r] = meeting.payload();
    if (r != team.rank) STRETTO_TRY(read_alike(meeting, request, r, &inputs[r], &alike));
    inputs[r] = static_cast<const char*>(inputs[r]) + at;
  }
  if (!alike.ok()) return alike;
  combine(request, inputs, team.size, request.output, own.bytes / request.element);
  meeting.fetch_next(request.bytes());
  return Status::good();
}

Status scatter_reduce_staged(Team& team, const Request& request) {
  return StagedScatter(team, request).run();
}

Status scatter_reduce_direct(Team& team, const Request& request) {
  return DirectScatter(team, request).run();
}

}  // namespace stretto::collective
