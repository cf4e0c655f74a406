// Persistent collectives: one communicator of Stretto's own for each, as they may be started in any order, and a request of
// MPI's.
//
// The request is a persistent receive from this process itself, started by MPI_Start; a message of this process completes it when
// the operation is done. So every function of MPI that takes requests knows it; only Start, Startall and Request_free are told
// apart here.
#pragma once
#include "shim/kept_call.hpp"
#include "shim/nonblocking.hpp"

namespace stretto::shim {

// The blocking hook, called with kept words.
using WordsHook = bool (*)(const Word* words, Call& call);

// In a call that prepares a collective (MPI_Bcast_init), which may wait for the other ranks. True: *request stands for it. False,
// on all ranks alike: MPI must do it.
bool prepare(const Plan& plan, WordsHook hook, const Word* words, MPI_Comm comm, MPI_Request* request);

// Requests of this kind that the program has.
extern constinit std::atomic<uint32_t> persistent_requests;
inline bool any_persistent() {
  return __builtin_expect(persistent_requests.load(std::memory_order_relaxed) != 0, 0);
}
inline constexpr bool concerns_persistent(uint32_t index) {
  return index == number::Start || index == number::Startall || index == number::Request_free;
}

// MPI_Start of any request: MPI's code.
int start_any(MPI_Request* request);
// The program frees the request: MPI must be told, and only then may it give the handle to another one.
void forget_persistent(MPI_Request request);

// MPI_Cancel of any request: MPI's code. Collectives cannot be cancelled: of Stretto's MPI raises MPI_ERR_REQUEST.
int cancel_any(MPI_Request* request);

// The C function `index` of the above, in the place of MPI's.
int forward_persistent(uint32_t index, const Word* words);

// All those of `comm`, which has been revoked.
void revoke_persistent(MPI_Comm comm);

// The request has been completed and the program is told: with what its operation failed, if it did and this is new.
int tell_error(MPI_Request request);

}  // namespace stretto::shim
