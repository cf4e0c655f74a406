// Which pages of an arena belong to which block: best fit over ranges of pages, with the bookkeeping apart from the memory.
//
// Every block, used or free, is described at its first and its last page, so that neighbours find each other and merge. Free
// blocks hang in lists by size: eight classes to each power of two. Pages at and above `top` have never been handed out.
// A free block is clean when all its bytes read as zero and hold no memory (never touched, or returned to the system), else
// idle; clean and idle blocks are not merged with each other, so both are counted exactly.
//
// Not synchronised; allocates nothing but its table, which it maps.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto::arena {

using PageIndex = uint32_t;
inline constexpr PageIndex no_page = UINT32_MAX;

class Pages {
 public:
  constexpr Pages() = default;
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // For `count` pages, all untouched. False: the table cannot be mapped.
  bool open(PageIndex count);

  // First page of a used block of `pages` >= 1 pages, at a multiple of `alignment` pages (a power of two); no_page: no room.
  // *clean: whether its bytes are zero.
  PageIndex take(PageIndex pages, PageIndex alignment, bool* clean);

  // Frees a used block. clean: its bytes are zero and hold no memory any more.
  void give_back(PageIndex first, bool clean);

  // Grows a used block to `pages` into what is free right behind it, or shrinks it; the pages cut off become idle. False: no
  // room.
  bool resize(PageIndex first, PageIndex pages);

  bool is_block(PageIndex first) const;       // a used block begins here
  PageIndex length(PageIndex first) const;    // of the block that begins here
  PageIndex next_used(PageIndex from) const;  // the first used block at or after the beginning of block `from`; no_page: none
  PageIndex next_idle() const;                // some idle block; no_page: none
  void now_clean(PageIndex first);            // an idle block has been returned to the system
  PageIndex top() const { return top_; }
  uint64_t used() const { return used_; }  // pages
  uint64_t idle() const { return idle_; }

 private:
  enum Kind : uint8_t { interior, used_head, free_head, tail };
  struct Page {
    PageIndex length;  // of the block, at its first and last page
    PageIndex next, previous;
    Kind kind;
    bool clean;
  };
  static constexpr int bins = 256;

  static int bin_of(PageIndex pages);
  void describe(PageIndex first, PageIndex pages, Kind kind, bool clean);
  void forget(PageIndex first);
  void hang(PageIndex first, PageIndex pages, bool clean);
  void unhang(PageIndex first);
  PageIndex find(PageIndex pages) const;
  PageIndex find_in(int bin, PageIndex pages) const;
  PageIndex from_top(PageIndex pages);
  void release(PageIndex first, PageIndex pages, bool clean);

  Page* table_ = nullptr;
  size_t table_bytes_ = 0;
  PageIndex count_ = 0, top_ = 0;
  uint64_t used_ = 0, idle_ = 0;
  PageIndex heads_[bins] = {};
  uint64_t filled_[bins / 64] = {};
};

}  // namespace stretto::arena
