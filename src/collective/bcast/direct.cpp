// Bcast, direct: everybody reads the message from the root's buffer. Where the root can write to its peers' buffers, it stores
// the last p-th of the message there meanwhile instead of waiting, and the others read the rest. Where many would copy from it
// through the kernel at once, they read along a tree instead (patterns/tree.hpp). See patterns/direct.hpp for what
// happens when reading is refused.
#include "collective/patterns/direct.hpp"

#include <algorithm>

#include "collective/algorithms.hpp"
#include "collective/patterns/meeting.hpp"
#include "collective/patterns/tree.hpp"

namespace stretto::collective {
namespace {

class DirectBcast {
 public:
  DirectBcast(Team& team, const Request& request)
      : team_(team), request_(request), pulled_(request.bytes()), facts_(team.lists) {}

  Status run() {
    DirectFacts own;
    if (team_.direct) own = {team_.direct->window(request_.input), team_.direct->window(request_.output), team_.direct->reach()};
    transport::Reach common;
    STRETTO_TRY(exchange_facts(team_, request_, own, facts_, &common));
    if (is_uneven(team_, request_, facts_)) return broadcast_uneven(team_, request_, facts_);
    transport::Window message = facts_[request_.root].input;
    if (!common.reads(message) || (team_.unmapped != nullptr && !common.writes(message)))
      return without_direct(team_, request_, [&] { return bcast_staged(team_, request_); });
    if (pushable(common)) pulled_ = round_up(request_.bytes() - request_.bytes() / size_t(team_.size), cache_line);
    pulled_ = std::min(pulled_, request_.bytes());
    uint32_t served;
    PerRank<uint32_t> all_served(team_.lists);
    if (contended(team_, request_, facts_, common))
      STRETTO_TRY(read_along_tree(team_, request_, facts_, common, &served));
    else
      served = team_.rank == request_.root ? push() : pull();
    STRETTO_TRY(exchange_all(team_, served, all_served));  // all may leave
    if (!served) team_.direct.reset();
    if (std::count(all_served.of, all_served + team_.size, 0u) > 0) return bcast_staged(team_, request_);
    return Status::good();
  }

 private:
  bool pushable(transport::Reach common) const {
    for (int r = 0; r < team_.size; ++r)
      if (r != request_.root && !common.writes(facts_[r].result)) return false;
    return true;
  }
  kernels::Store store() const { return team_.store_of(request_.bytes()); }

  // In blocks, each to all while it is in the nearest cache.
  uint32_t push() {
    constexpr size_t block = 32 << 10;
    for (size_t at = pulled_; at < request_.bytes(); at += block)
      for (int k = 1; k < team_.size; ++k) {
        int r = (team_.rank + k) % team_.size;
        size_t bytes = std::min(block, request_.bytes() - at);
        void* there = team_.direct->place_at(r, facts_[r].result, at, bytes);
        if (there == nullptr) return 0;
        kernels::copy(there, static_cast<const char*>(request_.input) + at, bytes, store());
      }
    return 1;
  }

  uint32_t pull() {
    if (request_.output == nullptr) return 1;
    const void* data;
    if (!team_.direct->get(request_.root, facts_[request_.root].input, {0, 0}, 0, pulled_, request_.output, &data).ok()) return 0;
    if (data != request_.output) kernels::copy(request_.output, data, pulled_, store());
    return 1;
  }

  Team& team_;
  const Request& request_;
  size_t pulled_;  // bytes from the beginning that every rank but the root reads
  PerRank<DirectFacts> facts_;
};

}  // namespace

Status bcast_direct(Team& team, const Request& request) {
  return DirectBcast(team, request).run();
}

}  // namespace stretto::collective
