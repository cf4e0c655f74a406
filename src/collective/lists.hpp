// What a call notes of every rank: lists with an entry for each, in memory that was reserved when the team was made. On the stack
// they would need room for the largest team, and threads may have little of that.
//
// One call at a time works with a team; its lists nest, as its functions do. A thread's own memory would not do: an operation may
// go on in another thread.
#pragma once
#include <bit>
#include <cstdlib>

#include "base/cacheline.hpp"

namespace stretto::collective {

class Lists {
 public:
  explicit Lists(int ranks)
      : ranks_(ranks), bytes_(room_for(size_t(ranks))), data_(static_cast<char*>(aligned_alloc(cache_line, bytes_))) {}
  ~Lists() { free(data_); }
  Lists(const Lists&) = delete;
  Lists& operator=(const Lists&) = delete;

  bool usable() const { return data_ != nullptr; }
  int ranks() const { return ranks_; }

  // In whole cache lines. What was taken last is given back first. More than there is at once is a mistake of the algorithm.
  char* take(size_t bytes) {
    char* const taken = data_ + taken_;
    taken_ += round_up(bytes, cache_line);
    if (taken_ > bytes_) __builtin_trap();
    return taken;
  }
  void give_back(const char* taken) { taken_ = size_t(taken - data_); }

  // Of a result in between (patterns/merge.cpp): two at each level of the tree from nodes of three ranks on.
  static constexpr size_t between = 4096;
  // What the longest chain of algorithms needs (a staged shipment after one that told all lengths), with half as much again.
  static constexpr size_t per_rank = 768;

 private:
  static constexpr size_t most_at_once = 32;
  static size_t room_for(size_t ranks) {
    const auto levels = size_t(std::bit_width((ranks - 1) / 2));
    return round_up(ranks * per_rank, cache_line) + most_at_once * cache_line + 2 * levels * between;
  }

  const int ranks_;
  const size_t bytes_;
  char* const data_;
  size_t taken_ = 0;
};

// So many T. None is initialised: that would take longer than many a call.
template <class T>
class List {
 public:
  List(Lists& lists, size_t length) : of(reinterpret_cast<T*>(lists.take(length * sizeof(T)))), lists_(lists) {}
  ~List() { lists_.give_back(reinterpret_cast<const char*>(of)); }
  List(const List&) = delete;
  List& operator=(const List&) = delete;

  operator T*() { return of; }
  operator const T*() const { return of; }

  T* const of;

 private:
  Lists& lists_;
};

// A T for each rank.
template <class T>
struct PerRank : List<T> {
  explicit PerRank(Lists& lists) : List<T>(lists, size_t(lists.ranks())) {}
};

}  // namespace stretto::collective
