// What every transport of the table must do, whoever it is. A new row is tested here without writing a test.
#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <random>

#include "conformance/exchange.hpp"
#include "conformance/world.hpp"
#include "platform/process.hpp"
#include "transport/fault/fault.hpp"

namespace stretto::conformance {

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.row->name << (c.processes ? " processes " : " threads ") << c.faults;
}

namespace {

using transport::Cell;
using transport::Window;

#define REQUIRE(condition)                                              \
  do {                                                                  \
    if (!(condition)) return std::string("does not hold: " #condition); \
  } while (false)

std::vector<Case> cases(std::initializer_list<const char*> faults, bool (*wanted)(const Case&)) {
  std::vector<Case> all;
  for (const transport::Row& row : transport::table)
    for (bool processes : {false, true})
      for (const char* fault : faults) {
        Case one = {&row, processes, fault};
        if ((row.across_processes || !processes) && wanted(one)) all.push_back(one);
      }
  return all;
}
bool any(const Case&) {
  return true;
}
bool staged(const Case& c) {
  return c.row->staged;
}
bool direct(const Case& c) {
  return !c.row->staged;
}
bool mortal(const Case& c) {
  return c.processes;
}  // threads do not die alone

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  std::string name = std::string(info.param.row->name) + (info.param.processes ? "_processes" : "_threads");
  if (*info.param.faults != 0) name += std::string("_") + info.param.faults;
  for (char& c : name)
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

class WithCase : public ::testing::TestWithParam<Case> {
 protected:
  void expect_right(const Shape& shape, const Body& body) {
    std::string outcome = run(GetParam(), shape, body);
    if (is_skip(outcome)) GTEST_SKIP() << outcome;
    EXPECT_EQ(outcome, "");
  }
  const transport::Row& row() const { return *GetParam().row; }
};

// Nothing is refused here: plain, and delayed by the fault decorator.
#define HARMLESS(suite, wanted) \
  INSTANTIATE_TEST_SUITE_P(Table, suite, ::testing::ValuesIn(cases({"", "delay=1us"}, wanted)), case_name)

class Transport : public WithCase {
 protected:
  void expect_delivered(const Shape& shape, const std::vector<Traffic>& vectors) {
    expect_right(shape, [&](Rank& me) -> std::string {
      Tally tally;
      for (const Traffic& vector : vectors) {
        std::string complaint = exchange(me, vector, &tally);
        if (!complaint.empty()) return complaint + " (" + std::to_string(vector.bytes) + " bytes)";
      }
      REQUIRE(tally.gets > 0 && tally.refused == 0);
      return "";
    });
  }
};
HARMLESS(Transport, any);

std::vector<Traffic> random_vectors(int count, size_t most, uint64_t seed) {
  std::vector<Traffic> vectors;
  std::mt19937_64 random(seed);
  auto add = [&](size_t bytes) {
    Traffic t;
    t.bytes = bytes;
    t.round_bytes = 1 + random() % 1500;
    t.seed = random() % 100'000;
    t.in_place = random() % 2 != 0;
    vectors.push_back(t);
  };
  for (size_t bytes : {0, 1, 2, 3, 7, 63, 64, 65, 1023, 1024, 1025}) add(bytes);
  for (int i = 0; i < count; ++i) add(random() % (most + 1));
  return vectors;
}

TEST_P(Transport, DeliversRandomVectors) {
  for (int ranks : {2, 3, 5}) expect_delivered({ranks, 1024, 4}, random_vectors(15, 9000, uint64_t(ranks)));
}

TEST_P(Transport, ReusesTheRingForManyRounds) {
  Traffic traffic;
  traffic.bytes = 600 * 96 - 5;
  traffic.round_bytes = 96;
  for (uint32_t cells : {1u, 2u, 4u}) expect_delivered({3, 96, cells}, {traffic});
}

TEST_P(Transport, ProducesInPlace) {
  Traffic traffic;
  traffic.in_place = true;
  traffic.bytes = 40'001;
  expect_delivered({3, 2048, 2}, {traffic, traffic});
}

// Larger than what one system call or one page of a page table covers.
TEST_P(Transport, DeliversLargeVectors) {
  Traffic traffic;
  traffic.bytes = (5 << 20) + 3;
  traffic.round_bytes = SIZE_MAX / 2;
  traffic.pieces = false;
  expect_delivered({2, 128 << 10, 4}, {traffic});
}

TEST_P(Transport, TellsTheTruthAboutItself) {
  expect_right({2, 512, 3}, [&](Rank& me) -> std::string {
    REQUIRE(me.transport.name() == std::string(row().name));
    REQUIRE(me.transport.cells() >= 1);
    REQUIRE(me.transport.cell_bytes() == (row().staged ? 512 : SIZE_MAX));
    Buffer byte(me, {0});
    REQUIRE(row().staged || me.transport.window(byte.data()).base != 0);
    REQUIRE(row().staged == (me.transport.reach().bits() == 0));
    REQUIRE(row().staged || me.transport.reach().reads(me.transport.window(byte.data())));
    REQUIRE(!row().arena_only || me.transport.window(&me).base == 0);
    return "";
  });
}

// maps(): the pointer leads to the peer's own bytes, so it shows what the peer writes later. Otherwise it is a copy in scratch.
TEST_P(Transport, MapsWhenItSaysSo) {
  constexpr size_t bytes = 200;
  expect_right({2, 512, 3}, [&](Rank& me) -> std::string {
    Buffer buffer(me, pattern(1, me.rank, bytes));
    std::vector<char> scratch(bytes, 0x77);
    const std::vector<char> untouched = scratch, before = pattern(1, 1 - me.rank, bytes), after = pattern(2, 1 - me.rank, bytes);
    Cell cell = {7, 1000};
    me.mine().window = me.transport.window(buffer.data()).base;
    REQUIRE(me.transport.put(cell, 1000, buffer.data(), bytes).ok());
    REQUIRE(me.meet());
    // The window's byte 0 is the buffer's: direct transports see the range at its place in the vector.
    size_t at = row().staged ? 1000 : 0;
    const void* data = nullptr;
    REQUIRE(me.transport.get(1 - me.rank, {me.line(1 - me.rank).window}, cell, at, bytes, scratch.data(), &data).ok());
    REQUIRE(memcmp(data, before.data(), bytes) == 0);
    REQUIRE((data == scratch.data()) == !me.transport.maps());
    REQUIRE(!me.transport.maps() || scratch == untouched);
    REQUIRE(me.meet());
    std::vector<char> newer = pattern(2, me.rank, bytes);
    std::copy(newer.begin(), newer.end(), buffer.data());
    REQUIRE(me.transport.put(cell, 1000, buffer.data(), bytes).ok());
    REQUIRE(me.meet());
    REQUIRE(memcmp(data, me.transport.maps() ? after.data() : before.data(), bytes) == 0);
    REQUIRE(me.meet());
    return "";
  });
}

class StagedTransport : public Transport {};
HARMLESS(StagedTransport, staged);

TEST_P(StagedTransport, RejectsRangesBeyondACell) {
  expect_right({2, 512, 3}, [&](Rank& me) -> std::string {
    std::vector<char> data(1024, 'x');
    const void* seen = nullptr;
    REQUIRE(!me.transport.put({0, 0}, 0, data.data(), 513).ok());
    REQUIRE(!me.transport.put({0, 100}, 99, data.data(), 1).ok());
    REQUIRE(me.transport.place({0, 0}, 1, 512) == nullptr);
    REQUIRE(!me.transport.get(1 - me.rank, {}, {0, 0}, 512, 1, data.data(), &seen).ok());
    return "";
  });
}

class DirectTransport : public Transport {};
HARMLESS(DirectTransport, direct);

TEST_P(DirectTransport, WindowOfNothingIsRefused) {
  expect_right({2, 512, 3}, [&](Rank& me) -> std::string {
    char scratch[8];
    const void* data = nullptr;
    REQUIRE(me.transport.window(nullptr).base == 0);
    REQUIRE(me.transport.get(1 - me.rank, Window{}, {}, 0, sizeof scratch, scratch, &data).code == Code::refused);
    REQUIRE(me.transport.get(1 - me.rank, Window{}, {}, 0, 0, scratch, &data).ok());
    return "";
  });
}

// A transport that can write puts bytes straight into the peer's buffer, and nowhere else.
TEST_P(DirectTransport, WritesWhereItSaysSo) {
  constexpr size_t bytes = 3000;
  expect_right({2, 512, 3}, [&](Rank& me) -> std::string {
    Buffer buffer(me, std::vector<char>(bytes, 'o'));
    me.mine().window = me.transport.window(buffer.data()).base;
    REQUIRE(me.meet());
    Window theirs = {me.line(1 - me.rank).window};
    auto* there = static_cast<char*>(me.transport.place_at(1 - me.rank, theirs, 1000, 500));
    REQUIRE((there != nullptr) == me.transport.reach().writes(theirs));
    if (there != nullptr) memset(there, 'n', 500);
    // A vector whose first 700 bytes are elsewhere.
    void* late = me.transport.place_at(1 - me.rank, transport::earlier(theirs, 700), 1700, 500);
    REQUIRE(late == there);
    REQUIRE(me.transport.place_at(1 - me.rank, {}, 0, 1) == nullptr);
    REQUIRE(me.meet());
    std::string expected = std::string(bytes, 'o');
    if (there != nullptr) expected.replace(1000, 500, 500, 'n');
    REQUIRE(std::string(buffer.data(), bytes) == expected);
    REQUIRE(me.meet());
    return "";
  });
}

// So does what it is given by a copy, where it says that it gives; more than the buffer has is refused where nothing is mapped.
TEST_P(DirectTransport, GivesWhereItSaysSo) {
  const size_t page = size_t(sysconf(_SC_PAGESIZE)), bytes = 3 * page;
  expect_right({2, 512, 3}, [&](Rank& me) -> std::string {
    Buffer buffer(me, std::vector<char>(bytes, 'o'));
    const std::vector<char> news(bytes, char('a' + me.rank));
    me.mine().window = me.transport.window(buffer.data()).base;
    REQUIRE(me.meet());
    Window theirs = {me.line(1 - me.rank).window};
    REQUIRE(me.transport.reach().gives(theirs));
    REQUIRE(me.transport.give(1 - me.rank, theirs, 1000, news.data(), page + 5).ok());
    REQUIRE(me.transport.give(1 - me.rank, transport::earlier(theirs, 700), 700 + 2 * page, news.data(), 100).ok());
    REQUIRE(me.transport.give(1 - me.rank, theirs, 0, news.data(), 0).ok());
    REQUIRE(me.transport.give(1 - me.rank, Window{}, 0, news.data(), 0).ok());
    REQUIRE(me.transport.give(1 - me.rank, Window{}, 0, news.data(), 1).code == Code::refused);
    REQUIRE(me.meet());
    std::string expected(bytes, 'o');
    expected.replace(1000, page + 5, page + 5, char('b' - me.rank));
    expected.replace(2 * page, 100, 100, char('b' - me.rank));
    REQUIRE(std::string(buffer.data(), bytes) == expected);
    REQUIRE(me.meet());
    return "";
  });
}

TEST_P(DirectTransport, GivingToMemoryThatIsGoneIsRefused) {
  const size_t page = size_t(sysconf(_SC_PAGESIZE));
  expect_right({2, 512, 3}, [&](Rank& me) -> std::string {
    if (me.transport.maps()) return "";  // writes by plain stores: the caller vouches for the window
    char* pages = static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(pages + page, page, PROT_READ);
    me.mine().window = me.transport.window(pages).base;
    REQUIRE(me.meet());
    const std::vector<char> news(2 * page, 'n');
    const Window theirs = {me.line(1 - me.rank).window};
    REQUIRE(me.transport.give(1 - me.rank, theirs, page, news.data(), 1).code == Code::refused);
    REQUIRE(me.transport.give(1 - me.rank, theirs, page - 1, news.data(), 2).code == Code::refused);
    REQUIRE(me.transport.give(1 - me.rank, theirs, 0, news.data(), page).ok());
    REQUIRE(me.meet());
    REQUIRE(pages[0] == 'n' && pages[page - 1] == 'n' && pages[page] == 0);
    REQUIRE(me.meet());
    munmap(pages, 2 * page);
    return "";
  });
}

// A buffer whose second page is gone: what lies on the first is delivered, whatever touches the second is refused.
TEST_P(DirectTransport, UnmappedMemoryIsRefused) {
  size_t page = size_t(sysconf(_SC_PAGESIZE));
  expect_right({2, 512, 3}, [&](Rank& me) -> std::string {
    if (me.transport.maps()) return "";  // reads by plain loads: the caller vouches for the window
    char* pages = static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    memset(pages, 'a' + me.rank, page);
    mprotect(pages + page, page, PROT_NONE);
    me.mine().window = me.transport.window(pages).base;
    REQUIRE(me.meet());
    std::vector<char> scratch(2 * page);
    const void* data = nullptr;
    auto get = [&](size_t at, size_t bytes) {
      return me.transport.get(1 - me.rank, {me.line(1 - me.rank).window}, {}, at, bytes, scratch.data(), &data);
    };
    REQUIRE(get(page, 1).code == Code::refused);
    REQUIRE(get(page, 1).detail == EFAULT);
    REQUIRE(get(page - 1, 2).code == Code::refused);
    REQUIRE(get(0, 2 * page).code == Code::refused);
    REQUIRE(get(0, page).ok());
    REQUIRE(scratch[0] == 'a' + 1 - me.rank && scratch[page - 1] == scratch[0]);
    REQUIRE(me.meet());
    munmap(pages, 2 * page);
    return "";
  });
}

class TransportOfMortals : public Transport {};
HARMLESS(TransportOfMortals, mortal);

// Rank 1 dies after it has shown its vector: its bytes come right or are refused, and a copier of its memory must refuse.
TEST_P(TransportOfMortals, ADeadPeerIsNoWrongByte) {
  constexpr size_t bytes = 300;
  expect_right({3, 512, 3}, [&](Rank& me) -> std::string {
    const std::vector<char> expected = pattern(1, 1, bytes);
    Buffer buffer(me, pattern(1, me.rank, bytes));
    std::vector<char> scratch(bytes);
    me.mine().window = me.transport.window(buffer.data()).base;
    REQUIRE(me.transport.put({0, 0}, 0, buffer.data(), bytes).ok());
    REQUIRE(me.meet());
    if (me.rank == 1) {
      me.leave();
      _exit(0);
    }
    platform::ProcessId dead;
    dead.pid = me.line(1).pid;
    dead.start = me.line(1).start;
    REQUIRE(me.wait_until([&] { return !platform::process_alive(dead); }));
    const void* data = nullptr;
    Status status = me.transport.get(1, {me.line(1).window}, {0, 0}, 0, bytes, scratch.data(), &data);
    REQUIRE(status.code == Code::refused || (status.ok() && memcmp(data, expected.data(), bytes) == 0));
    bool copies_its_memory = !row().staged && !me.transport.maps();
    REQUIRE(!copies_its_memory || status.code == Code::refused);
    return "";
  });
}

// The fault decorator refuses: exactly so often as asked for, and what it lets through is right.
class FaultyTransport : public WithCase {};
INSTANTIATE_TEST_SUITE_P(Table, FaultyTransport,
                         ::testing::ValuesIn(cases({"refuse=3", "cut=10", "cut=0", "refuse=2,cut=7,delay=1us"}, any)), case_name);

uint64_t expected_refusals(const transport::Faults& faults, uint64_t gets) {
  uint64_t refused = 0, succeeded = 0;
  for (uint64_t i = 1; i <= gets; ++i) {
    bool nth = faults.refuse_every != 0 && i % faults.refuse_every == 0;
    if (nth || succeeded >= faults.cut_after)
      ++refused;
    else
      ++succeeded;
  }
  return refused;
}

TEST_P(FaultyTransport, RefusesAsAskedAndNeverDeliversAWrongByte) {
  transport::Faults faults;
  ASSERT_TRUE(transport::parse_faults(GetParam().faults, &faults).ok());
  expect_right({3, 256, 2}, [&](Rank& me) -> std::string {
    Tally tally;
    for (const Traffic& traffic : random_vectors(10, 4000, 99)) {
      std::string complaint = exchange(me, traffic, &tally);
      if (!complaint.empty()) return complaint;
    }
    REQUIRE(tally.gets > 40);
    REQUIRE(tally.refused == expected_refusals(faults, tally.gets));
    return "";
  });
}

}  // namespace
}  // namespace stretto::conformance
