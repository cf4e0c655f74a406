// Messages that end in any order, each with a number of its own: requests, and what is looked for.
#pragma once
#include <algorithm>
#include <memory>
#include <new>

#include "collective/hierarchy/cluster.hpp"
#include "shim/abi.hpp"

namespace stretto::shim {

struct Posted {
  std::unique_ptr<MPI_Request[]> requests;  // `count` of them are under way
  std::unique_ptr<MPI_Status[]> statuses;   // of those that have ended
  std::unique_ptr<uint32_t[]> numbers;
  std::unique_ptr<int[]> indices;
  struct Ended {
    uint32_t number;
    size_t bytes;  // of one that was received
  };
  std::unique_ptr<Ended[]> ended;
  int count = 0, capacity = 0, ended_count = 0, told = 0;

  struct Wanted {
    void* data;
    int bytes, tag;
    uint32_t number;
  };
  std::unique_ptr<Wanted[]> wanted;
  int wanted_count = 0, wanted_capacity = 0;

  bool want(const Wanted& one) {
    if (wanted_count == wanted_capacity) {
      const int more = std::max(16, 2 * wanted_capacity);
      std::unique_ptr<Wanted[]> w(new (std::nothrow) Wanted[size_t(more)]);
      if (!w || !reserve()) return false;
      std::copy_n(wanted.get(), wanted_count, w.get());
      wanted = std::move(w);
      wanted_capacity = more;
    }
    wanted[wanted_count++] = one;
    return true;
  }
  // That one has come, and nothing else that has not been told.
  void end_wanted(int i, size_t bytes) {
    told = 0;
    ended_count = 1;
    ended[0] = {wanted[i].number, bytes};
    std::copy(&wanted[i + 1], &wanted[wanted_count], &wanted[i]);
    --wanted_count;
  }

  bool reserve() {
    if (count < capacity) return true;
    const size_t more = size_t(std::max(64, 2 * capacity));
    std::unique_ptr<MPI_Request[]> r(new (std::nothrow) MPI_Request[more]);
    std::unique_ptr<MPI_Status[]> s(new (std::nothrow) MPI_Status[more]);
    std::unique_ptr<uint32_t[]> n(new (std::nothrow) uint32_t[more]);
    std::unique_ptr<Ended[]> e(new (std::nothrow) Ended[more]);
    std::unique_ptr<int[]> i(new (std::nothrow) int[more]);
    if (!r || !s || !n || !e || !i) return false;
    std::copy_n(requests.get(), count, r.get());
    std::copy_n(numbers.get(), count, n.get());
    std::copy_n(ended.get(), ended_count, e.get());
    requests = std::move(r);
    statuses = std::move(s);
    numbers = std::move(n);
    ended = std::move(e);
    indices = std::move(i);
    capacity = int(more);
    return true;
  }
  MPI_Request* next() { return &requests[count]; }
  void add(uint32_t number) { numbers[count++] = number; }

  // Those at indices[0..found) have; the others close up. bytes_of: of a status.
  template <class BytesOf>
  void end(int found, BytesOf bytes_of) {
    ended_count = told = 0;
    for (int i = 0; i < found; ++i) {
      ended[ended_count++] = {numbers[indices[i]], bytes_of(statuses[i])};
      numbers[indices[i]] = collective::Links::none;
    }
    int left = 0;
    for (int i = 0; i < count; ++i) {
      if (numbers[i] == collective::Links::none) continue;
      requests[left] = requests[i];
      numbers[left++] = numbers[i];
    }
    count = left;
  }
  bool has_ended() const { return told < ended_count; }
  Ended take() { return ended[told++]; }
};

}  // namespace stretto::shim
