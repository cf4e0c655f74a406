// The transport contract: how the bytes of one rank are reached by the others of its team.
//
// A collective moves a vector in rounds. Round t of a rank shows its peers one range of the vector, the cell, that begins at
// byte `start`. Staging transports copy the range into memory that all ranks map, into cell t modulo cells(); direct ones leave
// it in the user's buffer, and what peers need is its address: the window, which the collective publishes for them.
//
// A transport moves bytes and nothing else: it does not synchronise. The caller orders put/place before the peers' get by a
// release store and an acquire load, and does not reuse a cell before all its readers are done. One transport object belongs to
// one rank of one team and is used by one thread at a time; different objects are independent.
//
// Adding one: a folder with a class that implements this, and a row in transport/table.hpp; the conformance suite picks it up.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/status.hpp"

namespace stretto::transport {

// What a rank must publish so that peers reach its buffer: an address in its address space. 0: nothing to reach.
struct Window {
  uint64_t base = 0;
};

// What a window means stands in its top byte, which no address uses.
enum class Mechanism : uint8_t {
  address,  // in the owner's address space: read by a copy, or as it is between threads
  arena,    // an offset in the owner's arena
  xpmem,    // an address in the owner's address space, attached
};
inline constexpr int mechanism_shift = 56;
constexpr Mechanism mechanism_of(Window window) {
  return Mechanism(window.base >> mechanism_shift);
}
constexpr uint64_t untagged(uint64_t value) {
  return value & ((uint64_t(1) << mechanism_shift) - 1);
}
constexpr Window tagged(Mechanism mechanism, uint64_t value) {
  return {uint64_t(mechanism) << mechanism_shift | untagged(value)};
}
// The window of a vector of which a part stands in a buffer: the buffer's window, `bytes` earlier. It may begin before anything
// that exists; only sums with a position in the part mean something.
constexpr Window earlier(Window window, uint64_t bytes) {
  return window.base == 0 ? window : tagged(mechanism_of(window), window.base - bytes);
}

// A set of mechanisms, for reading, for writing (as memory that is mapped) and for giving (by a copy): what a rank can do with
// its peers' windows. Ranks tell each other, and use what all of them can.
class Reach {
 public:
  constexpr Reach() = default;
  constexpr explicit Reach(uint32_t bits) : bits_(bits) {}
  static constexpr Reach reading(Mechanism m) { return Reach(uint32_t(1) << int(m)); }
  static constexpr Reach copying(Mechanism m) { return Reach(uint32_t(0x10001) << int(m)); }
  static constexpr Reach mapping(Mechanism m) { return Reach(uint32_t(0x10101) << int(m)); }
  constexpr Reach operator|(Reach other) const { return Reach(bits_ | other.bits_); }
  constexpr Reach operator&(Reach other) const { return Reach(bits_ & other.bits_); }
  constexpr bool reads(Window w) const { return w.base != 0 && (bits_ >> int(mechanism_of(w)) & 1) != 0; }
  constexpr bool writes(Window w) const { return w.base != 0 && (bits_ >> int(mechanism_of(w)) >> 8 & 1) != 0; }
  constexpr bool gives(Window w) const { return w.base != 0 && (bits_ >> int(mechanism_of(w)) >> 16 & 1) != 0; }
  constexpr Reach unmapped() const { return Reach(bits_ & ~uint32_t(0xff00)); }
  constexpr uint32_t bits() const { return bits_; }

 private:
  uint32_t bits_ = 0;
};

struct Cell {
  uint32_t round = 0;
  size_t start = 0;  // byte of the vector at which the cell begins
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual const char* name() const = 0;

  // Bytes one cell holds (SIZE_MAX: any, nothing is copied) and how many rounds may be in flight.
  virtual size_t cell_bytes() const = 0;
  virtual uint32_t cells() const = 0;

  // True when get() returns a pointer to the peer's own bytes, so that they are loaded once and not copied.
  virtual bool maps() const = 0;

  // What this rank can do with peers' windows. Staged transports need none.
  virtual Reach reach() const { return {}; }

  // Owner: what to publish so that peers can get from `buffer` (the vector's byte 0). 0: it cannot be reached this way.
  virtual Window window(const void* buffer) const = 0;

  // Owner: makes bytes [at, at + bytes) of the vector, which stand at `data`, readable through `cell`. Direct: nothing to do.
  virtual Status put(Cell cell, size_t at, const void* data, size_t bytes) = 0;

  // Owner: where to produce bytes [at, at + bytes) so that peers can get them with no further copy; nullptr for direct
  // transports: produce in the buffer whose window is published.
  virtual void* place(Cell cell, size_t at, size_t bytes) = 0;

  // Reader: the memory of the peer's cell at which get() finds bytes [at, at + bytes), to store there what the reader has made of
  // them, when the owner expects it. nullptr where get() copies, and for ranges outside the cell.
  virtual void* place_in(int, Cell, size_t, size_t) { return nullptr; }

  // Reader: bytes [at, at + bytes) of `peer`'s vector. *data points to them: the peer's own memory (maps()) or `scratch`,
  // which holds at least `bytes`. refused: they cannot be reached this way, now or ever; scratch may be garbage.
  virtual Status get(int peer, Window window, Cell cell, size_t at, size_t bytes, void* scratch, const void** data) = 0;

  // Where bytes [at, at + bytes) of `peer`'s vector stand for this rank to load and store. Null where reach() cannot write.
  virtual void* place_at(int, Window, size_t, size_t) { return nullptr; }

  // Copies `data` to bytes [at, at + bytes) of `peer`'s vector. refused: as of get(); some of it may have been copied.
  virtual Status give(int peer, Window window, size_t at, const void* data, size_t bytes) {
    if (bytes == 0) return Status::good();
    void* there = place_at(peer, window, at, bytes);
    if (there == nullptr) return refused("the peer's buffer cannot be written to");
    __builtin_memcpy(there, data, bytes);
    return Status::good();
  }

 protected:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
};

}  // namespace stretto::transport
