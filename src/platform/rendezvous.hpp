// How the ranks of a job on one node find each other and come to hold the same shared object, without MPI.
//
// Every rank binds a datagram socket in the abstract namespace (nothing in the file system), named by user, job and
// local rank. Each greets local rank 0, which answers with the descriptor (SCM_RIGHTS). Both sides look at the address
// and at the user whom the kernel names as the sender: the descriptor never goes to, nor comes from, anybody else.
#pragma once
#include <cstdint>

#include "base/status.hpp"

namespace stretto::platform {

class Rendezvous {
 public:
  Rendezvous() = default;
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // Binds this rank's address. `job` is any string equal on all ranks of the job, different between jobs (hashed inside).
  // refused, detail EADDRINUSE: another process has it.
  Status open(const char* job, int local_rank);

  // Local rank 0: delivers `fd` to local ranks 1 .. local_size-1, as each comes to take(), until deadline_ns (now_ns
  // clock). timed_out, detail = number not reached, when some never appeared. `fd` stays the caller's.
  Status give(int fd, int local_size, uint64_t deadline_ns);

  // The others: waits for the descriptor; the caller owns *fd (close-on-exec).
  Status take(int* fd, uint64_t deadline_ns);

  // After open, by all local ranks: each delivers `fd` to every other and receives theirs, owned by the caller: fds[r] for
  // every r but the own; -1 for those that did not come. timed_out, detail = number missing or not reached.
  Status swap(int fd, int local_size, int* fds, uint64_t deadline_ns);

  // After open, where some rank does not come: true for the first of the node's ranks that asks. It keeps a socket for that
  // until its process ends.
  bool claim_voice() const;

  void close();

 private:
  int socket_ = -1;
  int local_rank_ = 0;
  char job_[64] = {};  // the hash, as text
};

}  // namespace stretto::platform
