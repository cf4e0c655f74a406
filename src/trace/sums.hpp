// Sums of one thread by key: cells lie densely in sections of the file, in the order in which their keys were first seen;
// where to find them is kept in private memory.
#pragma once
#include <string.h>

#include <bit>

#include "trace/trace_state.hpp"

namespace stretto::trace {

// What the calls of one cell agree in: its first bytes, as words.
struct CellKey {
  uint64_t first, second;
  bool operator==(const CellKey&) const = default;
};

inline CellKey key_of(const Cell& cell) {
  CellKey key;
  memcpy(&key, &cell, sizeof key);
  return key;
}
inline CellKey key_of(const PartnerCell& cell) {
  CellKey key{0, 0};
  memcpy(&key.first, &cell, sizeof key.first);
  return key;
}
inline void set_key(Cell& cell, const CellKey& key) {
  memcpy(&cell, &key, sizeof key);
}
inline void set_key(PartnerCell& cell, const CellKey& key) {
  memcpy(&cell, &key.first, sizeof key.first);
}

// 0 for 0 bytes, 1 for one, n for (2^(n-2), 2^(n-1)].
constexpr uint8_t size_bin(uint64_t bytes) {
  return bytes == 0 ? 0 : uint8_t(std::bit_width(bytes - 1) + 1);
}

template <class Entry>
class Sums {
 public:
  static constexpr uint32_t most_sections = 32;
  static constexpr size_t first_bytes = 2 * page_bytes, largest_bytes = 64 * page_bytes;

  // The cell of `key`, new where there was none; null: there is no room. `thread` none16: in private memory.
  Entry* find(const CellKey& key, uint16_t thread) {
    if (__builtin_expect(slots_ != nullptr, 1)) {
      for (uint64_t slot = hash(key) >> shift_;; slot = (slot + 1) & mask()) {
        Entry* entry = slots_[slot];
        if (entry == nullptr) break;
        if (key_of(*entry) == key) return entry;
      }
    }
    return insert(key, thread);
  }

  // Calls visit(entry) for each; any thread may.
  template <class Visit>
  void each(Visit&& visit) {
    const uint32_t sections = std::atomic_ref<uint32_t>(section_count_).load(std::memory_order_acquire);
    for (uint32_t s = 0; s < sections; ++s) {
      const uint64_t used = std::atomic_ref<uint64_t>(sections_[s]->used).load(std::memory_order_acquire);
      for (uint64_t i = 0; i < used; ++i) visit(entries<Entry>(sections_[s])[i]);
    }
  }

  void free_scratch();

 private:
  // Size and outcome come where communicators and datatypes with large numbers stand, of which there are few.
  static uint64_t hash(const CellKey& key) { return (key.first ^ std::rotl(key.second, 26)) * 0xd6e8feb86659fd93u; }
  uint64_t mask() const { return slot_count_ - 1; }
  __attribute__((noinline)) Entry* insert(const CellKey& key, uint16_t thread);
  bool add_section(uint16_t thread);
  bool grow_slots();
  void place(Entry* entry);

  Entry** slots_ = nullptr;
  uint32_t slot_count_ = 0, shift_ = 0;  // a power of two, and 64 - its logarithm
  uint32_t count_ = 0;
  uint32_t section_count_ = 0;
  SectionHeader* sections_[most_sections] = {};
};

extern template class Sums<Cell>;
extern template class Sums<PartnerCell>;

}  // namespace stretto::trace
