#include "buffer.hpp"

#include <algorithm>
#include <utility>

namespace differential {
namespace {

unsigned char pattern(size_t at) {
  return (unsigned char)(0xa5 ^ (at * 37));
}

constexpr size_t alignment = 64;

size_t to_aligned(const unsigned char* p) {
  return (alignment - reinterpret_cast<uintptr_t>(p) % alignment) % alignment;
}

}  // namespace

Buffer::Buffer(const Layout& layout, size_t count, size_t misalign) : layout_(&layout), count_(count) {
  MPI_Aint low, high;
  layout.span(count, &low, &high);
  origin_ = MPI_Aint(guard) - low;
  bytes_ = size_t(high - low) + 2 * guard;
  storage_.resize(bytes_ + 2 * alignment);
  misalign_ = to_aligned(storage_.data() + origin_) + misalign;
  for (size_t i = 0; i < bytes_; ++i) view()[i] = pattern(i);
}

const unsigned char* Buffer::element(size_t i) const {
  size_t per_instance = layout_->leaves().size();
  return view() + origin_ + MPI_Aint(i / per_instance) * layout_->extent() + layout_->leaves()[i % per_instance].offset;
}

void Buffer::draw_values(Random& random, bool product) {
  for (size_t i = 0; i < elements(); ++i) base(i).draw(random, product, element(i));
}

void Buffer::take_magnitudes() {
  for (size_t i = 0; i < elements(); ++i) base(i).magnitude(element(i), element(i));
}

void Buffer::copy_from(const Buffer& other) {
  std::copy_n(other.view(), bytes_, view());
}

void Buffer::copy_values_from(const Buffer& other) {
  for (size_t i = 0; i < elements(); ++i) std::copy_n(other.element(i), base(i).size, element(i));
}

bool Buffer::same_bytes(const Buffer& other) const {
  return std::equal(view(), view() + bytes_, other.view());
}

bool Buffer::surroundings_intact(MPI_Aint* where) const {
  std::vector<bool> owned(bytes_, false);
  if (dense()) {
    std::fill_n(owned.begin() + origin_, count_ * layout_->leaves()[0].base->size, true);
  } else {
    for (size_t i = 0; i < elements(); ++i) std::fill_n(owned.begin() + (element(i) - view()), base(i).size, true);
  }
  for (size_t i = 0; i < bytes_; ++i)
    if (!owned[i] && view()[i] != pattern(i)) {
      *where = MPI_Aint(i) - origin_;
      return false;
    }
  return true;
}

uint64_t Buffer::hash() const {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < elements(); ++i)
    for (auto [offset, length] : base(i).significant) {
      const unsigned char* byte = element(i) + offset;
      for (size_t j = 0; j < length; ++j) h = (h ^ byte[j]) * 0x100000001b3u;
    }
  return h;
}

}  // namespace differential
