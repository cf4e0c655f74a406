#include "transport/fault/fault.hpp"

#include <errno.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "transport/local/local.hpp"

namespace stretto::transport {
namespace {

TEST(ParseFaults, AnySubsetInAnyOrder) {
  Faults faults;
  ASSERT_TRUE(parse_faults("delay=20us,refuse=3,cut=100", &faults).ok());
  EXPECT_EQ(faults.delay_ns, 20'000u);
  EXPECT_EQ(faults.refuse_every, 3u);
  EXPECT_EQ(faults.cut_after, 100u);
  ASSERT_TRUE(parse_faults("cut=0,delay=7ms", &faults).ok());
  EXPECT_EQ(faults.delay_ns, 7'000'000u);
  EXPECT_EQ(faults.refuse_every, 0u);
  EXPECT_EQ(faults.cut_after, 0u);
  ASSERT_TRUE(parse_faults("delay=15ns", &faults).ok());
  EXPECT_EQ(faults.delay_ns, 15u);
  EXPECT_EQ(faults.cut_after, UINT64_MAX);
  ASSERT_TRUE(parse_faults("", &faults).ok());
  EXPECT_EQ(faults.delay_ns, 0u);
}

TEST(ParseFaults, NonsenseIsInvalidAndChangesNothing) {
  for (const char* text : {"delay", "delay=", "delay=20", "delay=20s", "delay=-1us", "refuse=x", "refuse=3,", ",",
                           "refuse=3,,cut=1", "refuse=4294967296", "cut=1e3", "cut=18446744073709551616", "drop=1",
                           "delay=99999999999999999ms", "refuse=3 ", " refuse=3", "=3"}) {
    Faults faults;
    faults.refuse_every = 77;
    EXPECT_EQ(parse_faults(text, &faults).code, Code::invalid) << text;
    EXPECT_EQ(faults.refuse_every, 77u) << text;
  }
}

// Twelve gets of a local buffer through the decorator: 'y' where one succeeded with the right bytes, 'n' where refused.
std::string outcome(const Faults& faults) {
  auto transport = make_fault(make_local(), faults);
  std::vector<char> buffer(100, 'b'), scratch(100, 's');
  Window window = transport->window(buffer.data());
  std::string result;
  for (int i = 0; i < 12; ++i) {
    const void* data = nullptr;
    Status status = transport->get(0, window, {}, 0, buffer.size(), scratch.data(), &data);
    bool right = status.ok() && data == buffer.data();
    bool refused = status.code == Code::refused && status.detail == EIO && data == scratch.data() && scratch[0] != 'b';
    result += right ? 'y' : refused ? 'n' : '?';
  }
  return result;
}

TEST(Fault, RefusesEveryNth) {
  Faults faults;
  faults.refuse_every = 3;
  EXPECT_EQ(outcome(faults), "yynyynyynyyn");
  faults.refuse_every = 1;
  EXPECT_EQ(outcome(faults), "nnnnnnnnnnnn");
}

TEST(Fault, CutsAfterSoManySuccesses) {
  Faults faults;
  faults.cut_after = 5;
  EXPECT_EQ(outcome(faults), "yyyyynnnnnnn");
  faults.refuse_every = 2;
  EXPECT_EQ(outcome(faults), "ynynynynynnn");
}

TEST(Fault, DelaysGetAndPut) {
  Faults faults;
  faults.delay_ns = 2'000'000;
  auto transport = make_fault(make_local(), faults);
  char buffer[8] = {};
  const void* data = nullptr;
  uint64_t begin = now_ns();
  EXPECT_TRUE(transport->put({}, 0, buffer, sizeof buffer).ok());
  EXPECT_TRUE(transport->get(0, transport->window(buffer), {}, 0, sizeof buffer, buffer, &data).ok());
  EXPECT_GE(now_ns() - begin, 2 * faults.delay_ns);
}

TEST(Fault, NothingToWrapIsNothing) {
  EXPECT_EQ(make_fault(nullptr, {}), nullptr);
}

}  // namespace
}  // namespace stretto::transport
