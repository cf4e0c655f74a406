#include "collective/patterns/tree.hpp"

#include <algorithm>

namespace stretto::collective {
namespace {

constexpr size_t least_block = 32 << 10, largest_block = 256 << 10;

class TreeReader {
 public:
  TreeReader(Team& team, const Request& request, const DirectFacts* facts, bool mapped)
      : team_(team),
        request_(request),
        facts_(facts),
        width_(mapped || team.readers < 1 ? team.size : team.readers),
        block_(round_up(std::clamp(request.bytes() / 8, least_block, largest_block), cache_line)),
        blocks_((request.bytes() + block_ - 1) / block_),
        first_(team.rounds + 1) {
    team.rounds += blocks_;
  }

  // Announces every block, also after a refusal: nobody waits in vain, and all learn of it in the end.
  Status run(uint32_t* served) {
    const uint64_t last = first_ + blocks_ - 1;
    team_.waiter.announce(team_.mine().drained, last);  // it reads nobody's cells
    *served = 1;
    if (team_.rank != request_.root) STRETTO_TRY(read_all(served));
    team_.waiter.announce(team_.mine().filled, last);
    return Status::good();
  }

 private:
  // Among `n` in a row of which each but the first reads from one before it, the parent of the i-th.
  int parent(int i) const { return (i - 1) / width_; }

  int source() const {
    const Domains& domains = team_.domains;
    int home = domains.of(team_.rank), top = domains.of(request_.root);
    if (domains.count() == 1) return (request_.root + parent(turned(team_.rank, request_.root, team_.size))) % team_.size;
    int leader = domains.leader(home, request_.root);
    if (team_.rank == leader) {
      int above = (top + parent(turned(home, top, domains.count()))) % domains.count();
      return domains.leader(above, request_.root);
    }
    int ranks = domains.size(home), begin = domains.index(leader);
    return domains.member(home, (begin + parent(turned(domains.index(team_.rank), begin, ranks))) % ranks);
  }
  static int turned(int i, int first, int n) { return (i - first + n) % n; }

  Status read_all(uint32_t* served) {
    const int from = source();
    transport::Window window = from == request_.root ? facts_[from].input : facts_[from].result;
    for (uint64_t b = 0; b < blocks_ && *served; ++b) {
      STRETTO_TRY(team_.waiter.until(team_.board(from).filled, first_ + b, from));
      *served = read(from, window, b * block_);
      team_.waiter.announce(team_.mine().filled, first_ + b);
    }
    return Status::good();
  }

  uint32_t read(int from, transport::Window window, size_t at) {
    size_t bytes = std::min(block_, request_.bytes() - at);
    char* out = static_cast<char*>(request_.output) + at;
    const void* data;
    if (!team_.direct->get(from, window, {0, 0}, at, bytes, out, &data).ok()) return 0;
    if (data != out) kernels::copy(out, data, bytes, team_.store_of(request_.bytes()));
    return 1;
  }

  Team& team_;
  const Request& request_;
  const DirectFacts* facts_;
  const int width_;
  const size_t block_;
  const uint64_t blocks_, first_;
};

// All that is read is mapped, and nobody locks anything.
bool all_mapped(const Team& team, const Request& request, const DirectFacts* facts, transport::Reach common) {
  bool mapped = true;
  for (int r = 0; r < team.size; ++r) mapped = mapped && common.writes(r == request.root ? facts[r].input : facts[r].result);
  return mapped;
}

}  // namespace

bool contended(const Team& team, const Request& request, const DirectFacts* facts, transport::Reach common) {
  if (team.readers < 1 || team.size - 1 <= team.readers || common.writes(facts[request.root].input)) return false;
  for (int r = 0; r < team.size; ++r)
    if (r != request.root && !common.reads(facts[r].result)) return false;
  return true;
}

Status read_along_tree(Team& team, const Request& request, const DirectFacts* facts, transport::Reach common, uint32_t* served) {
  return TreeReader(team, request, facts, all_mapped(team, request, facts, common)).run(served);
}

}  // namespace stretto::collective
