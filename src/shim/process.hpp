// What the shim knows about the process it is loaded into: which MPI the program uses, and how far Stretto has come.
#pragma once
#include <atomic>

#include "base/status.hpp"

namespace stretto::shim {

enum class Flavor { none, open_mpi, mpich, standard, unknown };

const char* name(Flavor flavor);
Flavor own_flavor();  // the one this library is built for

// The MPI library of this process.
struct Library {
  Flavor flavor = Flavor::none;
  void* handle = nullptr;                     // for dlsym
  void* find(const char* symbol) const;       // a function
  void* find_data(const char* symbol) const;  // a variable; the program may hold the copy in use (copy relocation)
};

// Whether a file is named as MPI libraries are.
bool is_mpi_library(const char* path);

// Finds it, for as long as there is none on every call. The first success also reads the settings, opens the record
// and says so in one line if this is the wrong preload for the program.
const Library& library();

// Whether another program of the job has started this one, by MPI_Comm_spawn: it has a world of its own. After MPI_Init.
bool is_spawned();

// True between the end of attach() and the begin of detach(), in a process that runs the MPI this library is built for.
extern std::atomic<bool> attached_now;
inline bool attached() {
  return attached_now.load(std::memory_order_acquire);
}

// True while collectives are accelerated. Where they are not, the wrappers ask nobody.
extern std::atomic<bool> taking_now;
inline bool taking() {
  return taking_now.load(std::memory_order_acquire);
}

}  // namespace stretto::shim
