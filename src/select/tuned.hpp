// Rules that were measured (stretto tune): where they lie, and whether they are this build's, for this machine and MPI.
//
// Their file begins with a line that says what they were measured with:
//
//     tuned build=1f2e... machine=83ab... mpi=77c0...
#pragma once
#include <cstddef>
#include <cstdint>

#include "select/rules.hpp"

namespace stretto::select {

// What measured rules depend on. Numbers are digests of texts.
struct Key {
  uint64_t build = 0;    // of Stretto: its version and algorithms
  uint64_t machine = 0;  // CPU model, CPUs, sockets, NUMA nodes
  uint64_t mpi = 0;      // library and version
};

struct Surroundings {
  Key key;
  char about[320];  // the same in words
};

// `mpi`: the first words of MPI_Get_library_version; null: no MPI is known.
Surroundings look_around(const char* mpi);

// The line that such a file begins with. `text` has room for 128.
void write_header(const Key& key, char* text);

// $XDG_CONFIG_HOME/stretto/rules/MACHINE-MPI.rules, or below $HOME/.config. False: there is no home.
bool tuned_path(const Key& key, char* path, size_t bytes);

// Whether rules may be used here; rules that were not measured always may. Else what() says why.
Status fits(const Rules& rules, const Key& key);

}  // namespace stretto::select
