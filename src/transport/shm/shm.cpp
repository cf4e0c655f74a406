#include "transport/shm/shm.hpp"

#include <errno.h>
#include <string.h>

#include <new>

namespace stretto::transport {
namespace {

class Shm final : public Transport {
 public:
  Shm(const Stage& stage, int rank) : stage_(stage), rank_(rank) {}

  const char* name() const override { return "shm"; }
  size_t cell_bytes() const override { return stage_.cell_bytes; }
  uint32_t cells() const override { return stage_.cells; }
  bool maps() const override { return true; }
  Window window(const void*) const override { return {}; }

  Status put(Cell cell, size_t at, const void* data, size_t bytes) override {
    if (bytes == 0) return Status::good();
    void* to = place(cell, at, bytes);
    if (to == nullptr) return invalid("a range outside its cell", ERANGE);
    if (to != data) memcpy(to, data, bytes);
    return Status::good();
  }

  void* place(Cell cell, size_t at, size_t bytes) override {
    return inside(cell, at, bytes) ? byte_of(rank_, cell, at) : nullptr;
  }

  void* place_in(int peer, Cell cell, size_t at, size_t bytes) override {
    return peer >= 0 && inside(cell, at, bytes) ? byte_of(peer, cell, at) : nullptr;
  }

  Status get(int peer, Window, Cell cell, size_t at, size_t bytes, void* scratch, const void** data) override {
    *data = scratch;
    if (bytes == 0) return Status::good();
    if (!inside(cell, at, bytes) || peer < 0) return invalid("a range outside its cell", ERANGE);
    *data = byte_of(peer, cell, at);
    return Status::good();
  }

 private:
  bool inside(Cell cell, size_t at, size_t bytes) const {
    return at >= cell.start && bytes <= stage_.cell_bytes && at - cell.start <= stage_.cell_bytes - bytes;
  }

  char* byte_of(int rank, Cell cell, size_t at) const {
    return stage_.base + size_t(rank) * stage_.rank_stride + size_t(cell.round % stage_.cells) * stage_.cell_bytes +
           (at - cell.start);
  }

  Stage stage_;
  int rank_;
};

}  // namespace

std::unique_ptr<Transport> make_shm(const Stage& stage, int rank) {
  if (stage.base == nullptr || stage.cells == 0) return nullptr;
  return std::unique_ptr<Transport>(new (std::nothrow) Shm(stage, rank));
}

}  // namespace stretto::transport
