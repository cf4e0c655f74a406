// Messages in parts that are under way: requests, and of what they are.
#pragma once
#include <algorithm>
#include <memory>
#include <new>

#include "shim/abi.hpp"

namespace stretto::shim {

// A part of a message that is not full is the last, so that a receiver with room for more knows its end.
struct Part {
  static constexpr int nobody = -1;
  int from;  // nobody: it is sent
  int tag;
  size_t at, full;  // where it begins, and how long it is where it is not the last
  size_t* came;     // where to tell how many bytes the message had; null: nobody asks
};

struct Parts {
  std::unique_ptr<MPI_Request[]> requests;  // `count` of them are under way
  std::unique_ptr<Part[]> of;
  int count = 0, capacity = 0;

  bool reserve() {
    if (count < capacity) return true;
    const int more = std::max(16, 2 * capacity);
    std::unique_ptr<MPI_Request[]> r(new (std::nothrow) MPI_Request[size_t(more)]);
    std::unique_ptr<Part[]> o(new (std::nothrow) Part[size_t(more)]);
    if (!r || !o) return false;
    std::copy_n(requests.get(), count, r.get());
    std::copy_n(of.get(), count, o.get());
    requests = std::move(r);
    of = std::move(o);
    capacity = more;
    return true;
  }
  MPI_Request* next() { return &requests[count]; }
  void add(const Part& part) { of[count++] = part; }
};

}  // namespace stretto::shim
