#include "layout.hpp"

#include <algorithm>

namespace differential {

Layout::Layout(const BaseType& base)
    : name_(base.name), handle_(base.handle), leaves_{{0, &base}}, extent_(MPI_Aint(base.size)) {}

Layout::Layout(std::string name, MPI_Datatype handle, const Layout& child, const std::vector<Block>& blocks)
    : name_(std::move(name)), handle_(handle), owned_(true) {
  for (const Block& block : blocks)
    for (int i = 0; i < block.length; ++i) add_leaves_of(child, block.displacement + i * child.extent_);
  commit();
}

Layout::Layout(Layout&& other) noexcept {
  *this = std::move(other);
}

Layout& Layout::operator=(Layout&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(handle_, other.handle_);
  std::swap(owned_, other.owned_);
  std::swap(leaves_, other.leaves_);
  std::swap(extent_, other.extent_);
  return *this;
}

Layout::~Layout() {
  if (owned_) PMPI_Type_free(&handle_);
}

Layout Layout::renamed(std::string name, MPI_Datatype handle) const {
  Layout result;
  result.name_ = std::move(name);
  result.handle_ = handle;
  result.owned_ = true;
  result.leaves_ = leaves_;
  result.commit();
  return result;
}

void Layout::add_leaves_of(const Layout& child, MPI_Aint displacement) {
  for (const Leaf& leaf : child.leaves_) leaves_.push_back({leaf.offset + displacement, leaf.base});
}

void Layout::commit() {
  MPI_Aint lower = 0;
  PMPI_Type_commit(&handle_);
  PMPI_Type_get_extent(handle_, &lower, &extent_);
}

void Layout::span(size_t count, MPI_Aint* low, MPI_Aint* high) const {
  *low = *high = 0;
  if (count == 0) return;
  for (MPI_Aint start : {MPI_Aint(0), MPI_Aint(count - 1) * extent_})
    for (const Leaf& leaf : leaves_) {
      *low = std::min(*low, start + leaf.offset);
      *high = std::max(*high, start + leaf.offset + MPI_Aint(leaf.base->size));
    }
}

}  // namespace differential
