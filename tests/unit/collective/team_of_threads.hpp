// A team whose ranks are threads of this process: a board and staging cells in plain memory, so that sanitizers see the
// algorithms.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "collective/algorithms.hpp"
#include "collective/patterns/rounds.hpp"
#include "collective/team.hpp"
#include "stack_depth.hpp"
#include "transport/fault/fault.hpp"
#include "transport/local/local.hpp"
#include "transport/shm/shm.hpp"
#include "wrapped_transport.hpp"

namespace stretto::collective {

// Of so many random calls, those that there is time for: the thread sanitizer makes each take ten times as long.
constexpr int in_time(int calls) {
#ifdef __SANITIZE_THREAD__
  return (calls + 2) / 3;
#else
  return calls;
#endif
}

// As large nodes have; sanitizers would take minutes.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int many_ranks = 20;
#else
inline constexpr int many_ranks = 260;
#endif

struct TeamOptions {
  size_t cell_bytes = 4096;
  uint32_t ring_cells = 4;
  WaitPolicy policy = WaitPolicy::oversubscribed();
  WaitHooks hooks;
  bool staged = true;  // whether there are cells, and boards of presence
  bool direct = true;
  std::function<bool(int rank)> direct_for;           // if given: only for these ranks
  std::function<transport::Faults(int rank)> faults;  // of the direct transport
  std::vector<int32_t> domains;                       // where ranks stand; none: all together
  bool any_order = false;
  bool arrival_order = false;
  int readers = 0;
  Way unmapped = nullptr;
  uint64_t first_number = 0;  // of exchanges and rounds: below 2^32 tests that they pass it
};

// More than a byte can number, on two sockets.
inline TeamOptions options_of_many() {
  TeamOptions options;
  options.cell_bytes = 16 << 10;
  for (int r = 0; r < many_ranks; ++r) options.domains.push_back(2 * r / many_ranks);
  return options;
}

class TeamOfThreads {
 public:
  TeamOfThreads(int size, const TeamOptions& options = {}) : size_(size) {
    board_ = static_cast<Board*>(aligned_alloc(cache_line, Board::bytes(size)));
    std::memset(static_cast<void*>(board_), 0, Board::bytes(size));
    const uint32_t cells = Rounds::staying + options.ring_cells;
    stage_ = static_cast<char*>(aligned_alloc(cache_line, options.cell_bytes * cells * size_t(size)));
    presence_ = static_cast<PresenceBoard*>(aligned_alloc(cache_line, PresenceBoard::bytes(size)));
    std::memset(static_cast<void*>(presence_), 0, PresenceBoard::bytes(size));
    for (int r = 0; r < size; ++r) {
      teams_.push_back(std::make_unique<Team>(r, size, board_, Waiter(options.policy, options.hooks)));
      Team& team = *teams_.back();
      if (options.staged) team.staged = transport::make_shm({stage_, options.cell_bytes * cells, options.cell_bytes, cells}, r);
      if (options.staged) team.presence = presence_;
      if (options.direct && (!options.direct_for || options.direct_for(r))) team.direct = transport::make_local();
      if (team.direct && options.faults) team.direct = transport::make_fault(std::move(team.direct), options.faults(r));
      if (!options.domains.empty()) team.domains.describe(options.domains.data(), size);
      team.any_order = options.any_order;
      team.arrival_order = options.arrival_order;
      team.readers = options.readers;
      team.unmapped = options.unmapped;
      start_at(team, options.first_number);
    }
  }
  ~TeamOfThreads() {
    teams_.clear();
    free(board_);
    free(stage_);
    free(presence_);
  }

  int size() const { return size_; }
  Team& team(int r) { return *teams_[size_t(r)]; }

  void make_read_late(int r) { team(r).staged = std::make_unique<ReadingLate>(std::move(team(r).staged)); }

  // As after more parts of the ring than have half of all numbers.
  void pass_many_rounds() {
    constexpr int remembered = 64;
    for (int step = 0; step < 9; ++step) {
      for (const std::unique_ptr<Team>& team : teams_) {
        team->rounds += uint64_t(1) << 60;
        for (int i = 0; i < 2 * remembered; ++i) Rounds::take_part(*team);
        team->mine().drained.value.store(team->rounds);
      }
      for (const std::unique_ptr<Team>& team : teams_) team->tell_of_rounds();
    }
  }

  // Runs `body` for every rank at once, and fails when a status is not ok.
  void run(const std::function<Status(Team&)>& body) {
    std::vector<std::thread> threads;
    std::vector<Status> statuses(static_cast<size_t>(size_));
    for (int r = 0; r < size_; ++r)
      threads.emplace_back([&, r] { run_in_little_stack([&] { statuses[size_t(r)] = body(team(r)); }); });
    for (auto& thread : threads) thread.join();
    for (int r = 0; r < size_; ++r) EXPECT_TRUE(statuses[size_t(r)].ok()) << "rank " << r << ": " << statuses[size_t(r)].what;
  }

 private:
  void start_at(Team& team, uint64_t number) {
    team.exchanges = team.meetings = team.rounds = number;
    RankBoard& mine = team.mine();
    for (Signal* signal : {&mine.done, &mine.filled, &mine.reduced, &mine.drained, &mine.partial, &mine.spread})
      signal->value.store(number);
    for (Slot& slot : mine.slots) slot.ready.value.store(number);
    for (Slot* slot : {&mine.even_meeting, &mine.odd_meeting}) slot->ready.value.store(number);
    for (int r = 0; r < size_; ++r) team.assume_reached(r, number);
  }

  const int size_;
  Board* board_;
  char* stage_;
  PresenceBoard* presence_;
  std::vector<std::unique_ptr<Team>> teams_;
};

inline Way staged_way(Kind kind) {
  const auto fits = [&](const Algorithm& row) { return row.kind == kind && row.needs_stage && row.direct == Direct::never; };
  const Algorithm* row = std::find_if(std::begin(algorithms), std::end(algorithms), fits);
  return row == std::end(algorithms) ? nullptr : row->run;
}

// Whether call(threads), a few random calls, come out right where direct forms are told what to leave them to, and nothing is
// mapped, or reached.
template <typename Call>
void expect_right_where_unmapped(Kind kind, Call call) {
  TeamOptions options;
  options.unmapped = staged_way(kind);
  for (const bool direct : {true, false}) {
    options.direct = direct;
    options.faults = [](int) { return transport::Faults(); };
    for (int i = 0; i < 8; ++i) {
      TeamOfThreads threads(3, options);
      call(threads);
    }
  }
}

// Teams of two or three whose direct transport maps nothing, copies, or is not there: whether a direct form, which is told what
// to leave such calls to, leaves each of them to it, and none where everything is mapped. call(threads) makes one.
template <typename Call>
void expect_left_where_unmapped(Call call) {
  static std::atomic<int> left;
  TeamOptions options;
  options.unmapped = [](Team& team, const Request& request) {
    ++left;
    EXPECT_EQ(team.unmapped, nullptr) << "another direct form would leave it to this one again";
    return staged_way(request.kind)(team, request);
  };
  const auto expect = [&](int each, const char* what) {
    for (const int ranks : {2, 3}) {
      TeamOfThreads threads(ranks, options);
      left = 0;
      call(threads);
      EXPECT_EQ(left, each * ranks) << what;
    }
  };
  expect(0, "all is mapped");
  options.faults = [](int) { return transport::Faults(); };
  expect(1, "all is copied");
  options.direct = false;
  expect(1, "nothing is reached");
}

}  // namespace stretto::collective
