// How large the calls of a collective have been whose blocks vary: no rank knows how large they all are, so its ranks agree on it
// in some calls, and what they have agreed on counts until the next time.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto::engine {

class VaryingSize {
 public:
  // Whether anybody wants to know.
  bool used() const { return use_ != unknown; }
  void use(bool matters) { use_ = matters ? wanted : unwanted; }
  bool matters() const { return use_ == wanted; }

  // Of one call for all ranks together, on average. 0: nothing is known.
  uint64_t bytes() const { return bytes_; }

  // A call begins in which this rank moves `own` bytes. Whether the ranks agree anew, the same on all.
  bool comes_due(uint64_t own) {
    own_ += own;
    return ++calls_ >= period_;
  }
  // Of the calls since the last time.
  uint64_t own() const { return own_; }

  // `sum`: what own() is on all ranks. The more seldom the more often there was nothing new, and small calls seldom, of which an
  // agreement takes a part of the time.
  void agree(uint64_t sum) {
    bytes_ = sum / calls_;
    const uint32_t most = bytes_ < large ? 64 : 8;
    period_ = 2 * period_ < most ? 2 * period_ : most;
    own_ = calls_ = 0;
  }

 private:
  static constexpr uint64_t large = uint64_t(1) << 20;

  enum : uint8_t { unknown, unwanted, wanted } use_ = unknown;
  uint64_t bytes_ = 0, own_ = 0;
  uint32_t calls_ = 0, period_ = 1;
};

}  // namespace stretto::engine
