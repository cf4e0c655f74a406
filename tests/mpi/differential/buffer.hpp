// A user buffer between guard bytes, at a chosen misalignment, that knows which of its bytes carry values.
#pragma once
#include <utility>

#include "layout.hpp"

namespace differential {

class Buffer {
 public:
  static constexpr size_t guard = 128;

  // Room for `count` instances of `layout`, every byte set to a pattern. The address MPI sees is misaligned by `misalign`.
  Buffer(const Layout& layout, size_t count, size_t misalign);

  void* data() { return view() + origin_; }
  const unsigned char* element(size_t i) const;
  unsigned char* element(size_t i) { return const_cast<unsigned char*>(std::as_const(*this).element(i)); }
  size_t elements() const { return count_ * layout_->leaves().size(); }
  const BaseType& base(size_t i) const { return *layout_->leaves()[i % layout_->leaves().size()].base; }

  void draw_values(Random& random, bool product);
  // Replaces every value by its magnitude.
  void take_magnitudes();
  // The same bytes, guards included; the layouts must be the same.
  void copy_from(const Buffer& other);

  // The same values in the same order, whatever the layouts.
  void copy_values_from(const Buffer& other);

  // Whether every byte, guards and gaps included, is the same.
  bool same_bytes(const Buffer& other) const;
  // Whether guards and gaps between elements are as constructed; *where = offset of the first that is not.
  bool surroundings_intact(MPI_Aint* where) const;
  // A hash of the bytes that carry values, in element order: equal on two ranks if their values are.
  uint64_t hash() const;

 private:
  unsigned char* view() { return storage_.data() + misalign_; }
  const unsigned char* view() const { return storage_.data() + misalign_; }
  bool dense() const {
    return layout_->plain() && layout_->leaves()[0].base->significant[0].second == layout_->leaves()[0].base->size;
  }

  const Layout* layout_;
  size_t count_, misalign_;
  MPI_Aint origin_;  // of the address MPI sees, within the view
  size_t bytes_;     // of the view
  std::vector<unsigned char> storage_;
};

}  // namespace differential
