#include "transport/xpmem/xpmem.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace stretto::transport {
namespace {

constexpr int permit_mode = 1, read_write = 2;
constexpr uint64_t grain = uint64_t(4) << 20;  // attached at once, so that neighbours need no call of their own

template <class Function>
void find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
}

class Xpmem final : public Transport {
 public:
  Xpmem(XpmemPeers& peers, std::unique_ptr<int[]> members, int size, int rank)
      : peers_(peers), members_(std::move(members)), size_(size), rank_(rank) {}

  const char* name() const override { return "xpmem"; }
  size_t cell_bytes() const override { return SIZE_MAX; }
  uint32_t cells() const override { return UINT32_MAX; }
  bool maps() const override { return true; }
  Reach reach() const override { return Reach::mapping(Mechanism::xpmem); }
  Status put(Cell, size_t, const void*, size_t) override { return Status::good(); }
  void* place(Cell, size_t, size_t) override { return nullptr; }

  Window window(const void* buffer) const override {
    return buffer == nullptr ? Window{} : tagged(Mechanism::xpmem, reinterpret_cast<uintptr_t>(buffer));
  }

  Status get(int peer, Window window, Cell, size_t at, size_t bytes, void* scratch, const void** data) override {
    *data = scratch;
    if (bytes == 0) return Status::good();
    const void* there = place_at(peer, window, at, bytes);
    if (there == nullptr) return refused("the peer's memory cannot be attached", EFAULT);
    *data = there;
    return Status::good();
  }

  void* place_at(int peer, Window window, size_t at, size_t bytes) override {
    if (peer < 0 || peer >= size_ || window.base == 0 || mechanism_of(window) != Mechanism::xpmem) return nullptr;
    uint64_t address = untagged(window.base + at);
    return peer == rank_ ? reinterpret_cast<void*>(address) : peers_.map(members_[peer], address, bytes);
  }

 private:
  XpmemPeers& peers_;
  std::unique_ptr<int[]> members_;
  const int size_, rank_;
};

}  // namespace

Status load_xpmem(const char* library, const char* device, XpmemCalls* calls) {
  if (access(device, R_OK | W_OK) != 0) return refused("no XPMEM device", errno);
  void* found = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (found == nullptr) return refused("no XPMEM library");
  find(found, "xpmem_make", &calls->make);
  find(found, "xpmem_get", &calls->get);
  find(found, "xpmem_attach", &calls->attach);
  find(found, "xpmem_detach", &calls->detach);
  if (calls->make && calls->get && calls->attach && calls->detach) return Status::good();
  dlclose(found);
  return refused("the XPMEM library lacks a call");
}

int64_t make_xpmem_segment(const XpmemCalls& calls) {
  int64_t segid = calls.make(nullptr, SIZE_MAX, permit_mode, reinterpret_cast<void*>(uintptr_t(0600)));
  return segid > 0 ? segid : 0;
}

XpmemPeers::XpmemPeers(const XpmemCalls& calls, int members)
    : calls_(calls), members_(members), peers_(new (std::nothrow) Peer[size_t(members)]) {}

XpmemPeers::~XpmemPeers() {
  for (int m = 0; peers_ && m < members_; ++m)
    for (int i = 0; i < peers_[m].count; ++i)
      if (char* here = peers_[m].attached[i].here) calls_.detach(here);
}

bool XpmemPeers::open(int member, int64_t segid) {
  Peer& peer = peers_[member];
  pthread_mutex_lock(&lock_);
  if (peer.access < 0) peer.access = calls_.get(segid, read_write, permit_mode, reinterpret_cast<void*>(uintptr_t(0600)));
  bool open = peer.access >= 0;
  pthread_mutex_unlock(&lock_);
  return open;
}

// Empty, or the least recently used of this thread, which is detached. Null: there are too many.
XpmemPeers::Attachment* XpmemPeers::place_for_another(Peer& peer) {
  Attachment *oldest = nullptr, *empty = nullptr;
  int own = 0;
  for (Attachment* one = peer.attached.get(); one != peer.attached.get() + peer.count; ++one) {
    if (one->here == nullptr) empty = one;
    if (one->here == nullptr || !pthread_equal(one->user, pthread_self())) continue;
    ++own;
    if (oldest == nullptr || one->used < oldest->used) oldest = one;
  }
  if (own >= capacity) {
    calls_.detach(oldest->here);
    *oldest = {};
    return oldest;
  }
  if (empty != nullptr) return empty;
  if (peer.count == peer.room) {
    const int room = peer.room + capacity;
    std::unique_ptr<Attachment[]> more(room <= most ? new (std::nothrow) Attachment[size_t(room)] : nullptr);
    if (!more) return nullptr;
    std::copy_n(peer.attached.get(), peer.count, more.get());
    peer.attached = std::move(more);
    peer.room = room;
  }
  return &peer.attached[peer.count++];
}

char* XpmemPeers::attach(Peer& peer, uint64_t first, uint64_t last) {
  Attachment* place = place_for_another(peer);
  if (place == nullptr) return nullptr;
  void* here = calls_.attach({peer.access, off_t(first)}, last - first, nullptr);
  if (here == reinterpret_cast<void*>(intptr_t(-1)) || here == nullptr) return nullptr;
  *place = {first, last, static_cast<char*>(here), ++clock_, pthread_self()};
  return place->here;
}

void* XpmemPeers::map(int member, uint64_t address, size_t bytes) {
  if (member < 0 || member >= members_ || address + bytes < address) return nullptr;
  Peer& peer = peers_[member];
  pthread_mutex_lock(&lock_);
  char* here = nullptr;
  for (int i = 0; i < peer.count; ++i) {
    Attachment& one = peer.attached[i];
    if (one.here == nullptr || !pthread_equal(one.user, pthread_self())) continue;
    if (address < one.first || address + bytes > one.last) continue;
    one.used = ++clock_;
    here = one.here + (address - one.first);
    break;
  }
  uint64_t first = address / grain * grain;
  if (here == nullptr && peer.access >= 0) {
    here = attach(peer, first, (address + bytes + grain - 1) / grain * grain);
    if (here != nullptr) here += address - first;
  }
  pthread_mutex_unlock(&lock_);
  return here;
}

std::unique_ptr<Transport> make_xpmem(XpmemPeers& peers, const int* members, int size, int rank) {
  if (size < 1) return nullptr;
  std::unique_ptr<int[]> copy(new (std::nothrow) int[size_t(size)]);
  if (copy == nullptr) return nullptr;
  std::copy(members, members + size, copy.get());
  return std::unique_ptr<Transport>(new (std::nothrow) Xpmem(peers, std::move(copy), size, rank));
}

}  // namespace stretto::transport
