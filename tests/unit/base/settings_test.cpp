#include "base/settings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

namespace stretto {
namespace {

// As an environment lives as long as its process, so do these entries: settings point into them.
Status read(const std::vector<std::string>& entries, Settings* settings, std::string* offender = nullptr) {
  static std::deque<std::string> kept;
  std::vector<char*> environment;
  for (const auto& entry : entries) environment.push_back(kept.emplace_back(entry).data());
  environment.push_back(nullptr);
  const char* name = nullptr;
  Status status = read_settings(environment.data(), settings, &name);
  if (offender && name) *offender = name;
  return status;
}

TEST(Settings, DefaultsAreThoseOfTheTable) {
  Settings fresh, parsed;
  ASSERT_TRUE(read({"PATH=/bin", "NOT_STRETTO_X=1"}, &parsed).ok());
  EXPECT_EQ(fresh.accelerate, parsed.accelerate);
  EXPECT_STREQ(fresh.transport, parsed.transport);
  EXPECT_STREQ(fresh.wait, parsed.wait);
  EXPECT_STREQ(fresh.isa, parsed.isa);
  EXPECT_STREQ(fresh.log, parsed.log);
  EXPECT_EQ(fresh.memory_mib, parsed.memory_mib);
  EXPECT_EQ(fresh.join_timeout_ms, parsed.join_timeout_ms);
  EXPECT_STREQ(fresh.profile, parsed.profile);
  EXPECT_EQ(fresh.trace_mib, parsed.trace_mib);
  EXPECT_EQ(fresh.iterations.first, parsed.iterations.first);
  EXPECT_EQ(fresh.iterations.last, parsed.iterations.last);
  EXPECT_EQ(fresh.iteration_calls, parsed.iteration_calls);
}

TEST(Settings, EveryRowIsAcceptedWithItsDefault) {
  int count;
  const SettingRow* rows = settings_table(&count);
  for (int i = 0; i < count; ++i) {
    Settings settings;
    EXPECT_TRUE(read({std::string(rows[i].name) + "=" + rows[i].fallback}, &settings).ok()) << rows[i].name;
  }
}

TEST(Settings, ValuesReachTheirFields) {
  Settings s;
  ASSERT_TRUE(
      read({"STRETTO_ACCELERATE=off", "STRETTO_JOB=j1", "STRETTO_RECORD_DIR=/r", "STRETTO_RULES=/f", "STRETTO_TRANSPORT=cma",
            "STRETTO_WAIT=futex", "STRETTO_ISA=baseline", "STRETTO_FAULT=cut=1", "STRETTO_LOG=debug", "STRETTO_MEMORY_MIB=12",
            "STRETTO_JOIN_TIMEOUT_MS=7", "STRETTO_PROFILE=full", "STRETTO_TRACE_MIB=9", "STRETTO_ITERATIONS=3:14",
            "STRETTO_ITERATION_CALLS=5", "STRETTO_NCCL_NEXT_PLUGIN=inspector"},
           &s)
          .ok());
  EXPECT_FALSE(s.accelerate);
  EXPECT_STREQ(s.job, "j1");
  EXPECT_STREQ(s.record_dir, "/r");
  EXPECT_STREQ(s.rules, "/f");
  EXPECT_STREQ(s.transport, "cma");
  EXPECT_STREQ(s.wait, "futex");
  EXPECT_STREQ(s.isa, "baseline");
  EXPECT_STREQ(s.fault, "cut=1");
  EXPECT_STREQ(s.log, "debug");
  EXPECT_EQ(s.memory_mib, 12u);
  EXPECT_EQ(s.join_timeout_ms, 7u);
  EXPECT_STREQ(s.profile, "full");
  EXPECT_EQ(s.trace_mib, 9u);
  EXPECT_EQ(s.iterations.first, 3u);
  EXPECT_EQ(s.iterations.last, 14u);
  EXPECT_EQ(s.iteration_calls, 5u);
  EXPECT_STREQ(s.nccl_next_plugin, "inspector");
}

TEST(Settings, WhatIsWrongIsNamed) {
  Settings s;
  for (std::string bad : {"STRETTO_ACELERATE=off", "STRETTO_ACCELERATE=maybe", "STRETTO_WAIT=", "STRETTO_TRANSPORT=cma|shm",
                          "STRETTO_MEMORY_MIB=-1", "STRETTO_MEMORY_MIB=9x", "STRETTO_MEMORY_MIB=", "STRETTO_=1",
                          "STRETTO_PROFILE=some", "STRETTO_ITERATIONS=5", "STRETTO_ITERATIONS=5:4", "STRETTO_ITERATIONS=:4",
                          "STRETTO_ITERATIONS=1:", "STRETTO_ITERATIONS=-1:2", "STRETTO_ITERATIONS=1:2:3",
                          "STRETTO_ITERATIONS=000000000000000000000001:2"}) {
    std::string offender;
    EXPECT_EQ(read({"A=1", bad}, &s, &offender).code, Code::invalid) << bad;
    EXPECT_EQ(offender, bad);
  }
}

TEST(Settings, FingerprintCoversCommonDecisionsOnly) {
  Settings a, b;
  ASSERT_TRUE(read({"STRETTO_LOG=debug", "STRETTO_RECORD_DIR=/x", "STRETTO_PROFILE=full", "STRETTO_ITERATIONS=1:2"}, &a).ok());
  ASSERT_TRUE(read({}, &b).ok());
  EXPECT_EQ(fingerprint(a), fingerprint(b));
  ASSERT_TRUE(read({"STRETTO_TRANSPORT=cma"}, &a).ok());
  EXPECT_NE(fingerprint(a), fingerprint(b));
  ASSERT_TRUE(read({"STRETTO_MEMORY_MIB=1"}, &a).ok());
  EXPECT_NE(fingerprint(a), fingerprint(b));
  ASSERT_TRUE(read({"STRETTO_ARENA=on"}, &a).ok());
  EXPECT_TRUE(a.arena);
  EXPECT_NE(fingerprint(a), fingerprint(b));
  ASSERT_TRUE(read({"STRETTO_OFFLOAD=on"}, &a).ok());  // the nodes agree on it where they meet
  EXPECT_STREQ(a.offload, "on");
  EXPECT_EQ(fingerprint(a), fingerprint(b));
  for (const char* common : {"STRETTO_DOMAIN=socket", "STRETTO_ORDER=domains", "STRETTO_READERS=7"}) {
    ASSERT_TRUE(read({common}, &a).ok());
    EXPECT_NE(fingerprint(a), fingerprint(b)) << common;
  }
}

TEST(Settings, TextHasALinePerRow) {
  int count;
  settings_table(&count);
  std::string text = settings_text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), count);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\t'), 3 * count);
}

}  // namespace
}  // namespace stretto
