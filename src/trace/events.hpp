// Where one thread's events go: into its tail, one mapped section that is used again and again, and from there, when it is
// full, by one write into sections of the file that are never mapped. A fresh page of a mapped file costs more than the events on
// it.
#pragma once
#include "trace/trace_state.hpp"

namespace stretto::trace {

class Events {
 public:
  static constexpr size_t tail_bytes = 64 << 10;

  // Places for `number` events side by side; null: they are dropped (and counted). `thread` none16: in private memory.
  Event* room(uint32_t number, uint16_t thread) {
    return __builtin_expect(size_t(end_ - next_) >= number, 1) ? next_ : make_room(number, thread);
  }
  // The next `number` events, written at room(number), become visible.
  void commit(uint32_t number) {
    next_ += number;
    publish(*tail_, uint64_t(next_ - entries<Event>(tail_)));
  }

  // Scratch memory is written from its beginning again.
  void rewind_scratch() {
    if (tail_) next_ = entries<Event>(tail_);
  }
  void free_scratch();

 private:
  __attribute__((noinline)) Event* make_room(uint32_t number, uint16_t thread);
  void begin(SectionHeader* tail);
  void take_tail(uint16_t thread);
  bool has_home(uint64_t number, uint16_t thread);
  void empty_tail(uint16_t thread);

  Event* next_ = nullptr;
  Event* end_ = nullptr;
  SectionHeader* tail_ = nullptr;
  uint64_t home_ = 0;       // place in the file of the section that the tail is emptied into; 0: none yet
  size_t home_bytes_ = 0;   // its length, or that of the last one
  uint64_t home_used_ = 0;  // events in it
};

}  // namespace stretto::trace
