// XPMEM: peers' private memory attached to this process's address space, where the kernel has the module (/dev/xpmem) and the
// library is installed. Stretto needs neither to be built: the four calls are found at run time.
#pragma once
#include <pthread.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "transport/transport.hpp"

namespace stretto::transport {

// As in xpmem.h, whose ABI has been the same since 2.6.
struct XpmemAddress {
  int64_t access;  // xpmem_apid_t
  off_t offset;
};
struct XpmemCalls {
  int64_t (*make)(void* address, size_t bytes, int permit_type, void* permit_value) = nullptr;  // segid, or -1
  int64_t (*get)(int64_t segid, int flags, int permit_type, void* permit_value) = nullptr;      // apid, or -1
  void* (*attach)(XpmemAddress address, size_t bytes, void* at) = nullptr;                      // or (void*)-1
  int (*detach)(void* address) = nullptr;
};

// refused: no device or no library of this name.
Status load_xpmem(const char* library, const char* device, XpmemCalls* calls);

// This process's whole address space, for peers of the same user; 0: XPMEM gives none. Once per process.
int64_t make_xpmem_segment(const XpmemCalls& calls);

// What this process has attached of its peers, for all its communicators. Attachments are kept, and the least recently used goes
// when a thread has `capacity` of them of a peer; not while a collective uses it: capacity exceeds what one collective needs of a
// peer, and each thread has attachments of its own, as others may run collectives meanwhile.
// XPMEM attachments follow the owner's page tables, so memory that was freed and mapped anew is seen as it is now. Synchronised.
class XpmemPeers {
 public:
  static constexpr int capacity = 16, most = 16 * capacity;  // of a thread; of all, of which no more are made

  XpmemPeers(const XpmemCalls& calls, int members);
  ~XpmemPeers();
  XpmemPeers(const XpmemPeers&) = delete;
  XpmemPeers& operator=(const XpmemPeers&) = delete;
  bool usable() const { return peers_ != nullptr; }

  // Gains access to a member's segment. False: refused.
  bool open(int member, int64_t segid);

  // Where bytes [address, address + bytes) of the member's memory stand here; null: they cannot be attached.
  void* map(int member, uint64_t address, size_t bytes);

 private:
  struct Attachment {
    uint64_t first = 0, last = 0;  // addresses of the owner, [first, last)
    char* here = nullptr;
    uint64_t used = 0;
    pthread_t user{};
  };
  struct Peer {
    int64_t access = -1;
    std::unique_ptr<Attachment[]> attached;
    int count = 0, room = 0;
  };
  Attachment* place_for_another(Peer& peer);
  char* attach(Peer& peer, uint64_t first, uint64_t last);

  const XpmemCalls calls_;
  const int members_;
  uint64_t clock_ = 0;
  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
  std::unique_ptr<Peer[]> peers_;
};

// members[r]: the member of `peers` that is rank r; copied. All ranks but the own are open.
std::unique_ptr<Transport> make_xpmem(XpmemPeers& peers, const int* members, int size, int rank);

}  // namespace stretto::transport
