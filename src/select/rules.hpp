// Which algorithm runs when: rules as data.
//
// A rules file has one rule a line; the first whose conditions hold is taken, and where none holds MPI does it:
//
//     # collective  condition...                 algorithm
//     allreduce     bytes=0..1072                flat
//     allreduce     bytes=..16K ranks=2..3       gather
//     allreduce     crowded=no bytes=64M..       mpi
//     allreduce     nodes=2.. bytes=64K..        leaders
//
// collective: a name from collective/request.hpp. bytes: of the vector or message that a rank gives; of scatter, alltoall,
// reduce_scatter and reduce_scatter_block the blocks for all ranks together, of allgatherv the largest block, of gatherv,
// scatterv, alltoallv and alltoallw 0, as ranks do not know each other's; between nodes, in blocking calls, what the ranks have
// agreed that those of gather, scatter and alltoall have been lately (engine/varying_size.hpp). bytes, ranks: FROM..TO, both
// inclusive, either may be absent, K M G are powers of 1024. crowded: yes or no, whether ranks outnumber the CPUs allowed to
// them. arena: yes or no, whether all ranks have arenas (STRETTO_ARENA=on); a call chosen by arena=yes of which no buffer lies in
// one goes as by arena=no. fresh: yes, for a communicator's first calls: while it is fresh, blocking calls for which the other
// rules choose an algorithm that works through cells go as the first such rule says, if one holds; it names no mpi. library:
// openmpi, mpich, intelmpi or other, what the job's MPI is (mpich: as its own project makes it). cpu: amd, intel or other, who
// made the CPU; only of rules for one node, as nodes may differ. domains: FROM..TO, over how many domains (docs/topology.md) the
// ranks are spread. nodes: FROM..TO, how many nodes the communicator spans; a rule without it is for one. per_node: FROM..TO,
// ranks on the node that has most of them; offload: yes or no, whether the network, or a library that knows it, does MPI's
// collectives between nodes (STRETTO_OFFLOAD); scattered: yes, for reductions that must go in the order of ranks where the ranks
// of a node do not follow one another (all Scan and Exscan there, and operations that do not commute), which other rules do not
// hold for, and only the algorithm `ordered` can do: all three only of rules for several nodes. algorithm: mpi, or a name from
// collective/algorithms.hpp, or, for nodes=2.., from collective/hierarchy/rows.hpp.
//
// A line `tuned build=... machine=... mpi=...` before the first rule says what they were measured with (select/tuned.hpp).
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"
#include "base/status.hpp"
#include "collective/hierarchy/rows.hpp"

namespace stretto::select {

// What MPI a job has, as far as rules tell libraries apart.
enum class Library : uint8_t { other, openmpi, mpich, intelmpi };

// `version`: the first words of MPI_Get_library_version; null: no MPI is known.
Library library_of(const char* version);
// False: there is no such name.
bool library_named(const char* name, size_t length, Library* library);

bool cpu_named(const char* name, size_t length, Cpu* cpu);

struct Interval {
  uint64_t from = 0;
  uint64_t to = UINT64_MAX;
  bool has(uint64_t value) const { return from <= value && value <= to; }
};

struct Rule {
  collective::Kind kind = collective::Kind::barrier;
  Interval bytes, ranks, domains, per_node;
  Interval nodes{1, 1};
  int8_t crowded = -1;  // -1: either
  int8_t arena = -1;    // -1: either
  int8_t offload = -1;  // -1: either
  bool scattered = false;
  bool fresh = false;
  int8_t library = -1;     // a Library; -1: any
  int8_t cpu = -1;         // a Cpu; -1: any
  int16_t algorithm = -1;  // row of collective/hierarchy/rows.hpp; -1: MPI
  int32_t line = 0;        // of the file
};

struct Rules {
  static constexpr int capacity = 1024;
  Rule rows[capacity];
  int count = 0;
  uint64_t fingerprint = 0;  // equal on two ranks only if their rules are
  bool tuned = false;        // measured with these:
  uint64_t build = 0, machine = 0, mpi = 0;
  char problem[160] = "";  // of a text that does not read
};

// invalid, detail = line number, when the text does not read as rules; what is wrong with which word stands in rules->problem,
// which the Status points to.
Status parse_rules(const char* text, size_t length, Rules* rules);

// Reads and parses a file. invalid or refused with the line number or errno.
Status load_rules(const char* path, Rules* rules);

const char* default_rules();  // the text of default.rules

}  // namespace stretto::select
