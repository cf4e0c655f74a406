#include "collective/domains.hpp"

#include <new>

namespace stretto::collective {

bool Domains::describe(const int32_t* ids, int size) {
  bool one = true;
  for (int r = 1; r < size; ++r) one = one && ids[r] == ids[0];
  if (one) return true;
  numbers_.reset(new (std::nothrow) int[size_t(size) * 4 + 1]);
  if (numbers_ == nullptr) return false;
  of_ = numbers_.get(), index_ = of_ + size, members_ = index_ + size, first_ = members_ + size;
  count_ = 0;
  first_[0] = 0;
  int placed = 0;
  for (int r = 0; r < size; ++r) {
    bool known = false;  // its domain began with a lower rank
    for (int k = 0; k < r; ++k) known = known || ids[k] == ids[r];
    if (known) continue;
    for (int k = r; k < size; ++k) {
      if (ids[k] != ids[r]) continue;
      of_[k] = count_;
      index_[k] = placed - first_[count_];
      members_[placed++] = k;
    }
    first_[++count_] = placed;
  }
  int width = this->size(0);  // of every domain but the last, where they are aligned
  aligned_ = (width & (width - 1)) == 0;
  for (int r = 0; r < size; ++r) {
    contiguous_ = contiguous_ && members_[r] == r;
    aligned_ = aligned_ && of_[r] == r / width;
  }
  return true;
}

}  // namespace stretto::collective
