// Stretto and MPI in turn within one run (STRETTO_TURNS): so both meet the same machine, and what they take can be compared where
// two runs could not.
#pragma once
#include <cstdint>

#include "trace/recorder.hpp"

namespace stretto::engine {

// Of one communicator, all ranks of which make the same collectives in the same order: so whose turn it is depends on their
// number alone.
class Turns {
 public:
  Turns() = default;  // none: everything is Stretto's
  Turns(uint32_t calls_each, uint32_t size) : calls_each_(calls_each), size_(size) {}

  bool are_taken() const { return calls_each_ != 0; }

  // A collective begins: whether MPI is to do it.
  bool is_of_mpi() {
    if (left_ == 0) change();
    --left_;
    return is_of_mpi_;
  }

 private:
  // Turns at the beginning that are not recorded, as memory is touched for the first time.
  static constexpr uint64_t warming_up = 4;

  void change();

  uint32_t calls_each_ = 0, size_ = 0;
  uint32_t left_ = 0;
  bool is_of_mpi_ = false;
  uint64_t begun_ = 0;
  uint64_t begin_ = 0;      // of this turn
  trace::Totals at_begin_;  // of the calls before it
};

}  // namespace stretto::engine
