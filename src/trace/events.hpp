// Where one thread's events go.
#pragma once
#include "trace/trace_state.hpp"

namespace stretto::trace {

class Events {
 public:
  static constexpr size_t first_bytes = 64 << 10;

  // Places for `number` events side by side in one section; null: they are dropped (and counted). `thread` none16: in
  // private memory.
  Event* room(uint32_t number, uint16_t thread) {
    return __builtin_expect(size_t(end_ - next_) >= number, 1) ? next_ : take(number, thread);
  }
  // The next `number` events, written at room(number), become visible.
  void commit(uint32_t number) {
    next_ += number;
    publish(*section_, uint64_t(next_ - entries<Event>(section_)));
  }

  // Scratch memory is written from its beginning again.
  void rewind_scratch() {
    if (section_) next_ = entries<Event>(section_);
  }
  void free_scratch();

 private:
  __attribute__((noinline)) Event* take(uint32_t number, uint16_t thread);
  void begin(SectionHeader* section);
  void begin_scratch();
  void begin_next(uint16_t thread);
  void populate();

  Event* next_ = nullptr;
  Event* end_ = nullptr;  // up to here the section is ready to be written without page faults
  SectionHeader* section_ = nullptr;
  size_t bytes_ = 0;  // of the present or the last section
};

}  // namespace stretto::trace
