// The communicators of MPI's between nodes: how many there are, and who frees them.
#pragma once
#include <mutex>
#include <new>

#include "shim/abi.hpp"
#include "shim/fault_tolerance.hpp"
#include "shim/mpi.hpp"

namespace stretto::shim {

class RailComms;

struct RailRegister {
  std::mutex mutex;
  int taken = 0;
  RailComms* newest = nullptr;  // of a list
};

inline RailRegister& rails() {
  alignas(RailRegister) static char storage[sizeof(RailRegister)];
  static RailRegister* made = new (storage) RailRegister;  // never destroyed: communicators are freed until the very end
  return *made;
}

// Those of one communicator of the program's: of the ranks that have this one's number on their node (null where this rank has
// none), and of all. Their place in the register has been taken.
class RailComms {
 public:
  RailComms(MPI_Comm comm, MPI_Comm all) : comm_(comm), all_(all) {
    std::lock_guard<std::mutex> lock(rails().mutex);
    next_ = rails().newest;
    rails().newest = this;
  }
  RailComms(const RailComms&) = delete;
  RailComms& operator=(const RailComms&) = delete;
  ~RailComms() {
    free_comms();
    std::lock_guard<std::mutex> lock(rails().mutex);
    for (RailComms** at = &rails().newest; *at != nullptr; at = &(*at)->next_)
      if (*at == this) {
        *at = next_;
        break;
      }
    --rails().taken;
  }
  RailComms* next() const { return next_; }

  // Freeing is collective. All ranks of both are in the communicator that is being freed, so all come here. Those that are
  // revoked stay: Open MPI does not tell the others any more once one that has told them is freed.
  void free_comms() {
    if (freed_) return;
    freed_ = true;
    if (revoked_) return;
    if (comm_ != comm_null()) mpi().Comm_free(&comm_);
    mpi().Comm_free(&all_);
  }

  void revoke_comms() {
    revoked_ = true;
    for (MPI_Comm comm : {comm_, all_})
      if (comm != comm_null()) revoke(comm);
  }

 protected:
  MPI_Comm comm_, all_;

 private:
  bool freed_ = false, revoked_ = false;
  RailComms* next_ = nullptr;
};

}  // namespace stretto::shim
