// Every interleaving of the steps of some ranks.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "team_of_threads.hpp"

namespace stretto::collective {

// Teams whose waits end at once, as if the awaited rank had died.
class WithoutWaiting {
 public:
  explicit WithoutWaiting(int ranks, const std::vector<int32_t>& domains = {}) : teams_(ranks, options(domains)) {
    for (int r = 0; r < ranks; ++r) team(r).waiter.begin_beside(&at_once_);
  }
  Team& team(int r) { return teams_.team(r); }

 private:
  struct AtOnce : Suspension {
    void suspend(const Wait&) override {}
    void until_done(bool (*)(void*), void*) override {}
  };
  static TeamOptions options(const std::vector<int32_t>& domains) {
    TeamOptions options;
    options.policy = {.looks = 1, .spins = 0};
    options.hooks.alive = [](void*, int) { return false; };
    options.domains = domains;
    return options;
  }

  AtOnce at_once_;
  TeamOfThreads teams_;
};

// Moves one rank at a time, through all states that can be reached. A World is made of a Search (with `ranks` and print()): key()
// tells where its ranks are, move(r) does the next step of rank r, if it has one, and says what is wrong, is_through(r) whether
// it has come to its end.
template <class World, class Search>
void expect_sound(const Search& search) {
  using Path = std::vector<uint8_t>;  // the ranks that moved, in order
  std::set<std::string> known{World(search).key()};
  std::vector<Path> open{{}};
  while (!open.empty()) {
    const Path path = open.back();
    open.pop_back();
    bool any = false, all_through = true;
    for (int r = 0; r < search.ranks; ++r) {
      World world(search);
      for (int moved : path) world.move(moved);
      const std::string before = world.key();
      const std::string problem = world.move(r);
      ASSERT_EQ(problem, "") << search.print();
      all_through = all_through && world.is_through(r);
      any = any || world.key() != before;
      if (!known.insert(world.key()).second) continue;
      open.push_back(path);
      open.back().push_back(uint8_t(r));
    }
    ASSERT_TRUE(any || all_through) << "a state without a next step: " << search.print();
  }
  std::printf("%s: %zu states\n", search.print().c_str(), known.size());
}

}  // namespace stretto::collective
