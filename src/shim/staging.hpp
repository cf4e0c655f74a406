// Buffers that algorithms cannot work in where they are: elements with gaps, and memory of a GPU. Their bytes travel through
// host memory of this call. Being staged is each rank's own business: its peers run the same algorithm.
#pragma once
#include <memory>

#include "engine/communicator.hpp"
#include "platform/device_memory.hpp"
#include "shim/operands.hpp"

namespace stretto::shim {

// count elements at `data`, as the program describes them. Null layout: there is no such buffer (null data may be MPI_BOTTOM).
struct Buffer {
  const void* data = nullptr;
  size_t count = 0;
  const Layout* layout = nullptr;

  size_t bytes() const { return count * layout->size; }
  bool on_device() const;
  // Algorithms may load and store it: its bytes stand one after the other, where the CPU reaches them.
  bool usable() const { return layout == nullptr || (layout->dense && !on_device()); }
};

// Memory for the bytes of one call: what fits into a line of the board is here, for more malloc is asked, then the job's pool.
// Where there are GPUs long memory is kept from call to call (platform/kept_memory.hpp).
class Room {
 public:
  Room() = default;
  ~Room();
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  bool reserve(size_t bytes, engine::Communicator& communicator);
  char* data() const { return data_; }

 private:
  alignas(16) char small_[collective::slot_payload];
  Temporary memory_;
  char *data_ = nullptr, *kept_ = nullptr;
  engine::Communicator* lender_ = nullptr;
  uint64_t borrowed_ = 0;
  size_t bytes_ = 0;
};

// The datatypes that results are stored with. On a nonblocking operation the program may have freed its own by then, so these are
// duplicates.
class ResultTypes {
 public:
  explicit ResultTypes(int most) : most_(most) {}
  ~ResultTypes();
  ResultTypes(const ResultTypes&) = delete;
  ResultTypes& operator=(const ResultTypes&) = delete;
  // Makes a layout last until this object ends. An MPI error code.
  int keep(Layout& layout);

 private:
  const int most_;
  int count_ = 0;
  std::unique_ptr<MPI_Datatype[]> types_;
};

// Between the buffer and contiguous host bytes. An MPI error code; what is wrong with a driver is logged. Of a buffer with gaps
// on a device only the bytes of its elements are written; of one for which fewer bytes `came` nothing behind them.
int load(const Buffer& from, void* bytes);
int store(const Buffer& to, const void* bytes, size_t came);

}  // namespace stretto::shim
