#include "collective/patterns/epoch.hpp"
#include "collective/patterns/paper.hpp"
#include "collective/patterns/rounds.hpp"
#include "collective/patterns/staged.hpp"

namespace stretto::collective {
namespace {

constexpr uint32_t leading = 0;  // the word that says who leads and when it has finished

class PaperSmall {
 public:
  PaperSmall(Team& team, const Request& request, bool consumer)
      : team_(team), request_(request), rounds_(team, request), consumer_(consumer), epoch_(team) {}

  Status run() {
    for (uint32_t i = 0; i < rounds_.count(); ++i) {
      STRETTO_TRY(rounds_.free(i));
      STRETTO_TRY(epoch_.begin(request_, 0, rounds_.number(i)));
      const SliceState undefined = epoch_.state(leading);
      if (undefined.level == 0 && epoch_.claim(leading, undefined))
        STRETTO_TRY(lead(i, undefined));
      else
        STRETTO_TRY(follow(i));
      rounds_.drained(i);
    }
    return Status::good();
  }

 private:
  size_t at(uint32_t i) const { return rounds_.at(rounds_.range(i)); }
  size_t bytes(uint32_t i) const { return rounds_.bytes(rounds_.range(i)); }
  const char* input(uint32_t i) const { return static_cast<const char*>(request_.input) + at(i); }
  char* output(uint32_t i) const { return static_cast<char*>(request_.output) + at(i); }

  // The result's place is rank 0's cell: all contributions have been used when it is written.
  Status cell(int r, uint32_t i, char** place) {
    const void* data = nullptr;
    STRETTO_TRY(rounds_.get(r, i, rounds_.range(i), &data));
    *place = static_cast<char*>(const_cast<void*>(data));
    return Status::good();
  }

  Status lead(uint32_t i, const SliceState& undefined) {
    char *own, *result;
    STRETTO_TRY(cell(team_.rank, i, &own));
    STRETTO_TRY(cell(0, i, &result));
    char* sum = consumer_ ? output(i) : own;
    epoch_.arrive({});
    const char* so_far = input(i);
    for (int ticket = 0; ticket < team_.size; ++ticket) {
      epoch_.look();
      if (ticket == epoch_.level()) STRETTO_TRY(epoch_.next_arrival());
      if (epoch_.arrived(ticket) == team_.rank) continue;
      char* theirs;
      STRETTO_TRY(cell(epoch_.arrived(ticket), i, &theirs));
      const void* inputs[2] = {so_far, theirs};
      combine(request_, inputs, 2, sum, rounds_.range(i).size());
      so_far = sum;
    }
    if (so_far != result) kernels::copy(result, so_far, bytes(i));
    if (consumer_ && so_far != output(i)) kernels::copy(output(i), so_far, bytes(i));
    epoch_.release(leading, undefined, team_.size);
    return Status::good();
  }

  Status follow(uint32_t i) {
    STRETTO_TRY(rounds_.put(i, rounds_.range(i), request_.input));
    epoch_.arrive({});
    if (!consumer_) return Status::good();
    STRETTO_TRY(epoch_.beyond(leading, uint32_t(team_.size) - 1, int(epoch_.state(leading).owner) - 1));
    char* result;
    STRETTO_TRY(cell(0, i, &result));
    kernels::copy(output(i), result, bytes(i));
    return Status::good();
  }

  Team& team_;
  const Request& request_;
  Rounds rounds_;
  const bool consumer_;
  Epoch epoch_;
};

}  // namespace

Status paper_small_reduce(Team& team, const Request& request, Consumers consumers) {
  if (request.op == kernels::Op::user) return gather_reduce(team, request, consumers);
  return PaperSmall(team, request, consumes(consumers, request, team.rank)).run();
}

}  // namespace stretto::collective
