// Rules for communicators that span nodes, and what the built-in ones choose there.
#include "rules_of.hpp"

namespace stretto::select {
namespace {

using collective::Kind;

TEST(Rules, NodesAreACondition) {
  Rules rules =
      rules_of("allreduce nodes=3.. bytes=..4K leader\nallreduce slices\nallreduce nodes=2 rsa\nallreduce nodes=1.. mpi");
  auto ask = [&](uint64_t bytes, int nodes) {
    Facts facts{Kind::allreduce, bytes, 8, false, Travel::direct};
    facts.nodes = nodes;
    Selection s = choose(rules, facts);
    return std::string(s.algorithm < 0 ? "mpi" : collective::name_of_row(s.algorithm));
  };
  EXPECT_EQ(ask(64, 1), "direct") << "rules without nodes= are for one";
  EXPECT_EQ(ask(64, 2), "rsa");
  EXPECT_EQ(ask(64, 3), "leader");
  EXPECT_EQ(ask(8192, 3), "mpi");
}

TEST(Rules, DefaultsCoverNodes) {
  Rules rules = rules_of(default_rules());
  for (Kind kind : {Kind::barrier, Kind::bcast, Kind::reduce, Kind::allreduce, Kind::scan, Kind::exscan}) {
    Facts facts{kind, 8, 4, false, Travel::by_rules};
    facts.nodes = 2;
    EXPECT_TRUE(collective::spans_nodes(choose(rules, facts).algorithm)) << name(kind);
  }
}

// What must go in the order of ranks, which those of a node do not follow, is chosen apart.
TEST(Rules, ScatteredReductionsHaveRulesOfTheirOwn) {
  Rules rules = rules_of("scan nodes=2.. scattered=yes bytes=1K.. ordered\nscan nodes=2.. leader");
  auto ask = [&](uint64_t bytes, bool scattered) {
    Facts facts{Kind::scan, bytes, 8, false, Travel::by_rules};
    facts.nodes = 2;
    facts.scattered = scattered;
    const int row = choose(rules, facts).algorithm;
    return std::string(row < 0 ? "mpi" : collective::name_of_row(row));
  };
  EXPECT_EQ(ask(4096, false), "leader");
  EXPECT_EQ(ask(4096, true), "ordered");
  EXPECT_EQ(ask(512, true), "mpi");
  for (std::string_view bad : {"scan nodes=2.. scattered=yes leader", "scan scattered=yes staged",
                               "scan nodes=2.. scattered=no leader", "allgather nodes=2.. scattered=yes ordered"}) {
    EXPECT_FALSE(parse_rules(bad.data(), bad.size(), &rules).ok()) << bad;
  }
  rules = rules_of(default_rules());
  for (Kind kind : {Kind::reduce, Kind::allreduce, Kind::reduce_scatter, Kind::reduce_scatter_block, Kind::scan, Kind::exscan}) {
    Facts facts{kind, 4 << 20, 8, false, Travel::by_rules};
    facts.nodes = 2;
    facts.scattered = true;
    EXPECT_STREQ(collective::name_of_row(choose(rules, facts).algorithm), "ordered") << name(kind);
    facts.bytes = 8;
    EXPECT_EQ(choose(rules, facts).algorithm, -1) << name(kind);
  }
}

TEST(Rules, WhereTheNetworkReducesItIsLeftToIt) {
  Rules rules = rules_of("allreduce nodes=2.. offload=yes leader\nallreduce nodes=2.. offload=no rsa");
  Facts facts{Kind::allreduce, 4096, 8, false, Travel::by_rules};
  facts.nodes = 2;
  facts.per_node = 4;
  EXPECT_STREQ(collective::name_of_row(choose(rules, facts).algorithm), "rsa");
  facts.offload = true;
  EXPECT_STREQ(collective::name_of_row(choose(rules, facts).algorithm), "leader");
  rules = rules_of(default_rules());
  for (Kind kind : {Kind::bcast, Kind::reduce, Kind::allreduce})
    for (uint64_t bytes : {8, 1 << 16, 1 << 24}) {
      facts.kind = kind;
      facts.bytes = bytes;
      const std::string row = collective::name_of_row(choose(rules, facts).algorithm);
      EXPECT_EQ(row, bytes < 1 << 20 ? "leader" : "pipelined") << name(kind) << ' ' << bytes;
    }
  for (std::string_view bad : {"allreduce offload=yes flat", "allreduce nodes=2.. offload=maybe rsa"})
    EXPECT_FALSE(parse_rules(bad.data(), bad.size(), &rules).ok()) << bad;
}

// What the built-in rules choose between nodes.
std::string row_over(int nodes, Kind kind, uint64_t bytes, int ranks, Library library = Library::other) {
  Facts facts{kind, bytes, ranks, false, Travel::by_rules};
  facts.nodes = nodes;
  facts.library = library;
  facts.per_node = (ranks + nodes - 1) / nodes;
  const int row = choose(rules_of(default_rules()), facts).algorithm;
  return row < 0 ? "mpi" : collective::name_of_row(row);
}

// Where MPI libraries send each block several times.
TEST(Rules, SmallBlocksOfManyRanksAreCarriedTogether) {
  auto ask = [](uint64_t bytes, int ranks, int nodes) { return row_over(nodes, Kind::alltoall, bytes, ranks); };
  EXPECT_EQ(ask(4096, 16, 4), "leaders");
  EXPECT_EQ(ask(6144, 24, 2), "leaders");
  EXPECT_EQ(ask(8192, 16, 4), "mpi");
  EXPECT_EQ(ask(64, 8, 4), "mpi");
  EXPECT_EQ(ask(64, 16, 8), "mpi");
}

TEST(Rules, OneRankOnEachNodeTakesOverWhatIsLarge) {
  for (Kind kind : {Kind::bcast, Kind::reduce, Kind::allreduce, Kind::allgather, Kind::reduce_scatter_block, Kind::alltoall}) {
    EXPECT_EQ(row_over(4, kind, 8192, 4), "mpi") << name(kind);
    EXPECT_NE(row_over(4, kind, 1 << 20, 4), "mpi") << name(kind);
    EXPECT_NE(row_over(4, kind, 1 << 20, 8), "mpi") << name(kind);
  }
  for (Kind kind : {Kind::barrier, Kind::scan}) {
    EXPECT_EQ(row_over(4, kind, 1 << 20, 4), "mpi") << name(kind);
    EXPECT_NE(row_over(4, kind, 1 << 20, 8), "mpi") << name(kind);
  }
  for (Kind kind : {Kind::gather, Kind::scatter}) {
    EXPECT_EQ(row_over(4, kind, 8192, 4), "mpi") << name(kind);
    EXPECT_EQ(row_over(4, kind, 1 << 17, 4), "leader") << name(kind);
  }
  Rules rules;
  for (std::string_view within : {"allreduce per_node=1 flat\n", "allreduce per_node=2.. flat\n"})
    EXPECT_FALSE(parse_rules(within.data(), within.size(), &rules).ok()) << "within one node it says nothing";
}

// Where MPI libraries ask before they send.
TEST(Rules, LargeBlocksGoInPieces) {
  auto ask = [](uint64_t bytes, int ranks) { return row_over(4, Kind::alltoall, bytes, ranks); };
  EXPECT_EQ(ask(1 << 20, 8), "messages");
  EXPECT_EQ(ask(1 << 18, 8), "mpi");
  EXPECT_EQ(ask(1 << 20, 32), "mpi");
  EXPECT_EQ(ask(1 << 22, 32), "messages");
  EXPECT_EQ(ask(1 << 24, 256), "mpi");
}

TEST(Rules, TellWhetherTheyDependOnTheSize) {
  auto ask = [](const char* text) {
    Facts facts{Kind::gatherv, 0, 8, false, Travel::by_rules};
    facts.nodes = 4;
    return depends_on_size(rules_of(text), facts);
  };
  EXPECT_TRUE(ask("gatherv nodes=2.. bytes=600K..1000K leader")) << "no power of two lies in between";
  EXPECT_TRUE(ask("gatherv nodes=2.. bytes=..100 leader"));
  EXPECT_FALSE(ask("gatherv nodes=2.. leader\ngatherv nodes=2.. bytes=1K.. mpi"));
  EXPECT_FALSE(ask("gatherv nodes=5.. bytes=1K.. leader\ngather nodes=2.. bytes=1K.. leader"));
}

// Where it pays that a node's blocks are together: from three ranks on each; large ones by all rails at once.
TEST(Rules, BlocksForAllRanksLeaveANodeTogether) {
  for (Kind kind : {Kind::allgather, Kind::allgatherv}) {
    EXPECT_EQ(row_over(4, kind, 1024, 16), "leader") << name(kind);
    EXPECT_EQ(row_over(4, kind, 1024, 8), "mpi") << name(kind);
    EXPECT_EQ(row_over(4, kind, 8192, 8), "leaders") << name(kind);
    EXPECT_EQ(row_over(16, kind, 1024, 32), "leader") << name(kind);
  }
  for (Kind kind : {Kind::reduce_scatter, Kind::reduce_scatter_block}) {
    EXPECT_EQ(row_over(4, kind, 4096, 8), "mpi") << name(kind);
    EXPECT_EQ(row_over(4, kind, 8192, 16), "mpi") << name(kind);
    EXPECT_EQ(row_over(4, kind, 8192, 8), "leaders") << name(kind);
  }
}

// By a size that their ranks have agreed on; of small ones nothing is known to be faster.
TEST(Rules, VaryingBlocksAreTakenOverWhereTheyAreLarge) {
  for (Kind kind : {Kind::gatherv, Kind::scatterv, Kind::alltoallv, Kind::alltoallw})
    for (int nodes : {2, 4}) {
      EXPECT_EQ(row_over(nodes, kind, 0, 8, Library::openmpi), "mpi") << name(kind);
      EXPECT_NE(row_over(nodes, kind, 4 << 20, 8, Library::openmpi), "mpi") << name(kind);
    }
  EXPECT_EQ(row_over(4, Kind::gatherv, 4 << 20, 8, Library::mpich), "mpi") << "its own serves whoever is there";
}

// So that a large vector leaves each node once.
TEST(Rules, LargeVectorsGoAlongChainsThatAreNotTooLong) {
  auto ask = [](Kind kind, uint64_t bytes, int nodes) { return row_over(nodes, kind, bytes, 4 * nodes); };
  EXPECT_EQ(ask(Kind::bcast, 1 << 15, 2), "leader");
  EXPECT_EQ(ask(Kind::bcast, 1 << 20, 2), "chain");
  EXPECT_EQ(ask(Kind::bcast, 1 << 21, 2), "comers");
  EXPECT_EQ(ask(Kind::bcast, 1 << 22, 8), "comers");
  EXPECT_EQ(ask(Kind::bcast, 1 << 22, 9), "chain");
  EXPECT_EQ(ask(Kind::bcast, 4096, 4), "leader");
  EXPECT_EQ(ask(Kind::bcast, 1 << 16, 4), "chain");
  EXPECT_EQ(ask(Kind::bcast, 1 << 16, 32), "leader");
  EXPECT_EQ(ask(Kind::bcast, 1 << 18, 32), "chain");
  EXPECT_EQ(ask(Kind::bcast, 1 << 20, 500), "pipelined");
  EXPECT_EQ(ask(Kind::reduce, 1 << 17, 4), "rsa");
  EXPECT_EQ(ask(Kind::reduce, 1 << 18, 4), "chain");
  EXPECT_EQ(ask(Kind::reduce, 1 << 18, 8), "rsa");
  EXPECT_EQ(ask(Kind::reduce, 1 << 20, 4), "chain");
  EXPECT_EQ(ask(Kind::reduce, 1 << 20, 2), "pipelined");
  EXPECT_EQ(ask(Kind::reduce, 1 << 20, 128), "chain");
  EXPECT_EQ(ask(Kind::reduce, 1 << 20, 200), "rsa");
  EXPECT_EQ(ask(Kind::reduce, 1 << 24, 128), "chain");
}

// What sends a message from every node to every node is for few of them, or for what is so small that it is sent whole.
TEST(Rules, OverManyNodesReductionsGoThroughFewMessages) {
  auto ask = [](Kind kind, uint64_t bytes, int nodes) { return row_over(nodes, kind, bytes, 4 * nodes); };
  for (Kind kind : {Kind::allreduce, Kind::reduce}) {
    EXPECT_EQ(ask(kind, 8, 256), "rsa");
    EXPECT_EQ(ask(kind, 4096, 8), "rsa");
    EXPECT_EQ(ask(kind, 2048, 16), "leader");
    EXPECT_EQ(ask(kind, 8192, 16), "rsa");
    EXPECT_EQ(ask(kind, 8192, 64), "leader");
  }
  EXPECT_EQ(ask(Kind::allreduce, 16384, 32), "leader");
  EXPECT_EQ(ask(Kind::allreduce, 1 << 18, 64), "leader");
  EXPECT_EQ(ask(Kind::allreduce, 1 << 14, 8), "streamed") << "by two ranks of each node";
  EXPECT_EQ(row_over(8, Kind::allreduce, 1 << 18, 16), "leaders") << "nodes of two ranks";
  EXPECT_EQ(ask(Kind::allreduce, 1 << 20, 8), "streamed");
  EXPECT_EQ(ask(Kind::allreduce, 1 << 18, 2), "streamed");
  EXPECT_EQ(ask(Kind::allreduce, 1 << 24, 8), "streamed");
  for (uint64_t bytes : {1 << 20, 1 << 24})
    for (int nodes : {16, 32, 512}) EXPECT_EQ(ask(Kind::allreduce, bytes, nodes), "pipelined") << bytes << " over " << nodes;
}

}  // namespace
}  // namespace stretto::select
