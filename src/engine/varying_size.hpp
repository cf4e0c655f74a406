// How large the calls of a collective have been whose blocks vary: no rank knows how large they all are, so its ranks agree on it
// now and then when a call begins, and what they have agreed on counts until the next time.
#pragma once
#include <cstdint>

#include "collective/request.hpp"

namespace stretto::engine {

class VaryingSize {
 public:
  // Whether rules ask for it; decided once.
  bool is_decided() const { return use_ != unknown; }
  void decide(bool wanted_by_rules) { use_ = wanted_by_rules ? wanted : unwanted; }
  bool is_wanted() const { return use_ == wanted; }

  // Of one call for all ranks together, on average. 0: nothing is known.
  uint64_t bytes() const { return bytes_; }

  // A call begins. Whether the ranks are to agree on those before it: the same on all.
  bool begin_call() { return calls_++ >= period_; }
  // This rank moves so many bytes in it.
  void note(uint64_t own) { own_ += own; }
  // Since the last time.
  uint64_t own() const { return own_; }

  // `sum`: what own() is on all ranks. The next time is twice as far away; not too far while calls are large, which an agreement
  // hardly delays.
  void agree(uint64_t sum) {
    bytes_ = sum / (calls_ - 1);
    const uint32_t most = bytes_ < large ? 64 : 8;
    period_ = 2 * period_ < most ? 2 * period_ : most;
    own_ = 0;
    calls_ = 1;
  }

 private:
  static constexpr uint64_t large = uint64_t(1) << 20;

  enum : uint8_t { unknown, unwanted, wanted } use_ = unknown;
  uint64_t bytes_ = 0, own_ = 0;
  uint32_t calls_ = 0, period_ = 1;  // calls: since the last time, with the one that is under way
};

// Bytes that a rank gives, in a scatterv gets, of which the others know nothing.
inline uint64_t moved(const collective::Request& request, int size) {
  using collective::Kind;
  if (request.kind == Kind::scatterv) return request.gets == nullptr ? 0 : request.gets[request.root].bytes;
  const int count = request.gives == nullptr ? 0 : request.kind == Kind::gatherv ? 1 : size;
  uint64_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += request.gives[i].bytes;
  return bytes;
}

}  // namespace stretto::engine
