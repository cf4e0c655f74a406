// The MPI functions that the benchmark calls, on two sides: MPI_X, as a program calls it (a preloaded library answers first), and
// PMPI_X, the MPI library's own. MPI is loaded by name at the start, so that one program serves every version of an ABI.
#pragma once
#include <cstddef>
#include <cstdint>

#include "shim/abi.hpp"

namespace stretto::bench {

using Types = const MPI_Datatype*;

// F(name, result and parameters)
#define STRETTO_BENCH_CALLS(F)                                                                                                \
  F(Init, int(int*, char***))                                                                                                 \
  F(Finalize, int())                                                                                                          \
  F(Abort, int(MPI_Comm, int))                                                                                                \
  F(Get_library_version, int(char*, int*))                                                                                    \
  F(Comm_rank, int(MPI_Comm, int*))                                                                                           \
  F(Comm_size, int(MPI_Comm, int*))                                                                                           \
  F(Comm_dup, int(MPI_Comm, MPI_Comm*))                                                                                       \
  F(Comm_free, int(MPI_Comm*))                                                                                                \
  F(Sendrecv, int(const void*, int, MPI_Datatype, int, int, void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*))       \
  F(Send, int(const void*, int, MPI_Datatype, int, int, MPI_Comm))                                                            \
  F(Recv, int(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*))                                                     \
  F(Barrier, int(MPI_Comm))                                                                                                   \
  F(Bcast, int(void*, int, MPI_Datatype, int, MPI_Comm))                                                                      \
  F(Reduce, int(const void*, void*, int, MPI_Datatype, MPI_Op, int, MPI_Comm))                                                \
  F(Allreduce, int(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm))                                                  \
  F(Gather, int(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm))                                     \
  F(Scatter, int(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm))                                    \
  F(Allgather, int(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm))                                       \
  F(Alltoall, int(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm))                                        \
  F(Gatherv, int(const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype, int, MPI_Comm))                 \
  F(Scatterv, int(const void*, const int*, const int*, MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm))                \
  F(Allgatherv, int(const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype, MPI_Comm))                   \
  F(Alltoallv, int(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*, MPI_Datatype, MPI_Comm)) \
  F(Alltoallw, int(const void*, const int*, const int*, Types, void*, const int*, const int*, Types, MPI_Comm))               \
  F(Reduce_scatter, int(const void*, void*, const int*, MPI_Datatype, MPI_Op, MPI_Comm))                                      \
  F(Reduce_scatter_block, int(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm))                                       \
  F(Scan, int(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm))                                                       \
  F(Exscan, int(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm))

template <class Function>
using Pointer = Function*;

struct Calls {
#define STRETTO_BENCH_MEMBER(name, ...) Pointer<__VA_ARGS__> name;
  STRETTO_BENCH_CALLS(STRETTO_BENCH_MEMBER)
#undef STRETTO_BENCH_MEMBER
};

struct Mpi {
  Calls program;  // MPI_X
  Calls library;  // PMPI_X
  MPI_Comm world;
  MPI_Datatype byte, float32, float64, uint64;
  MPI_Op sum, min, max;
};

// Loads the MPI library (a path or a name the loader finds) and its functions. Null, or what is wrong.
const char* load_mpi(const char* file, Mpi* mpi);

// After MPI_Init: the predefined handles. Null, or what is wrong.
const char* find_handles(Mpi* mpi);

// The interface of a preloaded Stretto (include/stretto/stretto.h); null members where it is not there.
struct Preload {
  const char* (*version)();
  int (*accelerating)(const char**);
  const char* (*algorithms)();
  const char* (*default_rules)();
  int (*next_rules)(const char*);
  int (*tuning)(const char**, const char**, const char**);
};
Preload find_preload();

// Small things that every part needs, over the library's own functions.
double max_over_ranks(const Mpi& mpi, double value);
uint64_t sum_over_ranks(const Mpi& mpi, uint64_t value);
double from_rank_0(const Mpi& mpi, double value);

}  // namespace stretto::bench
