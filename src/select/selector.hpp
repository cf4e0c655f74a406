// Selection: a pure function of facts that are equal on all ranks.
#pragma once
#include "collective/algorithms.hpp"
#include "select/reason.hpp"
#include "select/rules.hpp"

namespace stretto::select {

// How large messages may travel (setting STRETTO_TRANSPORT).
enum class Travel : uint8_t { by_rules, staged, direct };

struct Facts {
  collective::Kind kind;
  uint64_t bytes;  // of the vector
  int ranks;
  bool crowded;  // ranks outnumber the CPUs allowed to them
  Travel travel;
  bool arena = false;  // every rank of the node has mapped the arenas of all
  int domains = 1;     // over which its ranks are spread
  int nodes = 1;       // that the communicator spans
  int per_node = 0;    // ranks on the node that has most of them, where it spans several
  // Of a reduction that must go in the order of ranks, over nodes whose ranks do not follow one another.
  bool scattered = false;
  bool offload = false;  // MPI's collectives between nodes are done by the network, or a library that knows it
  Library library = Library::other;
  Cpu cpu = Cpu::other;
  bool fresh = false;  // of the communicator's first calls: only what rules say of those
};

// algorithm >= 0: row of collective/hierarchy/rows.hpp. Else declined with `reason`.
struct Selection {
  int algorithm = -1;
  Reason reason = Reason::none;
  int rule = -1;      // the row of the rules that decided; -1: none holds
  int unmapped = -1;  // chosen because there are arenas: what runs where no buffer lies in one. -1: the algorithm itself
};

// The row that runs a collective inside a node whatever its size, for phases that must not be left to MPI.
int any_size_algorithm(collective::Kind kind);

Selection choose(const Rules& rules, const Facts& facts);

// Whether that depends on facts.bytes.
bool depends_on_size(const Rules& rules, Facts facts);

// The first rule that choose() passes over because its algorithm does not do so many bytes. -1: there is none.
int beyond_reach(const Rules& rules, const Facts& facts);

}  // namespace stretto::select
