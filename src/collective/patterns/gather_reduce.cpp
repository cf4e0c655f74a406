#include "collective/patterns/rounds.hpp"
#include "collective/patterns/staged.hpp"

namespace stretto::collective {
namespace {

// A round is read while the next is staged. They are so large that a vector of middle size fills the cells once and waits for
// none.
constexpr size_t round_bytes = 64 << 10;

class GatherReduction {
 public:
  GatherReduction(Team& team, const Request& request, Consumers consumers)
      : team_(team),
        request_(request),
        rounds_(team, request, round_bytes),
        consumer_(consumes(consumers, request, team.rank)),
        // A lone consumer reads its own contribution where it is; a user's function must not find it in the output.
        stages_(consumers == Consumers::all || !consumer_ || request.op == kernels::Op::user) {}

  Status run() {
    if (!consumer_) rounds_.drained_all();
    for (uint32_t i = 0; i < rounds_.count(); ++i) {
      if (stages_) STRETTO_TRY(stage(i));
      if (consumer_) STRETTO_TRY(consume(i));
    }
    return Status::good();
  }

 private:
  size_t at(uint32_t i) const { return rounds_.range(i).begin * request_.element; }
  size_t bytes(uint32_t i) const { return rounds_.range(i).size() * request_.element; }
  const char* input(uint32_t i) const { return static_cast<const char*>(request_.input) + at(i); }

  Status stage(uint32_t i) {
    STRETTO_TRY(rounds_.free(i));
    STRETTO_TRY(team_.staged->put(rounds_.cell(i), at(i), input(i), bytes(i)));
    rounds_.filled(i);
    return Status::good();
  }

  Status consume(uint32_t i) {
    const void** inputs = team_.pointers();
    for (int k = 1; k <= team_.size; ++k) {
      int r = (team_.rank + k) % team_.size;
      if (r == team_.rank && !stages_) {
        inputs[r] = input(i);
        continue;
      }
      STRETTO_TRY(rounds_.wait_filled(r, i));
      STRETTO_TRY(team_.staged->get(r, {}, rounds_.cell(i), at(i), bytes(i), nullptr, &inputs[r]));
    }
    combine(request_, inputs, team_.size, static_cast<char*>(request_.output) + at(i), rounds_.range(i).size());
    rounds_.drained(i);
    return Status::good();
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
