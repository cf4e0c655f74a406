// Communicators that span nodes: who is where, the rails between the nodes, and what between-node stages ask of MPI.
#pragma once
#include "engine/communicator.hpp"
#include "shim/abi.hpp"

namespace stretto::shim {

// What Request::host points to: the datatype and operation of the call, for MPI's own arithmetic.
struct HostOperands {
  MPI_Datatype type;
  MPI_Op op;
};

// Collective over `comm`, whose members are not all on this node: all its ranks come here, and to the same answer.
engine::Communicator* make_across_nodes(MPI_Comm comm, int size, int rank);

// Collective over `comm`: each of `count` values becomes the least that a rank has. False: MPI failed.
bool least_of(MPI_Comm comm, int64_t* values, int count);

// Collective over MPI_COMM_WORLD, where STRETTO_NODES=promised says that all its ranks come here: whether all have joined, with
// the same settings, rules and build.
bool all_nodes_agree(bool joined, uint64_t fingerprint);

// In MPI_Finalize: gives back what communicators still have of MPI.
void free_rails();

// Ends the job: a rank that cannot do its part of a collective over nodes has no way to tell the others.
void end_job(MPI_Comm comm, int code);

}  // namespace stretto::shim
