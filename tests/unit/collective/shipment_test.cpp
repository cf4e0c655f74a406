// Every row of the table that only moves bytes, against what was to be sent: random sizes, roots, places, in place or not.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <random>
#include <string>

#include "collective/algorithms.hpp"
#include "collective/patterns/handover.hpp"
#include "collective/patterns/staged.hpp"
#include "shipments.hpp"
#include "team_of_threads.hpp"
#include "wrapped_transport.hpp"

namespace stretto::collective {
namespace {

class Shipments : public ::testing::Test {
 protected:
  const Algorithm& row() const { return *row_; }

  size_t random_size(int ranks) {
    size_t limit = row().max_bytes == any_size ? largest_ : row().max_bytes / size_t(gives_each(row().kind) ? ranks : 1);
    if (random_() % 8 == 0) return 0;
    return random_() % (random_() % 2 ? std::min<size_t>(limit, 70) + 1 : limit + 1);
  }

  Plan random_plan(int ranks) {
    Plan plan = collective::random_plan(row().kind, ranks, random_, [&] { return random_size(ranks); });
    if (told_to_givers_alone(row().kind) && random_() % 3 == 0) {
      plan.in_place.assign(plan.in_place.size(), false);
      plan.spare = random_size(ranks);
    }
    return plan;
  }

  void run_random(TeamOfThreads& threads, int calls) {
    for (int i = 0; i < calls; ++i) run_plan(threads, random_plan(threads.size()));
  }

  void run_plan(TeamOfThreads& threads, const Plan& plan) {
    std::vector<std::unique_ptr<Part>> parts;
    for (int r = 0; r < threads.size(); ++r) parts.push_back(std::make_unique<Part>(plan, r));
    threads.run([&](Team& team) { return row().run(team, parts[size_t(team.rank)]->request()); });
    for (int r = 0; r < threads.size(); ++r)
      if (!parts[size_t(r)]->right()) ADD_FAILURE() << "rank " << r << " of " << threads.size();
  }

  Plan plan_of_equals(int ranks, size_t size) {
    Plan plan{row().kind, ranks, 0, {}, std::vector<bool>(size_t(ranks), false)};
    for (int from = 0; from < ranks; ++from) plan.message.emplace_back(ranks, random_bytes(random_, size));
    return plan;
  }

  void leave_behind(int ranks, const Algorithm& row);

  std::mt19937 random_{20261122};
  const Algorithm* row_ = nullptr;
  size_t largest_ = 30000;  // piece
};

class EveryShipment : public Shipments, public ::testing::WithParamInterface<int> {
 protected:
  void hold_back(int ranks);
  void truncate(int ranks);
  void SetUp() override {
    row_ = &algorithms[GetParam()];
    if (by_size()) largest_ = 500'000;
  }
  bool by_size() { return row().name == std::string("sized"); }  // long pieces take another way
};

TEST_P(EveryShipment, DeliversWhatWasSent) {
  for (int ranks : {1, 2, 3, 4, 5, 8}) {
    TeamOfThreads threads(ranks);
    run_random(threads, in_time(15));
  }
}

TEST_P(EveryShipment, ServesManyRanks) {
  largest_ = 300;
  TeamOfThreads threads(many_ranks, options_of_many());
  run_random(threads, 2);
}

TEST_P(EveryShipment, WithoutReachingPeers) {
  TeamOptions options;
  options.direct = false;
  for (int ranks : {2, 3}) {
    TeamOfThreads threads(ranks, options);
    run_random(threads, in_time(10));
  }
}

TEST_P(EveryShipment, GoesOnBeyondHalfOf64Bits) {
  constexpr int ranks = 3;
  TeamOptions options;
  TeamOfThreads threads(ranks, options);
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < 8; ++i) run_random(threads, 1);
    threads.pass_many_rounds();
  }
}

TEST_P(EveryShipment, PassesTheEndOf32Bits) {
  TeamOptions options;
  options.first_number = UINT32_MAX - 20;
  for (int ranks : {2, 3}) {
    TeamOfThreads threads(ranks, options);
    run_random(threads, 20);
  }
}

TEST_P(EveryShipment, SleepsAndWakes) {
  TeamOptions options;
  options.policy = {.looks = 1, .spins = 0, .patience_ns = 0};
  for (int ranks : {2, 4}) {
    TeamOfThreads threads(ranks, options);
    run_random(threads, in_time(10));
  }
}

TEST_P(EveryShipment, DescendsWhenReadsAreRefused) {
  for (uint64_t cut : {0, 1, 2}) {
    TeamOptions options;
    options.faults = [cut](int rank) {
      transport::Faults faults;
      if (rank == 1) faults.cut_after = cut;
      return faults;
    };
    for (int ranks : {2, 3}) {
      TeamOfThreads threads(ranks, options);
      run_random(threads, 6);
    }
  }
}

TEST_P(EveryShipment, IsRightWhereNothingIsMapped) {
  expect_right_where_unmapped(row().kind, [&](TeamOfThreads& threads) { run_random(threads, 1); });
}

TEST_P(EveryShipment, LeavesWhatIsNotMapped) {
  if (std::string(row().name) != "direct") return;
  expect_left_where_unmapped([&](TeamOfThreads& threads) { run_plan(threads, plan_of_equals(threads.size(), 9000)); });
}

// Calls follow one another without a barrier, and one rank is slow: nobody's data may be overwritten before it has been read.
TEST_P(EveryShipment, HoldsBackWhoeverRunsAhead) {
  for (const int ranks : {2, 3}) hold_back(ranks);
}
void EveryShipment::hold_back(int ranks) {
  constexpr int calls = in_time(40);
  TeamOfThreads threads(ranks);
  threads.make_read_late(0);
  std::vector<Plan> plans;
  for (int i = 0; i < calls; ++i) plans.push_back(random_plan(ranks));
  threads.run([&](Team& team) {
    for (int i = 0; i < calls; ++i) {
      Part part(plans[size_t(i)], team.rank);
      if (team.rank == ranks - 1) std::this_thread::sleep_for(std::chrono::microseconds(200));
      STRETTO_TRY(row().run(team, part.request()));
      if (!part.right()) return invalid("wrong bytes", i);
    }
    return Status::good();
  });
}

// One sender gives more than the others reckon with: the receiver has the beginning, and knows; the next call is right.
TEST_P(EveryShipment, TruncatesWhatIsTooLong) {
  bool known_staged = row().needs_stage && !varies(row().kind);
  if (known_staged || row().kind == Kind::allgatherv || (gives_each(row().kind) && !varies(row().kind))) return;
  for (const int ranks : {2, 3}) truncate(ranks);
}
void EveryShipment::truncate(const int ranks) {
  TeamOfThreads threads(ranks);
  for (size_t size : {40, 9000, 400'000}) {
    if (size > row().max_bytes || size > largest_) continue;
    const Plan plan = plan_of_equals(ranks, size);
    std::vector<std::unique_ptr<Part>> parts;
    for (int r = 0; r < ranks; ++r) parts.push_back(std::make_unique<Part>(plan, r));
    const int victim = gathers(row().kind) || !scatters(row().kind) ? 0 : 1;
    const size_t from = victim == 0 ? 1 : 0;
    threads.run([&](Team& team) {
      Request request = parts[size_t(team.rank)]->request();
      std::vector<Piece> rooms;
      if (team.rank == victim) {
        rooms.assign(request.gets, request.gets + ranks);
        rooms[from].bytes -= 7;
        request.gets = rooms.data();
      }
      Status status = row().run(team, request);
      if (team.rank != victim) return status;
      return status.code == Code::truncated ? Status::good() : invalid("not truncated", int(status.code));
    });
    run_random(threads, 2);
  }
}

std::string title(const ::testing::TestParamInfo<int>& info) {
  return std::string(name(algorithms[info.param].kind)) + "_" + algorithms[info.param].name;
}

std::vector<int> shipments() {
  std::vector<int> rows;
  for (int i = 0; i < algorithm_count; ++i)
    if (is_shipment(algorithms[i].kind)) rows.push_back(i);
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryShipment, ::testing::ValuesIn(shipments()), title);

// Calls of all kinds one after the other, large ones too, of which several rounds share a cell; each rank comes to each when it
// likes, and nobody waits in between.
class ShipmentsOfRanks : public Shipments, public ::testing::WithParamInterface<int> {};
TEST_P(ShipmentsOfRanks, OfAllKindsInEveryOrderOfArrival) {
  const int ranks = GetParam();
  constexpr size_t calls = 60;
  const std::vector<int> rows = shipments();
  TeamOptions options;
  options.cell_bytes = 128 << 10;
  TeamOfThreads threads(ranks, options);
  std::vector<Plan> plans;
  std::vector<const Algorithm*> chosen;
  std::vector<std::vector<int>> delays;
  for (size_t i = 0; i < calls; ++i) {
    row_ = &algorithms[rows[random_() % rows.size()]];
    largest_ = random_() % 2 ? 500000 : 3000;
    chosen.push_back(row_);
    plans.push_back(random_plan(ranks));
    delays.emplace_back();
    for (int r = 0; r < ranks; ++r) delays.back().push_back(random_() % 3 == 0 ? int(random_() % 800) : 0);
  }
  threads.run([&](Team& team) {
    for (size_t i = 0; i < calls; ++i) {
      Part part(plans[i], team.rank);
      std::this_thread::sleep_for(std::chrono::microseconds(delays[i][size_t(team.rank)]));
      STRETTO_TRY(chosen[i]->run(team, part.request()));
      if (!part.right()) return invalid(chosen[i]->name, int(chosen[i]->kind));
    }
    return Status::good();
  });
}

INSTANTIATE_TEST_SUITE_P(All, ShipmentsOfRanks, ::testing::Values(2, 3));

// Between two ranks some forms use the cells of both in ways of their own: none may touch what another has left there.
TEST_F(Shipments, OfTwoRanksAmongReductions) {
  constexpr size_t calls = 200, longest = 60000;
  std::vector<const Algorithm*> chosen;
  std::vector<size_t> sizes, delays;
  for (size_t i = 0; i < calls; ++i) {
    const Kind kind = std::array{Kind::alltoall, Kind::allreduce, Kind::allgather}[random_() % 3];
    std::vector<const Algorithm*> rows;
    for (const Algorithm& a : algorithms)
      if (a.kind == kind && a.needs_stage && a.max_bytes == any_size) rows.push_back(&a);
    chosen.push_back(rows[random_() % rows.size()]);
    sizes.push_back(random_() % (random_() % 2 ? 3000 : longest) / 8 + 1);
    delays.push_back(random_() % 4 ? 2 : random_() % 2);
  }
  TeamOfThreads threads(2);
  threads.run([&](Team& team) {
    std::vector<uint64_t> in(2 * longest / 8 + 2), out(in.size());
    for (size_t i = 0; i < calls; ++i) {
      const size_t n = sizes[i], bytes = 8 * n;
      const bool reduces = chosen[i]->kind == Kind::allreduce, each = chosen[i]->kind == Kind::alltoall;
      const auto given = [&](int from, size_t k) { return i << 40 | uint64_t(from) << 32 | k; };
      for (size_t k = 0; k < in.size(); ++k) in[k] = given(team.rank, k);
      Piece gives[] = {{in.data(), bytes}, {in.data() + n, bytes}}, gets[] = {{out.data(), bytes}, {out.data() + n, bytes}};
      Request request;
      request.kind = chosen[i]->kind;
      request.count = reduces ? n : bytes;
      if (reduces) {
        request.type = kernels::Type::u64;
        request.op = kernels::Op::sum;
        request.element = 8;
        request.input = in.data();
        request.output = out.data();
      } else {
        request.gives = gives;
        request.gets = gets;
      }
      if (delays[i] == size_t(team.rank)) std::this_thread::sleep_for(std::chrono::microseconds(100));
      STRETTO_TRY(chosen[i]->run(team, request));
      for (size_t k = 0; k < (reduces ? n : 2 * n); ++k) {
        const size_t place = each ? size_t(team.rank) * n + k % n : k % n;
        const uint64_t right = reduces ? given(0, k) + given(1, k) : given(int(k / n), place);
        if (out[k] != right) return invalid(chosen[i]->name, int(chosen[i]->kind));
      }
    }
    return Status::good();
  });
}

// The root of a broadcast has left it, and begins to swap, before the other has come to read what its cells hold.
TEST_F(Shipments, OfTwoRanksWaitForWhatIsStillInTheCells) {
  constexpr size_t size = 30000;  // a round in each cell
  TeamOptions options;
  options.cell_bytes = 128 << 10;
  TeamOfThreads threads(2, options);
  const Bytes message = random_bytes(random_, size);
  std::atomic<int> gone{0};
  threads.run([&](Team& team) {
    for (int i = 0; i < 8; ++i) {
      Bytes mine = team.rank == 0 ? message : Bytes(size), in(2 * size, (unsigned char)(i + team.rank)), out(2 * size);
      Request bcast;
      bcast.kind = Kind::bcast;
      bcast.type = kernels::Type::byte;
      bcast.count = size;
      bcast.input = bcast.output = mine.data();
      while (team.rank == 1 && gone <= i) std::this_thread::yield();
      if (team.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      STRETTO_TRY(bcast_staged(team, bcast));
      if (team.rank == 0) ++gone;
      Piece gives[] = {{in.data(), size}, {in.data() + size, size}}, gets[] = {{out.data(), size}, {out.data() + size, size}};
      Request alltoall;
      alltoall.kind = Kind::alltoall;
      alltoall.gives = gives;
      alltoall.gets = gets;
      STRETTO_TRY(ship_pair(team, alltoall, alltoall_route));
      if (mine != message) return invalid("wrong bytes of the broadcast", i);
      for (size_t k = 0; k < 2 * size; ++k)
        if (out[k] != i + int(k / size)) return invalid("wrong bytes", i);
    }
    return Status::good();
  });
}

// Who only gives leaves with its call when all is staged: here the receiver comes only after everybody else has returned.
void Shipments::leave_behind(const int ranks, const Algorithm& row) {
  TeamOptions options;
  options.cell_bytes = 128 << 10;
  const Kind kind = row.kind;
  for (size_t size : {size_t(300), size_t(20) << 10, size_t(200) << 10, size_t(480) << 10}) {
    if (kind == Kind::scatter) size /= size_t(ranks) - 1;
    TeamOfThreads threads(ranks, options);
    Plan plan{kind, ranks, 0, {}, std::vector<bool>(size_t(ranks), false)};
    for (int from = 0; from < ranks; ++from) plan.message.emplace_back(ranks, random_bytes(random_, size));
    std::atomic<int> gone{0};
    threads.run([&](Team& team) {
      Part part(plan, team.rank);
      const bool late = kind == Kind::gather ? team.rank == 0 : team.rank != 0;
      const int first = kind == Kind::gather ? ranks - 1 : 1;
      while (late && gone < first) std::this_thread::yield();
      STRETTO_TRY(row.run(team, part.request()));
      if (!late) ++gone;
      return part.right() ? Status::good() : invalid("wrong bytes");
    });
  }
}
TEST_F(Shipments, LeaveBehindWhatTheirCellsHold) {
  for (const Algorithm& row : algorithms) {
    if (row.kind != Kind::gather && row.kind != Kind::scatter) continue;
    if (row.name == std::string("staged")) leave_behind(3, row);
    if (row.name == std::string("handover")) leave_behind(2, row);
  }
}

// Where the two of a handover are there together, both copy: in the end, whoever of them was refused in mid-course.
TEST_F(Shipments, HandedOverByBoth) {
  constexpr size_t size = 700'000;
  for (const int refused : {-1, 0, 1}) {
    for (const Algorithm& row : algorithms) {
      if (row.name != std::string("handover") || !is_shipment(row.kind)) continue;
      Counting::Bytes counts[2];
      TeamOptions options;
      options.faults = [&](int rank) {
        transport::Faults faults;
        if (rank == refused) faults.cut_after = 1;
        return faults;
      };
      TeamOfThreads threads(2, options);
      for (int r = 0; r < 2; ++r) {
        threads.team(r).direct = std::make_unique<Counting>(std::move(threads.team(r).direct), &counts[r]);
        threads.team(r).handovers.settle(0);
      }
      for (int i = 0; i < 3; ++i) {
        Plan plan{row.kind, 2, i % 2, {}, std::vector<bool>(2, false)};
        for (int from = 0; from < 2; ++from) plan.message.emplace_back(2, random_bytes(random_, size));
        threads.run([&](Team& team) {
          Part part(plan, team.rank);
          STRETTO_TRY(row.run(team, part.request()));
          return part.right() ? Status::good() : invalid("wrong bytes", int(row.kind));
        });
        if (refused >= 0) continue;
        const int giver = scatters(row.kind) ? i % 2 : 1 - i % 2;
        EXPECT_EQ(counts[giver].given + counts[1 - giver].taken, size) << name(row.kind);
        EXPECT_EQ(counts[giver].taken + counts[1 - giver].given, 0u);
        counts[0] = counts[1] = {};
      }
    }
  }
}

// Both ways are tried in turn, by the size of the message; and whichever was found to be faster is used.
TEST_F(Shipments, OfTwoRanksTryBothWays) {
  constexpr int calls = 40;
  for (const Algorithm& row : algorithms) {
    const bool swaps = row.name == std::string("pair");
    if (!is_shipment(row.kind) || (row.name != std::string("handover") && !swaps)) continue;
    Counting::Bytes counts[2];
    TeamOptions options;
    options.cell_bytes = 16 << 10;
    TeamOfThreads threads(2, options);
    for (int r = 0; r < 2; ++r)
      threads.team(r).direct = std::make_unique<Counting>(std::move(threads.team(r).direct), &counts[r]);
    int directly = 0;
    for (int i = 0; i < calls; ++i) {
      const size_t size = i % 2 ? 75'000 : 175'000;  // more than the cells hold, so that the two meet
      Plan plan{row.kind, 2, 0, {}, std::vector<bool>(2, false)};
      for (int from = 0; from < 2; ++from) plan.message.emplace_back(2, random_bytes(random_, size));
      threads.run([&](Team& team) {
        Part part(plan, team.rank);
        STRETTO_TRY(row.run(team, part.request()));
        return part.right() ? Status::good() : invalid("wrong bytes", int(row.kind));
      });
      const size_t moved = counts[0].given + counts[0].taken + counts[1].given + counts[1].taken;
      EXPECT_TRUE(moved == 0 || moved == (swaps ? 2 : 1) * size) << name(row.kind) << moved;
      directly += moved != 0;
      counts[0] = counts[1] = {};
    }
    EXPECT_GE(directly, 4) << name(row.kind) << ": two calls of either size, if it is slower";
    EXPECT_LE(directly, calls - 4) << name(row.kind);
    Team& chooser = threads.team(swaps || scatters(row.kind) ? 0 : 1);
    for (const size_t size : {75'000, 175'000})
      EXPECT_GE(swaps ? chooser.swaps[0].fastest(size, -1) : chooser.handovers.fastest(size, -1), 0) << "was tried in full";
  }
}

// Ranks that time calls together must choose alike.
TEST_F(Shipments, OfMoreRanksTryBothWays) {
  constexpr int ranks = 3;
  for (const Algorithm& row : algorithms) {
    if (!is_shipment(row.kind) || row.name != std::string("adaptive")) continue;
    TeamOfThreads threads(ranks);
    int timed[2] = {};
    size_t bytes = 0;
    for (int i = 0; i < 10; ++i) {
      Plan plan{row.kind, ranks, i % ranks, {}, std::vector<bool>(ranks, false)};
      for (int from = 0; from < ranks; ++from) plan.message.emplace_back(ranks, random_bytes(random_, 20'000));
      bytes = Part(plan, 0).request().bytes();
      const auto next = Trials<2>(threads.team(0).either_of(row.kind)).choose(bytes);
      if (next.timed) ++timed[next.way];
      threads.run([&](Team& team) {
        Part part(plan, team.rank);
        STRETTO_TRY(row.run(team, part.request()));
        return part.right() ? Status::good() : invalid("wrong bytes", int(row.kind));
      });
    }
    for (const int calls : timed) EXPECT_GE(calls, 2) << name(row.kind);
    const int fastest = threads.team(0).either_of(row.kind).fastest(bytes, -1);
    EXPECT_GE(fastest, 0) << name(row.kind) << ": ten calls are a trial";
    for (int r = 1; r < ranks; ++r) EXPECT_EQ(threads.team(r).either_of(row.kind).fastest(bytes, -1), fastest) << name(row.kind);
  }
}

// A message is too long for one rank, of which the others learn nothing, in a call that all time together.
TEST_F(Shipments, OfWhichOneIsTruncatedStayInStep) {
  constexpr int ranks = 3, victim = 0;
  for (const Route route : {gather_route, allgather_route}) {
    TeamOfThreads threads(ranks);
    Plan plan{route.ends == Ends::all ? Kind::allgather : Kind::gather, ranks, victim, {}, std::vector<bool>(ranks, false)};
    for (int from = 0; from < ranks; ++from) plan.message.emplace_back(ranks, random_bytes(random_, 20'000));
    const size_t bytes = Part(plan, 0).request().bytes();
    const Way run = route.ends == Ends::all ? adaptive_along<allgather_route> : adaptive_along<gather_route>;
    constexpr int calls_of_a_way = 5, too_long = calls_of_a_way;  // the first that goes by direct access
    for (int call = 0; call < 2 * calls_of_a_way; ++call) {
      const auto next = Trials<2>(threads.team(victim).either_of(plan.kind)).choose(bytes);
      ASSERT_TRUE(call != too_long || (next.timed && next.way == 1)) << "else this test shows nothing";
      threads.run([&](Team& team) {
        Part part(plan, team.rank);
        Request request = part.request();
        const bool truncates = call == too_long && team.rank == victim;
        std::vector<Piece> rooms;
        if (truncates) {
          rooms.assign(request.gets, request.gets + ranks);
          rooms[1].bytes -= 7;
          request.gets = rooms.data();
        }
        const Status status = run(team, request);
        if (!truncates) return status.ok() && !part.right() ? invalid("wrong bytes", call) : status;
        return status.code == Code::truncated ? Status::good() : invalid("not truncated", int(status.code));
      });
    }
    for (int r = 1; r < ranks; ++r)
      EXPECT_EQ(threads.team(r).either_of(plan.kind).fastest(bytes), threads.team(0).either_of(plan.kind).fastest(bytes));
  }
}

// Who gives to the root of a gather waits for nobody, whether sizes are known or not, as long as his cells hold what he gives.
TEST_F(Shipments, GiversOfAGatherWaitForNobody) {
  for (const Kind kind : {Kind::gather, Kind::gatherv})
    for (const size_t size : {size_t(40), size_t(3000), size_t(7000)}) {
      TeamOfThreads threads(3);
      for (int call = 0; call < 3; ++call) {
        Plan plan{kind, 3, 0, {}, std::vector<bool>(3, false)};
        for (int from = 0; from < 3; ++from) plan.message.emplace_back(3, random_bytes(random_, size));
        const Route route = kind == Kind::gather ? gather_route : gatherv_route;
        Part early(plan, 2), root(plan, 0), late(plan, 1);
        ASSERT_TRUE(ship_staged(threads.team(2), early.request(), route).ok());  // alone, in this thread
        std::thread other([&] { ASSERT_TRUE(ship_staged(threads.team(1), late.request(), route).ok()); });
        ASSERT_TRUE(ship_staged(threads.team(0), root.request(), route).ok());
        other.join();
        EXPECT_TRUE(root.right()) << name(kind) << ' ' << size;
      }
    }
}

// Who gives to few of many ranks needs no more rounds than if they were all there are.
TEST_F(Shipments, OfFewPiecesAmongManyRanksTakeFewRounds) {
  constexpr int ranks = 8;
  constexpr size_t size = 6000;
  TeamOptions options;
  options.cell_bytes = 64 << 10;
  TeamOfThreads threads(ranks, options);
  Plan plan{Kind::alltoallv, ranks, 0, {}, std::vector<bool>(ranks, false)};
  for (int from = 0; from < ranks; ++from) {
    plan.message.emplace_back();
    for (int to = 0; to < ranks; ++to) plan.message.back().push_back(random_bytes(random_, to == (from + 1) % ranks ? size : 0));
  }
  threads.run([&](Team& team) {
    const uint64_t before = team.rounds;
    Part part(plan, team.rank);
    STRETTO_TRY(ship_staged(team, part.request(), alltoallv_route));
    const uint64_t rounds = team.mine().filled.value - before;
    if (rounds < 1 || rounds > 3) return invalid("so many rounds", int(rounds));
    return part.right() ? Status::good() : invalid("wrong bytes");
  });
}

// Who takes part in a handover without wanting the message leaves only once its giver has stored to cells what it has to: lines
// may change hands there in the next call.
TEST_F(Shipments, WhoWantsNothingWaitsForTheGiver) {
  TeamOfThreads threads(2);
  Bytes message(9000, 7);
  Request request;
  request.kind = Kind::bcast;
  request.count = message.size();
  std::atomic<bool> gives{false};
  threads.run([&](Team& team) {
    Request own = request;
    own.input = message.data();
    if (team.rank == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      gives = true;
      return broadcast_staged(team, own, kernels::Store::cached);
    }
    STRETTO_TRY(broadcast_staged(team, own, kernels::Store::cached));
    return gives && reached(team.board(0).filled.value, team.rounds) ? Status::good() : invalid("left too early");
  });
}

// In place on all ranks or on some, of pieces whose sizes differ by a thousand: nobody may wait for a round that another cannot
// stage before he has read.
TEST_F(Shipments, InPlaceOfVeryDifferentSizesComeToAnEnd) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const int ranks = 3 + int(seed % 6);
    TeamOfThreads threads(ranks);
    Plan plan{Kind::alltoallv, ranks, 0, {}, std::vector<bool>(size_t(ranks), true)};
    for (int from = 0; from < ranks; ++from) {
      if (seed % 2 != 0) plan.in_place[size_t(from)] = random_() % 2 != 0;
      plan.message.emplace_back();
      for (int to = 0; to < ranks; ++to) {  // in place as much comes as goes
        const size_t either = random_() % 3 ? random_() % 60 : 20'000 + random_() % 60'000;
        plan.message.back().push_back(random_bytes(random_, to < from ? plan.message[size_t(to)][size_t(from)].size() : either));
      }
    }
    threads.run([&](Team& team) {
      Part part(plan, team.rank);
      STRETTO_TRY(ship_staged(team, part.request(), alltoallv_route));
      return part.right() ? Status::good() : invalid("wrong bytes", int(seed));
    });
  }
}

// A process number may be another's by the time that a late giver comes: nothing is written to who has died.
TEST_F(Shipments, NothingIsHandedToTheDead) {
  constexpr size_t size = 40'000;
  Counting::Bytes counts;
  TeamOfThreads threads(2);
  threads.team(0).direct = std::make_unique<Counting>(std::move(threads.team(0).direct), &counts);
  WaitHooks hooks;
  hooks.alive = [](void*, int) { return false; };
  threads.team(0).waiter = Waiter(WaitPolicy::oversubscribed(), hooks);
  threads.team(0).handovers.settle(0);
  Bytes given(size, 1), room(size, 2);
  Handover taker(threads.team(1), Kind::bcast, 0, {room.data(), size}, kernels::Store::cached);
  ASSERT_TRUE(taker.begin().ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  Handover giver(threads.team(0), Kind::bcast, 0, {given.data(), size}, kernels::Store::cached);
  ASSERT_TRUE(giver.begin().ok());
  EXPECT_EQ(giver.agree().code, Code::peer_lost);
  EXPECT_EQ(counts.given, 0u);
}

// Ranks that call different collectives must not hang.
TEST(Shipment, OfDifferentCallsIsNoticed) {
  TeamOfThreads threads(2);
  threads.run([&](Team& team) {
    char from[2][8] = {}, to[2][8];
    Piece gives[2] = {{from[0], 8}, {from[1], 8}}, gets[2] = {{to[0], 8}, {to[1], 8}};
    Request request;
    request.kind = team.rank == 0 ? Kind::allgather : Kind::alltoall;
    request.gives = gives;
    request.gets = gets;
    Status status = ship_flat(team, request, team.rank == 0 ? allgather_route : alltoall_route);
    return status.code == Code::disagreed ? Status::good() : invalid("not noticed", int(status.code));
  });
}

// Nor may they take what an earlier call left for an answer.
TEST(Shipment, OfAnotherCallIsNotTakenForAnEarlierOne) {
  for (const Kind other : {Kind::barrier, Kind::allreduce}) {
    TeamOfThreads threads(2);
    threads.run([&](Team& team) {
      float from = 7, to[2] = {};
      Piece gives[1] = {{&from, sizeof from}}, gets[2] = {{&to[0], sizeof from}, {&to[1], sizeof from}};
      Request request;
      request.kind = Kind::allgather;
      request.gives = gives;
      request.gets = gets;
      for (int i = 0; i < 2; ++i) STRETTO_TRY(ship_flat(team, request, allgather_route));
      if (team.rank == 0) {
        const Status status = ship_flat(team, request, allgather_route);
        return status.code == Code::disagreed ? Status::good() : invalid("not noticed", int(status.code));
      }
      Request sum{other, kernels::Op::sum, kernels::Type::f32, 1, sizeof from, 0, &from, to, {}};
      const Status status = other == Kind::barrier ? barrier_flat(team, sum) : allreduce_flat(team, sum);
      return other == Kind::barrier || status.code == Code::disagreed ? Status::good() : invalid("not noticed", int(status.code));
    });
  }
}

}  // namespace
}  // namespace stretto::collective
