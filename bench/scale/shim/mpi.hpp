// Stands for src/shim/mpi.hpp: the MPI functions that rails call, of the simulator.
//
// The nonblocking forms with MPI's arithmetic or a tree between the nodes are done at once: the simulator's own send everything
// from everyone to everyone, as no MPI library does. What `pipelined` gains from overlap is therefore not seen.
#pragma once
#include "shim/abi.hpp"

namespace stretto::shim {

// Where the contents of buffers count, null; else a buffer of folded memory that may be read in place of any other.
extern const void* any_input;

struct Functions {
  static constexpr auto Comm_rank = MPI_Comm_rank;
  static constexpr auto Comm_size = MPI_Comm_size;
  static constexpr auto Comm_free = MPI_Comm_free;
  static constexpr auto Barrier = MPI_Barrier;
  static constexpr auto Gather = MPI_Gather;
  static constexpr auto Gatherv = MPI_Gatherv;
  static constexpr auto Allgather = MPI_Allgather;
  static constexpr auto Allgatherv = MPI_Allgatherv;
  static constexpr auto Alltoallv = MPI_Alltoallv;
  static constexpr auto Ialltoallv = MPI_Ialltoallv;
  static constexpr auto Iallgatherv = MPI_Iallgatherv;
  static constexpr auto Iprobe = MPI_Iprobe;
  static constexpr auto Get_count = MPI_Get_count;
  static constexpr auto Cancel = MPI_Cancel;
  static constexpr auto Error_class = MPI_Error_class;
  static constexpr auto Recv = MPI_Recv;
  static constexpr auto Irecv = MPI_Irecv;
  static constexpr auto Isend = MPI_Isend;
  static constexpr auto Issend = MPI_Issend;
  static constexpr auto Allreduce = MPI_Allreduce;
  static constexpr auto Ibarrier = MPI_Ibarrier;
  static constexpr auto Igather = MPI_Igather;
  static constexpr auto Igatherv = MPI_Igatherv;
  static constexpr auto Iallgather = MPI_Iallgather;
  static constexpr auto Test = MPI_Test;
  static constexpr auto Wait = MPI_Wait;
  static constexpr auto Testsome = MPI_Testsome;

  static int Iallreduce(const void* input, void* output, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                        MPI_Request* request) {
    *request = MPI_REQUEST_NULL;
    return MPI_Allreduce(any_input ? any_input : input, output, count, type, op, comm);
  }
  static int Ireduce(const void* input, void* output, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
                     MPI_Request* request) {
    *request = MPI_REQUEST_NULL;
    return MPI_Reduce(any_input ? any_input : input, output, count, type, op, root, comm);
  }
  static int Ibcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
    *request = MPI_REQUEST_NULL;
    return MPI_Bcast(data, count, type, root, comm);
  }
};

inline constexpr Functions mpi() {
  return {};
}

}  // namespace stretto::shim
