// Why a call is left to MPI. Names appear in the summary and in records.
#pragma once
#include <cstdint>

namespace stretto::select {

enum class Reason : uint8_t {
  none,
  not_joined,  // this rank or a peer does not take part; the record's verdict says why
  intercommunicator,
  single_rank,
  many_nodes,
  many_ranks,
  no_shared_memory,
  no_staging_memory,
  unsupported_type,  // no predefined meaning for this op on this type
  unsupported_op,
  large_element,      // one element of a user's op exceeds a cell
  invalid_arguments,  // left to MPI to report
  mpi_preferred,      // the rules choose MPI here
  peer_lost,
  not_prepared,  // a communicator that no blocking call has prepared, or one over nodes with few calls yet
  turn_of_mpi,   // STRETTO_TURNS
  revoked,       // by MPIX_Comm_revoke
  of_session,    // a communicator that may be used after MPI_Finalize
  other_tool,    // requests may be completed past Stretto (shim/tools.hpp)
};
inline constexpr int reason_count = int(Reason::other_tool) + 1;

inline constexpr const char* reason_names[reason_count] = {
    "none",
    "not joined",
    "intercommunicator",
    "single rank",
    "several nodes",
    "more ranks than supported",
    "no shared memory",
    "no staging memory",
    "unsupported type",
    "unsupported op",
    "element too large",
    "invalid arguments",
    "MPI preferred",
    "a rank died",
    "communicator not prepared",
    "turn of MPI",
    "communicator revoked",
    "communicator of a session",
    "requests completed by another tool",
};

}  // namespace stretto::select
