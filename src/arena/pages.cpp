#include "arena/pages.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace stretto::arena {
namespace {

constexpr int looks = 32;  // blocks of the own class that are tried before the next class, where any fits

}  // namespace

Pages::~Pages() {
  if (table_ != nullptr) munmap(table_, table_bytes_);
}

bool Pages::open(PageIndex count) {
  table_bytes_ = (size_t(count) + 1) * sizeof(Page);
  void* mapped = mmap(nullptr, table_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                      0);  // zeroed: interior
  if (mapped == MAP_FAILED) return false;
  table_ = static_cast<Page*>(mapped);
  count_ = count;
  std::fill(heads_, heads_ + bins, no_page);
  return true;
}

// 1..8 by themselves, then eight classes to each doubling.
int Pages::bin_of(PageIndex pages) {
  if (pages < 8) return int(pages);
  int log = 31 - __builtin_clz(pages);
  return (log - 2) * 8 + int((pages >> (log - 3)) & 7);
}

void Pages::describe(PageIndex first, PageIndex pages, Kind kind, bool clean) {
  if (pages > 1) {
    table_[first + pages - 1].kind = tail;
    table_[first + pages - 1].length = pages;
  }
  table_[first].kind = kind;
  table_[first].length = pages;
  table_[first].clean = clean;
}

// Only the ends of blocks are marked, so the marks say exactly where blocks begin.
void Pages::forget(PageIndex first) {
  PageIndex pages = table_[first].length;
  table_[first].kind = interior;
  table_[first + pages - 1].kind = interior;
}

void Pages::hang(PageIndex first, PageIndex pages, bool clean) {
  describe(first, pages, free_head, clean);
  int bin = bin_of(pages);
  table_[first].previous = no_page;
  table_[first].next = heads_[bin];
  if (heads_[bin] != no_page) table_[heads_[bin]].previous = first;
  heads_[bin] = first;
  filled_[bin / 64] |= uint64_t(1) << (bin % 64);
  if (!clean) idle_ += pages;
}

void Pages::unhang(PageIndex first) {
  const Page& page = table_[first];
  int bin = bin_of(page.length);
  if (!page.clean) idle_ -= page.length;
  if (page.next != no_page) table_[page.next].previous = page.previous;
  if (page.previous != no_page)
    table_[page.previous].next = page.next;
  else
    heads_[bin] = page.next;
  if (heads_[bin] == no_page) filled_[bin / 64] &= ~(uint64_t(1) << (bin % 64));
  forget(first);
}

PageIndex Pages::find_in(int bin, PageIndex pages) const {
  PageIndex best = no_page, at = heads_[bin];
  for (int i = 0; i < looks && at != no_page; ++i, at = table_[at].next) {
    PageIndex length = table_[at].length;
    if (length >= pages && (best == no_page || length < table_[best].length)) best = at;
    if (length == pages) break;
  }
  return best;
}

PageIndex Pages::find(PageIndex pages) const {
  int bin = bin_of(pages);
  PageIndex found = find_in(bin, pages);
  if (found != no_page) return found;
  for (int word = (bin + 1) / 64; word < bins / 64; ++word) {
    uint64_t bits = filled_[word];
    if (word == (bin + 1) / 64) bits &= ~uint64_t(0) << ((bin + 1) % 64);
    if (bits != 0) return find_in(word * 64 + __builtin_ctzll(bits), pages);
  }
  return no_page;
}

PageIndex Pages::from_top(PageIndex pages) {
  if (pages > count_ - top_) return no_page;
  PageIndex first = top_;
  top_ += pages;
  return first;
}

PageIndex Pages::take(PageIndex pages, PageIndex alignment, bool* clean) {
  if (pages > count_ || alignment - 1 > count_ - pages) return no_page;
  PageIndex wanted = pages + alignment - 1;
  PageIndex at = find(wanted), length = wanted;
  *clean = true;
  if (at != no_page) {
    length = table_[at].length;
    *clean = table_[at].clean;
    unhang(at);
  } else if ((at = from_top(wanted)) == no_page) {
    return no_page;
  }
  PageIndex first = (at + alignment - 1) / alignment * alignment;
  describe(first, pages, used_head, *clean);
  used_ += pages;
  if (first > at) release(at, first - at, *clean);
  if (at + length > first + pages) release(first + pages, at + length - first - pages, *clean);
  return first;
}

// Makes a range free that is no block at the moment, merged with free neighbours of its kind.
void Pages::release(PageIndex first, PageIndex pages, bool clean) {
  if (first > 0) {
    const Page& before = table_[first - 1];
    PageIndex head = before.kind == tail ? first - before.length : first - 1;
    if (before.kind != interior && table_[head].kind == free_head && table_[head].clean == clean) {
      PageIndex length = table_[head].length;
      unhang(head);
      first = head;
      pages += length;
    }
  }
  PageIndex behind = first + pages;
  if (behind < top_ && table_[behind].kind == free_head && table_[behind].clean == clean) {
    PageIndex length = table_[behind].length;
    unhang(behind);
    pages += length;
  }
  if (clean && first + pages == top_)
    top_ = first;
  else
    hang(first, pages, clean);
}

void Pages::give_back(PageIndex first, bool clean) {
  PageIndex pages = table_[first].length;
  forget(first);
  used_ -= pages;
  release(first, pages, clean);
}

bool Pages::resize(PageIndex first, PageIndex pages) {
  PageIndex length = table_[first].length, behind = first + length;
  if (pages <= length) {
    if (pages == length) return true;
    forget(first);
    describe(first, pages, used_head, false);
    used_ -= length - pages;
    release(first + pages, length - pages, false);
    return true;
  }
  PageIndex more = pages - length;
  if (behind == top_) {
    if (from_top(more) == no_page) return false;
  } else {
    if (table_[behind].kind != free_head || table_[behind].length < more) return false;
    PageIndex room = table_[behind].length;
    bool clean = table_[behind].clean;
    unhang(behind);
    if (room > more) release(behind + more, room - more, clean);
  }
  forget(first);
  describe(first, pages, used_head, false);
  used_ += more;
  return true;
}

bool Pages::is_block(PageIndex first) const {
  return first < top_ && table_[first].kind == used_head;
}

PageIndex Pages::length(PageIndex first) const {
  return table_[first].length;
}

PageIndex Pages::next_used(PageIndex from) const {
  while (from < top_ && table_[from].kind != used_head) from += table_[from].length;
  return from < top_ ? from : no_page;
}

PageIndex Pages::next_idle() const {
  for (int bin = bins - 1; bin >= 0; --bin)
    for (PageIndex at = heads_[bin]; at != no_page; at = table_[at].next)
      if (!table_[at].clean) return at;
  return no_page;
}

void Pages::now_clean(PageIndex first) {
  PageIndex pages = table_[first].length;
  unhang(first);
  release(first, pages, true);
}

}  // namespace stretto::arena
