// What MPI_Waitall does about the other requests when one has failed. Some libraries (MPICH 5.0) complete them if they were given
// no statuses, and leave them if they were; others (MPICH 4.0, Open MPI) treat both alike. A profile gives statuses where the
// program did not, so the first time it matters the library is asked: two messages of this process to itself, the first one too
// long.
#include "shim/profile/profile.hpp"

namespace stretto::shim::profile {
namespace {

struct Messages {
  MPI_Comm comm{};
  MPI_Datatype byte{};
  MPI_Request requests[2] = {};
  char out[8] = {}, in[8] = {};

  bool begin() {
    MPI_Errhandler quiet;
    if (!predefined("MPI_ERRORS_RETURN", &quiet) || !predefined("MPI_BYTE", &byte)) return false;
    if (mpi().Comm_dup(comm_self(), &comm) != MPI_SUCCESS) return false;
    mpi().Comm_set_errhandler(comm, quiet);
    for (int i = 0; i < 2; ++i) mpi().Irecv(in + 4 * i, i == 0 ? 1 : 4, byte, 0, i, comm, &requests[i]);
    for (int i = 0; i < 2; ++i) mpi().Send(out, 4, byte, 0, i, comm);
    return true;
  }
  bool left_over(MPI_Status* statuses) {
    MPI_Request null;
    predefined("MPI_REQUEST_NULL", &null);
    (void)mpi().Waitall(2, requests, statuses);
    const bool left = requests[1] != null;
    if (left) mpi().Wait(&requests[1], MPI_STATUS_IGNORE);
    mpi().Comm_free(&comm);
    return left;
  }
};

bool goes_on_only_without_statuses() {
  Messages with, without;
  MPI_Status statuses[2];
  if (!with.begin() || !without.begin()) return false;
  const bool left_with = with.left_over(statuses), left_without = without.left_over(MPI_STATUSES_IGNORE);
  return left_with && !left_without;
}

}  // namespace

void wait_for_rest(const Call& call) {
  const Descriptor& d = call.d();
  if (!call.own_statuses || d.shape != Shape::wait_all || d.flag >= 0 || call.words.language != Language::c) return;
  static const bool goes_on = goes_on_only_without_statuses();
  if (!goes_on) return;
  auto* requests = static_cast<MPI_Request*>(call.words.pointer(d.request));
  (void)mpi().Waitall(call.words.integer(d.count), requests, MPI_STATUSES_IGNORE);
}

}  // namespace stretto::shim::profile
