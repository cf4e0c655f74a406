#include <algorithm>

#include "collective/algorithms.hpp"
#include "collective/patterns/epoch.hpp"
#include "collective/patterns/paper.hpp"
#include "collective/patterns/staged.hpp"

namespace stretto::collective {
namespace {

constexpr size_t block_bytes = 64 << 10;    // read from the predecessor at a time, where its memory is not mapped
enum : uint32_t { passed_on = 1, broken };  // what the word of a ticket says

class PaperLarge {
 public:
  PaperLarge(Team& team, const Request& request, Consumers consumers)
      : team_(team),
        request_(request),
        consumers_(consumers),
        consumer_(consumes(consumers, request, team.rank)),
        block_(std::max<size_t>(block_bytes / request.element, 1)),
        epoch_(team) {}

  Status run() {
    if (request_.count == 0) return Status::good();
    STRETTO_TRY(epoch_.begin(request_, 0));
    find_room();
    const int mine = epoch_.arrive({window(request_.input), window(sum_), 0, 0}), last = team_.size - 1;
    STRETTO_TRY(arrived(mine));
    if (mine > 0) STRETTO_TRY(epoch_.beyond(uint32_t(mine) - 1, 0, epoch_.arrived(mine - 1)));
    const bool good = room_ && (mine == 0 || (epoch_.state(uint32_t(mine) - 1).level == passed_on && add_to(mine - 1)));
    epoch_.post(uint32_t(mine), good ? passed_on : broken);
    const Status all = arrived(last);
    if (!all.ok()) return leave_alone(mine + 1), all;
    STRETTO_TRY(epoch_.beyond(uint32_t(last), 0, epoch_.arrived(last)));
    if (epoch_.state(uint32_t(last)).level == broken) return slice_reduce(team_, request_, consumers_);
    return distribute(epoch_.arrived(last));
  }

 private:
  // A partial result stands in the output, unless that is the input, which must stay as it is.
  void find_room() {
    const bool apart = !consumer_ || request_.output == request_.input;
    const size_t block = round_up(block_ * request_.element, cache_line);
    scratch_ = static_cast<char*>(team_.scratch.get(block + (apart ? request_.bytes() : 0)));
    room_ = scratch_ != nullptr;
    sum_ = apart ? scratch_ + block : static_cast<char*>(request_.output);
  }

  transport::Window window(const void* buffer) const {
    return room_ && team_.direct != nullptr ? team_.direct->window(buffer) : transport::Window{};
  }

  // Whoever reads what this rank may leave then comes to its end first, or has died.
  void leave_alone(int ticket) {
    if (epoch_.level() > ticket) team_.waiter.stay([&] { return epoch_.state(uint32_t(ticket)).level != 0; });
  }

  // Waits until the rank of that ticket has come.
  Status arrived(int ticket) {
    epoch_.look();
    while (epoch_.level() <= ticket) STRETTO_TRY(epoch_.next_arrival());
    return Status::good();
  }

  // Receives what the rank of that ticket has, and adds this rank's own.
  bool add_to(int ticket) {
    const int from = epoch_.arrived(ticket);
    const transport::Window theirs = ticket == 0 ? epoch_.facts(from).input : epoch_.facts(from).result;
    if (team_.direct == nullptr || !team_.direct->reach().reads(theirs)) return false;
    for (size_t begin = 0; begin < request_.count; begin += block_) {
      const size_t n = std::min(block_, request_.count - begin), at = begin * request_.element;
      const void* data;
      if (!team_.direct->get(from, theirs, {0, 0}, at, n * request_.element, scratch_, &data).ok()) return false;
      const void* inputs[2] = {data, static_cast<const char*>(request_.input) + at};
      combine(request_, inputs, 2, sum_ + at, n);
    }
    return true;
  }

  Status distribute(int last) {
    Request result = request_;
    result.kind = Kind::bcast;
    result.root = last;
    result.output = consumer_ ? request_.output : nullptr;
    if (team_.rank == last) {
      const void* sum = team_.size == 1 ? request_.input : sum_;
      result.input = sum;
      if (consumer_ && sum != request_.output) kernels::copy(request_.output, sum, request_.bytes());
    }
    return bcast_direct(team_, result);
  }

  Team& team_;
  const Request& request_;
  const Consumers consumers_;
  const bool consumer_;
  const size_t block_;  // elements
  char* scratch_ = nullptr;
  char* sum_ = nullptr;
  bool room_ = false;
  Epoch epoch_;
};

}  // namespace

Status paper_large_reduce(Team& team, const Request& request, Consumers consumers) {
  team.unmapped = nullptr;  // is no way for the Bcast at the end
  if (request.op == kernels::Op::user) return slice_reduce(team, request, consumers);
  return PaperLarge(team, request, consumers).run();
}

}  // namespace stretto::collective
