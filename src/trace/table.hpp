// A list of entries of one type in the file, in sections that are taken as it grows and stay mapped.
#pragma once
#include <iterator>

#include "trace/trace_state.hpp"

namespace stretto::trace {

template <class Entry, uint32_t section_pages, uint32_t most_sections>
class Table {
 public:
  static constexpr uint32_t per_section = uint32_t((section_pages * page_bytes - sizeof(SectionHeader)) / sizeof(Entry));
  static constexpr uint32_t most = per_section * most_sections;

  constexpr explicit Table(SectionType type) : type_(type) {}

  // The number of entries that a reader sees.
  uint32_t size() const { return size_.load(std::memory_order_acquire); }

  // Entry `index`, below size().
  Entry* at(uint32_t index) const {
    return entries<Entry>(sections_[index / per_section].load(std::memory_order_acquire)) + index % per_section;
  }

  // Appends a copy; its place, or null where there is no room. Under the mutex.
  Entry* append(const Entry& entry) {
    const uint32_t index = size_.load(std::memory_order_relaxed);
    if (index >= most || !ensure(index / per_section)) return nullptr;
    Entry* place = at(index);
    *place = entry;
    publish(*sections_[index / per_section].load(std::memory_order_relaxed), index % per_section + 1);
    size_.store(index + 1, std::memory_order_release);
    return place;
  }

  // In the child of a fork: what pointers to entries lead to becomes the child's own.
  template <class Detach>
  void detach(Detach&& detach) {
    for (auto& section : sections_)
      if (SectionHeader* mapped = section.load(std::memory_order_relaxed)) detach(mapped, section_pages * page_bytes);
  }

 private:
  bool ensure(uint32_t number) {
    if (sections_[number].load(std::memory_order_relaxed)) return true;
    SectionHeader* section = take_section(type_, none16, sizeof(Entry), section_pages * page_bytes);
    sections_[number].store(section, std::memory_order_release);
    return section != nullptr;
  }

  const SectionType type_;
  std::atomic<uint32_t> size_{0};
  std::atomic<SectionHeader*> sections_[most_sections] = {};
};

}  // namespace stretto::trace
