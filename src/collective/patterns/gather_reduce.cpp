#include "collective/patterns/rounds.hpp"
#include "collective/patterns/staged.hpp"

namespace stretto::collective {
namespace {

// A round is read while the next is staged. Where everybody reads everybody they are so large that a vector of middle size fills
// the cells once and waits for none; a lone consumer reads as soon as there is something to read.
constexpr size_t round_bytes = 64 << 10;

class GatherReduction {
 public:
  GatherReduction(Team& team, const Request& request, Consumers consumers)
      : team_(team),
        request_(request),
        rounds_(team, request, consumers == Consumers::all ? round_bytes : staged_piece(team, request.bytes())),
        consumer_(consumes(consumers, request, team.rank)),
        // A lone consumer reads its own contribution where it is; a user's function must not find it in the output.
        stages_(consumers == Consumers::all || !consumer_ || request.op == kernels::Op::user) {}

  Status run() {
    if (!consumer_) rounds_.drained_all();
    for (uint32_t i = 0; i < rounds_.count(); ++i) {
      if (stages_) STRETTO_TRY(rounds_.stage(i, request_.input));
      if (consumer_) STRETTO_TRY(consume(i));
    }
    if (stages_) rounds_.fetch_next();
    return Status::good();
  }

 private:
  Status consume(uint32_t i) {
    const Range range = rounds_.range(i);
    const void** inputs = team_.pointers();
    for (int k = 1; k <= team_.size; ++k) {
      int r = (team_.rank + k) % team_.size;
      if (r == team_.rank && !stages_) {
        inputs[r] = static_cast<const char*>(request_.input) + rounds_.at(range);
        continue;
      }
      STRETTO_TRY(rounds_.wait_filled(r, i));
      STRETTO_TRY(rounds_.get(r, i, range, &inputs[r]));
    }
    char* out = static_cast<char*>(request_.output) + rounds_.at(range);
    char* near = nearby(range);
    combine(request_, inputs, team_.size, near != nullptr ? near : out, range.size());
    rounds_.drained(i);
    if (near != nullptr) kernels::copy(out, near, rounds_.bytes(range), kernels::Store::stream);
    return Status::good();
  }

  // Where the result goes past the caches, it is made in one first. Null: straight to where it belongs.
  char* nearby(const Range& range) {
    const bool streams = team_.store_of(2 * request_.bytes()) == kernels::Store::stream && request_.op != kernels::Op::user;
    return streams ? static_cast<char*>(team_.scratch.get(rounds_.bytes(range))) : nullptr;
  }

  Team& team_;
  const Request& request_;
  Rounds rounds_;
  const bool consumer_;
  const bool stages_;
};

}  // namespace

Status gather_reduce(Team& team, const Request& request, Consumers consumers) {
  return GatherReduction(team, request, consumers).run();
}

}  // namespace stretto::collective
