#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <tuple>

#include "rules_of.hpp"
#include "select/reason.hpp"
#include "select/selector.hpp"

namespace stretto::select {
namespace {

using collective::Kind;

TEST(Rules, FirstThatHoldsIsTaken) {
  Rules rules = rules_of(
      "# comment\n\n"
      "allreduce bytes=0..100 flat   # trailing comment\r\n"
      "\tallreduce bytes=..16K ranks=2..3 gather\n"
      "allreduce crowded=yes bytes=1M..  mpi\n"
      "allreduce slices\n"
      "bcast bytes=64 flat");
  EXPECT_EQ(rules.count, 5);
  EXPECT_EQ(chosen(rules, {Kind::allreduce, 100, 8, false, Travel::by_rules}), "flat");
  EXPECT_EQ(chosen(rules, {Kind::allreduce, 16384, 3, false, Travel::by_rules}), "gather");
  EXPECT_EQ(chosen(rules, {Kind::allreduce, 16385, 3, false, Travel::by_rules}), "slices");
  EXPECT_EQ(chosen(rules, {Kind::allreduce, 101, 4, false, Travel::by_rules}), "slices");
  EXPECT_EQ(chosen(rules, {Kind::allreduce, 1 << 20, 4, true, Travel::by_rules}), "mpi");
  EXPECT_EQ(chosen(rules, {Kind::allreduce, 1 << 20, 4, false, Travel::by_rules}), "slices");
  EXPECT_EQ(chosen(rules, {Kind::bcast, 64, 4, false, Travel::by_rules}), "flat");
  EXPECT_EQ(chosen(rules, {Kind::bcast, 65, 4, false, Travel::by_rules}), "mpi");
  EXPECT_EQ(choose(rules, {Kind::bcast, 65, 4, false, Travel::by_rules}).reason, Reason::mpi_preferred);
}

TEST(Rules, MayHoldUnderOneLibraryOnly) {
  Rules rules = rules_of("gatherv library=mpich staged\nallreduce library=other flat\nallreduce library=intelmpi gather\n");
  Facts gatherv{Kind::gatherv, 0, 4, false, Travel::by_rules}, allreduce{Kind::allreduce, 8, 4, false, Travel::by_rules};
  for (const auto& [library, first, second] : {std::tuple{Library::openmpi, "mpi", "mpi"},
                                               {Library::mpich, "staged", "mpi"},
                                               {Library::intelmpi, "mpi", "gather"},
                                               {Library::other, "mpi", "flat"}}) {
    gatherv.library = allreduce.library = library;
    EXPECT_EQ(chosen(rules, gatherv), first);
    EXPECT_EQ(chosen(rules, allreduce), second);
  }
}

TEST(Rules, MayHoldOnOneMakersCpusOnly) {
  Rules rules = rules_of("reduce cpu=amd pair\nreduce cpu=intel gather\nreduce cpu=other slices\n");
  Facts facts{Kind::reduce, 1 << 20, 2, false, Travel::by_rules};
  for (const auto& [cpu, algorithm] : {std::pair{Cpu::amd, "pair"}, {Cpu::intel, "gather"}, {Cpu::other, "slices"}}) {
    facts.cpu = cpu;
    EXPECT_EQ(chosen(rules, facts), algorithm);
  }
}

TEST(Rules, LibrariesAreToldByWhatTheySayOfThemselves) {
  EXPECT_EQ(library_of("Open MPI v5.0.11, package: Open MPI"), Library::openmpi);
  EXPECT_EQ(library_of("MPICH Version:      5.0.2\n"), Library::mpich);
  EXPECT_EQ(library_of("Intel(R) MPI Library 2021.19 for Linux* OS\n"), Library::intelmpi);
  EXPECT_EQ(library_of("MVAPICH Version:      4.0\n"), Library::other);
  EXPECT_EQ(library_of(nullptr), Library::other);
}

TEST(Rules, RuleBeyondItsAlgorithmsReachIsPassedOver) {
  Rules rules = rules_of("allreduce flat\nallreduce slices\n");
  EXPECT_EQ(chosen(rules, {Kind::allreduce, 1072, 4, false, Travel::by_rules}), "flat");
  EXPECT_EQ(chosen(rules, {Kind::allreduce, 1073, 4, false, Travel::by_rules}), "slices");
}

TEST(Rules, TravelOverridesHowLargeMessagesMove) {
  Rules rules = rules_of(default_rules());
  for (Kind kind : {Kind::bcast, Kind::reduce, Kind::allreduce}) {
    EXPECT_EQ(chosen(rules, {kind, 1 << 20, 4, false, Travel::direct}), "direct");
    EXPECT_EQ(chosen(rules, {kind, 8, 4, false, Travel::direct}), "flat");
  }
  for (int k = int(Kind::bcast); k < collective::kind_count; ++k) {
    const bool slices = Kind(k) == Kind::reduce || Kind(k) == Kind::allreduce;
    const Rules direct = rules_of(std::string(collective::name(Kind(k))) + " direct");
    EXPECT_EQ(chosen(direct, {Kind(k), 1 << 20, 4, false, Travel::staged}), slices ? "slices" : "staged")
        << collective::name(Kind(k));
  }
  EXPECT_EQ(chosen(rules_of("gather handover"), {Kind::gather, 1 << 20, 4, false, Travel::direct}), "direct");  // no trials
}

// What the built-in rules decide is stated here, so that a change of them is a decision.
TEST(Rules, DefaultsCoverEverything) {
  Rules rules = rules_of(default_rules());
  for (int k = 0; k < collective::kind_count; ++k)
    for (uint64_t bytes = 0; bytes <= (uint64_t(1) << 40); bytes = bytes * 2 + 1)
      for (int ranks : {2, 3, 8, 128}) {
        if (Kind(k) == Kind::gatherv || Kind(k) == Kind::scatterv)
          continue;                                           // whose sizes the rules do not know: mostly MPI is better
        for (bool crowded : {false, k <= int(Kind::gather)})  // with more ranks than cores MPI is better at some of the others
          EXPECT_NE(chosen(rules, {Kind(k), bytes, ranks, crowded, Travel::by_rules}), "mpi");
      }
}

TEST(Rules, DefaultsOfAllreduceBySize) {
  Rules rules = rules_of(default_rules());
  const struct {
    int ranks;
    uint64_t bytes;
    const char* name;
  } expected[] = {
      {2, 8, "flat"},           {2, 1072, "flat"},        {2, 2 << 10, "pair"},     {2, 128 << 10, "pair"},
      {2, 1 << 20, "adaptive"}, {4, 1072, "flat"},        {4, 2 << 10, "gather"},   {4, 4 << 10, "gather"},
      {4, 8 << 10, "slices"},   {4, 64 << 10, "slices"},  {4, 1 << 20, "adaptive"}, {16, 512, "flat"},
      {16, 1 << 10, "slices"},  {16, 16 << 10, "slices"}, {16, 1 << 20, "slices"},
  };
  for (const auto& [ranks, bytes, name] : expected)
    EXPECT_EQ(chosen(rules, {Kind::allreduce, bytes, ranks, false, Travel::by_rules}), name) << ranks << " ranks, " << bytes;
}

// On Intel's CPUs, with more ranks than cores, MPI libraries but MPICH were better at these, and so left alone.
TEST(Rules, DefaultsLeaveToMpiWhatItDoesBetterOnIntel) {
  Rules rules = rules_of(default_rules());
  const auto ask = [&](Kind kind, uint64_t bytes, int ranks, Library library, Cpu cpu) {
    Facts facts{kind, bytes, ranks, true, Travel::by_rules};
    facts.library = library;
    facts.cpu = cpu;
    return chosen(rules, facts);
  };
  for (Library library : {Library::openmpi, Library::intelmpi, Library::other}) {
    EXPECT_EQ(ask(Kind::scatter, 600 << 10, 4, library, Cpu::intel), "mpi");
    EXPECT_EQ(ask(Kind::scatter, 1 << 20, 4, library, Cpu::intel), "adaptive");
    EXPECT_EQ(ask(Kind::allgather, 1 << 20, 4, library, Cpu::intel), "mpi");
    EXPECT_EQ(ask(Kind::allgatherv, 1 << 20, 4, library, Cpu::intel), "mpi");
    EXPECT_EQ(ask(Kind::alltoall, 1 << 20, 4, library, Cpu::intel), "mpi");
    EXPECT_EQ(ask(Kind::alltoall, 1 << 20, 8, library, Cpu::intel), "adaptive");
  }
  for (Kind kind : {Kind::scatter, Kind::allgather, Kind::allgatherv, Kind::alltoall}) {
    EXPECT_EQ(ask(kind, 600 << 10, 4, Library::mpich, Cpu::intel), "adaptive");
    EXPECT_EQ(ask(kind, 600 << 10, 4, Library::openmpi, Cpu::amd), "adaptive");
  }
}

// A collective that has but one form keeps it.
TEST(Rules, TravelNeedsAForm) {
  Rules rules = rules_of(default_rules());
  EXPECT_EQ(chosen(rules_of("barrier ticket"), {Kind::barrier, 0, 4, false, Travel::direct}), "ticket");
  EXPECT_EQ(chosen(rules, {Kind::scan, 1 << 20, 4, false, Travel::direct}), "direct");
  EXPECT_EQ(chosen(rules, {Kind::alltoallv, 0, 4, false, Travel::direct}), "direct");
  EXPECT_EQ(chosen(rules, {Kind::alltoallw, 0, 4, false, Travel::by_rules}), "staged");
}

TEST(Rules, ArenasAreACondition) {
  Rules rules = rules_of("allreduce arena=yes bytes=64K.. direct\nallreduce arena=no gather\nallreduce slices");
  auto ask = [&](uint64_t bytes, bool arena, Travel travel = Travel::by_rules) {
    return choose(rules, {Kind::allreduce, bytes, 4, false, travel, arena});
  };
  EXPECT_STREQ(collective::algorithms[ask(1 << 20, true).algorithm].name, "direct");
  EXPECT_STREQ(collective::algorithms[ask(1 << 20, true).unmapped].name, "gather") << "where no buffer lies in an arena";
  EXPECT_STREQ(collective::algorithms[ask(1 << 20, false).algorithm].name, "gather");
  EXPECT_STREQ(collective::algorithms[ask(1 << 10, true).algorithm].name, "slices");
  EXPECT_LT(ask(1 << 10, true).unmapped, 0);
  EXPECT_LT(ask(1 << 20, true, Travel::direct).unmapped, 0) << "asked for, also where it only copies";
  EXPECT_STREQ(collective::algorithms[ask(1 << 20, true, Travel::staged).algorithm].name, "slices");
}

TEST(Rules, FirstCallsGoByRulesOfTheirOwn) {
  Rules rules =
      rules_of("allreduce slices\nallreduce bytes=4K.. arena=yes fresh=yes direct\nallreduce bytes=8K.. fresh=yes gather");
  Facts facts{Kind::allreduce, 8192, 4, false, Travel::by_rules};
  EXPECT_EQ(chosen(rules, facts), "slices");
  facts.fresh = true;
  EXPECT_EQ(chosen(rules, facts), "gather");
  facts.bytes = 4096;
  EXPECT_EQ(choose(rules, facts).rule, -1) << "then by the others";
  facts.arena = true;
  EXPECT_EQ(chosen(rules, facts), "direct");
  facts.bytes = 8192;
  EXPECT_STREQ(collective::algorithms[choose(rules, facts).unmapped].name, "gather") << "where no buffer lies in an arena";
}

// What would be timed goes one way at first, with arenas too. (Short messages those rows do not time. Bytes 0: not known.)
TEST(Rules, DefaultsNeverTrySeveralWaysInFirstCalls) {
  Rules rules = rules_of(default_rules());
  const auto tries = [](int row) { return row >= 0 && collective::algorithms[row].direct == collective::Direct::by_trial; };
  int tried = 0;
  const auto ask = [&](Facts facts) {
    const Selection later = choose(rules, facts);
    facts.fresh = true;
    const Selection first = choose(rules, facts), now = first.algorithm < 0 ? later : first;
    tried += tries(later.algorithm) && !tries(now.algorithm);
    const std::string what =
        std::string(name(facts.kind)) + " " + std::to_string(facts.bytes) + " of " + std::to_string(facts.ranks);
    EXPECT_FALSE(tries(now.algorithm)) << what;
    EXPECT_FALSE(tries(first.unmapped)) << what;
  };
  for (int k = 0; k < collective::kind_count; ++k) {
    if (Kind(k) == Kind::exscan) continue;  // nothing else of two ranks copies
    for (uint64_t bytes : {0u, 128u << 10, 512u << 10, 16u << 20})
      for (int ranks : {2, 3, 8})
        for (bool crowded : {false, true})
          for (bool arena : {false, true}) ask({Kind(k), bytes, ranks, crowded, Travel::by_rules, arena});
  }
  EXPECT_GT(tried, 50);
}

TEST(Rules, DomainsAreACondition) {
  Rules rules = rules_of("allreduce domains=2..4 domains\nallreduce domains=5.. mpi\nallreduce slices");
  auto ask = [&](int domains) { return chosen(rules, {Kind::allreduce, 4096, 8, false, Travel::by_rules, false, domains}); };
  EXPECT_EQ(ask(1), "slices");
  EXPECT_EQ(ask(2), "domains");
  EXPECT_EQ(ask(4), "domains");
  EXPECT_EQ(ask(5), "mpi");
}

TEST(Rules, DefaultsGoByDomainsOnlyWhereThereAreSeveral) {
  Rules rules = rules_of(default_rules());
  for (int k = 0; k < collective::kind_count; ++k)
    for (uint64_t bytes = 0; bytes <= (uint64_t(1) << 30); bytes = bytes * 2 + 1)
      for (bool arena : {false, true}) {
        std::string one = chosen(rules, {Kind(k), bytes, 64, false, Travel::by_rules, arena, 1});
        EXPECT_TRUE(one != "levels" && one != "domains" && (one != "tree" || Kind(k) != Kind::bcast)) << bytes;
      }
  Facts several{Kind::allreduce, 8, 64, false, Travel::by_rules, false, 2};
  EXPECT_EQ(chosen(rules, several), "levels");
  several.bytes = 1 << 20;
  EXPECT_EQ(chosen(rules, several), "domains");
  several.kind = Kind::bcast;
  EXPECT_EQ(chosen(rules, several), "domains");
  several.arena = true;
  EXPECT_EQ(chosen(rules, several), "tree");
  several.travel = Travel::direct;
  EXPECT_EQ(chosen(rules, several), "tree");
}

TEST(Rules, PhasesInsideANodeAlwaysHaveAnAlgorithm) {
  for (Kind kind : {Kind::barrier, Kind::bcast, Kind::reduce, Kind::allreduce, Kind::scan, Kind::exscan}) {
    const collective::Algorithm& any = collective::algorithms[any_size_algorithm(kind)];
    EXPECT_EQ(any.kind, kind);
    EXPECT_EQ(any.max_bytes, collective::any_size);
  }
}

struct Bad {
  const char* text;
  int line;
};
class BadRules : public ::testing::TestWithParam<Bad> {};
TEST_P(BadRules, AreRefusedWithTheLine) {
  Rules rules;
  Status status = parse_rules(GetParam().text, std::strlen(GetParam().text), &rules);
  EXPECT_EQ(status.code, Code::invalid);
  EXPECT_EQ(status.detail, GetParam().line) << GetParam().text;
}
INSTANTIATE_TEST_SUITE_P(All, BadRules,
                         ::testing::Values(Bad{"", 0}, Bad{"# nothing\n", 0}, Bad{"allreduce\n", 1},
                                           Bad{"allreduce flat\nallsum flat\n", 2}, Bad{"allreduce bytes=4..2 flat", 1},
                                           Bad{"allreduce bytes=4Q flat", 1}, Bad{"allreduce bytes=.. slises", 1},
                                           Bad{"barrier slices", 1}, Bad{"allreduce crowded=maybe flat", 1},
                                           Bad{"allreduce arena=1 flat", 1}, Bad{"allreduce library=lam flat", 1},
                                           Bad{"allreduce cpu=z80 flat", 1}, Bad{"allreduce cpu=amd nodes=2.. leader", 1},
                                           Bad{"allreduce library= flat", 1}, Bad{"allreduce domains=2..1 flat", 1},
                                           Bad{"allreduce domains=many flat", 1}, Bad{"allreduce nodes=2.. slices", 1},
                                           Bad{"allreduce rsa", 1}, Bad{"allreduce fresh=no flat", 1},
                                           Bad{"allreduce fresh=yes mpi", 1}, Bad{"allreduce nodes=2.. fresh=yes leader", 1},
                                           Bad{"allreduce nodes=1.. rsa", 1}, Bad{"allreduce size=4 flat", 1},
                                           Bad{"allreduce bytes=99999999999999999999 flat", 1}));

std::string problem_of(const std::string& text) {
  Rules rules;
  return parse_rules(text.data(), text.size(), &rules).what;
}

TEST(Rules, WhatIsWrongIsSaidOfTheWord) {
  EXPECT_EQ(problem_of("allsum flat"), "not a rule: allsum is no collective");
  EXPECT_EQ(problem_of("allreduce  # flat"), "not a rule: allreduce needs an algorithm, or mpi");
  EXPECT_EQ(problem_of("allreduce ranks=2 bytes=4Q flat").find("not a rule: bytes=4Q should be FROM..TO"), 0u);
  EXPECT_EQ(problem_of("allreduce size=4 flat").find("not a rule: size=4 is no condition (bytes, "), 0u);
  EXPECT_EQ(problem_of("allreduce crowded=maybe flat"), "not a rule: crowded=maybe should be yes or no behind its =");
  EXPECT_EQ(problem_of("allreduce library=lam flat").find("not a rule: library=lam should be openmpi, "), 0u);
  EXPECT_EQ(problem_of("allreduce bytes=.. slises"), "not a rule: slises is no algorithm for that within a node");
  EXPECT_EQ(problem_of("allreduce nodes=2.. slices"), "not a rule: slices is no algorithm for that between nodes");
  EXPECT_EQ(problem_of("allreduce nodes=1.. rsa").find("not a rule: rsa cannot be for one node and for several"), 0u);
  EXPECT_EQ(problem_of("allreduce fresh=yes mpi"), "not a rule: mpi does not go with fresh=yes");
  EXPECT_EQ(problem_of("allreduce cpu=amd nodes=2.. leader"), "not a rule: cpu= or fresh= is for one node only");
  EXPECT_EQ(problem_of("allreduce per_node=2 flat").find("not a rule: per_node= is for several nodes only"), 0u);
  EXPECT_EQ(problem_of("a\x01\xff" + std::string(200, 'b')), "not a rule: a??" + std::string(29, 'b') + " is no collective");
}

TEST(Rules, ThoseBeyondTheirAlgorithmAreFound) {
  Rules rules = rules_of("bcast flat\nallreduce mpi\nreduce slices\nreduce flat");
  Facts facts{Kind::bcast, 64 << 10, 4, false, Travel::by_rules};
  EXPECT_EQ(beyond_reach(rules, facts), 0);
  facts.bytes = 8;
  EXPECT_EQ(beyond_reach(rules, facts), -1);
  facts = {Kind::allreduce, 64 << 10, 4, false, Travel::by_rules};
  EXPECT_EQ(beyond_reach(rules, facts), -1);
  facts.kind = Kind::reduce;
  EXPECT_EQ(beyond_reach(rules, facts), 3);
}

TEST(Rules, TooManyAreRefused) {
  std::string text;
  for (int i = 0; i <= Rules::capacity; ++i) text += "barrier flat\n";
  Rules rules;
  EXPECT_EQ(parse_rules(text.data(), text.size(), &rules).code, Code::invalid);
}

TEST(Rules, RandomTextNeverDoesWorseThanRefuse) {
  std::mt19937 random(7);
  const std::string alphabet = "alreducbstp flatmpi=.0123KMG#\n\t\r\xff";
  for (int i = 0; i < 3000; ++i) {
    std::string text(random() % 200, ' ');
    for (char& c : text) c = alphabet[random() % alphabet.size()];
    Rules rules;
    Status status = parse_rules(text.data(), text.size(), &rules);
    EXPECT_EQ(status.ok(), rules.count > 0 && status.code == Code::ok);
    EXPECT_LE(rules.count, Rules::capacity);
  }
}

TEST(Rules, FilesAreReadOrRefusedWithReason) {
  Rules rules;
  EXPECT_EQ(load_rules("/nonexistent/rules", &rules).code, Code::refused);
  EXPECT_FALSE(load_rules("/", &rules).ok());
  std::string path = ::testing::TempDir() + "stretto_rules_test";
  std::ofstream(path) << "barrier flat\n";
  EXPECT_TRUE(load_rules(path.c_str(), &rules).ok());
  EXPECT_EQ(rules.count, 1);
  std::ofstream(path) << std::string(2 << 20, '\n');
  EXPECT_EQ(load_rules(path.c_str(), &rules).code, Code::invalid);
  std::remove(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_STREQ(load_rules(path.c_str(), &rules).what, "not a regular file");
  std::remove(path.c_str());
}

TEST(Rules, FingerprintTellsTextsApart) {
  EXPECT_NE(rules_of("barrier flat").fingerprint, rules_of("barrier mpi").fingerprint);
  EXPECT_EQ(rules_of("barrier flat").fingerprint, rules_of("barrier flat").fingerprint);
}

TEST(Reasons, AllHaveNames) {
  for (const char* name : reason_names) EXPECT_GT(std::strlen(name), 0u);
}

}  // namespace
}  // namespace stretto::select
