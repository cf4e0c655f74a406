// Stretto and MPI in turn within one run (STRETTO_TURNS): so both meet the same machine, and what they take can be compared where
// two runs could not.
#pragma once
#include <cstdint>

#include "trace/record.hpp"

namespace stretto::engine {

// Of one communicator, where every rank makes the same collectives in the same order: so whose turn it is depends on their number alone.
class Turns {
 public:
  Turns() = default;  // none: everything is Stretto's
  Turns(uint32_t calls_each, uint32_t size) { cell_.calls_each = calls_each, cell_.size = size; }

  bool are_taken() const { return cell_.calls_each != 0; }
  // A collective begins: whether MPI is to do it.
  bool is_of_mpi() {
    if (left_ == 0) change();
    --left_;
    return is_of_mpi_;
  }

 private:
  static constexpr uint64_t not_counted = 4;  // turns at the beginning: memory is touched for the first time

  void change();
  void count(uint64_t spent, uint64_t in_collectives);

  uint32_t left_ = 0;
  bool is_of_mpi_ = false;
  uint64_t turns_ = 0;  // begun
  uint64_t begin_ = 0, collectives_at_begin_ = 0;
  trace::TurnsCell cell_{};
};

}  // namespace stretto::engine
