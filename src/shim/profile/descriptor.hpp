// What a profile needs to know of each wrapped function: its shape and which parameter plays which part. The table is generated
// from functions.txt by tools/generate_shim.py.
#pragma once
#include <cstdint>

#include "shim/mpi.hpp"

namespace stretto::shim::profile {

enum class Shape : uint8_t {
  other,
  // collectives
  allgather,
  allreduce,
  alltoall,
  barrier,
  bcast,
  exscan,
  gather,
  reduce,
  reduce_scatter,
  reduce_scatter_block,
  scan,
  scatter,
  // point to point
  send,
  receive,
  sendrecv,
  sendrecv_replace,
  probe,
  matched_receive,
  start,
  startall,
  ready,  // MPI_Pready, MPI_Parrived
  // completion
  wait,
  wait_all,
  wait_any,
  wait_some,
  cancel,
  request_free,
  request_get_status,
  // one-sided
  put,
  get,
  get_accumulate,
  make_window,
  win_free,
  // communicators
  duplicate,
  later_duplicate,
  split,
  subgroup,
  subgroup_alone,
  topology,
  join_groups,
  merge,
  from_group,
  connect,
  release,
};

enum class Way : uint8_t {
  does,
  starts,    // nonblocking: there is a request
  prepares,  // persistent: there is a request, MPI_Start does it
};

// Positions of parameters; -1: there is none.
struct Descriptor {
  Shape shape = Shape::other;
  Way way = Way::does;
  bool neighbours = false;  // a neighbourhood collective
  bool wide = false;        // its counts are MPI_Count
  const char* kinds = "";   // of the words, for Fortran: i int, n MPI_Count or MPI_Aint, C D O W R handles, p pointers
  int8_t send_buffer = -1, send_count = -1, send_counts = -1, send_type = -1,
         send_types = -1;  // of one-sided calls: the origin's
  int8_t receive_buffer = -1, receive_count = -1, receive_counts = -1, receive_type = -1, receive_types = -1;
  int8_t destination = -1, source = -1, root = -1, tag = -1, receive_tag = -1;
  int8_t communicator = -1, op = -1, window = -1, request = -1, count = -1;
  int8_t flag = -1, index = -1, indices = -1, out_count = -1, status = -1, message = -1, partition = -1;
  int8_t made = -1;  // the new communicator
};

extern const Descriptor descriptors[wrapped_count];

constexpr bool is_collective(Shape shape) {
  return shape >= Shape::allgather && shape <= Shape::scatter;
}

// Collective over their communicator, and in one order with the other collectives on it.
constexpr bool makes_collectively(Shape shape) {
  return shape == Shape::make_window || (shape >= Shape::duplicate && shape <= Shape::subgroup) ||
         (shape >= Shape::topology && shape <= Shape::merge);
}

}  // namespace stretto::shim::profile
