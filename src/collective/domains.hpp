// Domains: the parts of a node among which bytes are dear to move, such as NUMA nodes, and which ranks of a team stand in which.
// Equal on all ranks of the team. Numbered by their first ranks.
#pragma once
#include <cstdint>
#include <memory>

namespace stretto::collective {

class Domains {
 public:
  // ids[r]: what rank r shares with those of the same domain. False: no memory.
  bool describe(const int32_t* ids, int size);

  int count() const { return count_; }
  int of(int rank) const { return count_ == 1 ? 0 : of_[rank]; }
  // More than one domain only: their ranks, in order.
  int size(int domain) const { return first_[domain + 1] - first_[domain]; }
  int member(int domain, int index) const { return members_[first_[domain] + index]; }
  int index(int rank) const { return index_[rank]; }  // in its domain
  // The one that speaks for a domain to the others: `root` in its own, else the first.
  int leader(int domain, int root = -1) const { return root >= 0 && of(root) == domain ? root : member(domain, 0); }

  // Whether each is a run of consecutive ranks.
  bool contiguous() const { return contiguous_; }
  // Whether the fixed tree over all ranks (kernels.hpp) is the tree over domains of the trees inside them.
  bool aligned() const { return aligned_; }

 private:
  int count_ = 1;
  bool contiguous_ = true, aligned_ = true;
  std::unique_ptr<int[]> numbers_;  // all of the tables
  int *of_ = nullptr, *index_ = nullptr, *first_ = nullptr, *members_ = nullptr;
};

}  // namespace stretto::collective
