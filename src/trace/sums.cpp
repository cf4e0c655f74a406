#include "trace/sums.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "trace/memory.hpp"

namespace stretto::trace {

namespace {

constexpr uint32_t first_slots = 512;

template <class Entry>
constexpr SectionType section_type = SectionType::cells;
template <>
constexpr SectionType section_type<PartnerCell> = SectionType::partners;

}  // namespace

template <class Entry>
void Sums<Entry>::place(Entry* entry) {
  uint64_t slot = hash(key_of(*entry)) >> shift_;
  while (slots_[slot] != nullptr) slot = (slot + 1) & mask();
  slots_[slot] = entry;
}

// At most half of the slots are taken, so a search ends soon.
template <class Entry>
bool Sums<Entry>::grow_slots() {
  if (2 * (count_ + 1) <= slot_count_) return true;
  const uint32_t wanted = slot_count_ ? 2 * slot_count_ : first_slots;
  void* memory = nullptr;
  if (!map_anonymous(wanted * sizeof(Entry*), &memory).ok()) return false;
  if (slots_) munmap(slots_, slot_count_ * sizeof(Entry*));
  slots_ = static_cast<Entry**>(memory);
  slot_count_ = wanted;
  shift_ = 64 - uint32_t(std::countr_zero(wanted));
  each([this](Entry& entry) { place(&entry); });
  return true;
}

template <class Entry>
bool Sums<Entry>::add_section(uint16_t thread) {
  if (section_count_ == most_sections) return false;
  const size_t bytes = std::min(first_bytes << std::min(section_count_, 16u), largest_bytes);
  SectionHeader* section = nullptr;
  if (thread == none16) {
    section = take_scratch(section_type<Entry>, sizeof(Entry), bytes);
  } else {
    const std::lock_guard<std::mutex> lock(state.mutex);
    section = take_section(section_type<Entry>, thread, sizeof(Entry), bytes);
  }
  if (!section) return false;
  sections_[section_count_] = section;
  std::atomic_ref<uint32_t>(section_count_).store(section_count_ + 1, std::memory_order_release);
  return true;
}

template <class Entry>
Entry* Sums<Entry>::insert(const CellKey& key, uint16_t thread) {
  SectionHeader* last = section_count_ ? sections_[section_count_ - 1] : nullptr;
  if (!last || last->used == capacity<Entry>(last->bytes)) {
    if (!add_section(thread)) return nullptr;
    last = sections_[section_count_ - 1];
  }
  if (!grow_slots()) return nullptr;
  Entry* entry = entries<Entry>(last) + last->used;
  set_key(*entry, key);
  publish(*last, last->used + 1);
  ++count_;
  place(entry);
  return entry;
}

template <class Entry>
void Sums<Entry>::free_scratch() {
  for (uint32_t s = 0; s < section_count_; ++s) drop_section(sections_[s]);
  if (slots_) munmap(slots_, slot_count_ * sizeof(Entry*));
  *this = {};
}

template class Sums<Cell>;
template class Sums<PartnerCell>;

}  // namespace stretto::trace
